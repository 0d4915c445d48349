"""What learners get wrong in lab 16, the clinic, and the words that they must hear."""

import re

from lab_utils.check.clinic.ward import NAMES, ward
from wrong_answers import Right, Wrong


def _line(name: str, part: str) -> int:
    """The line of the sick program that holds `part`."""
    lines = ward(name).sick.splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if part in line]
    return found


def _diagnoses(name: str) -> list:
    """The same habits for each patient."""
    own = f"{name}_diagnosis"
    healthy = _line(name, next(iter(ward(name).fine)))
    word = next(iter(ward(name).fine.values()))
    return [
        Wrong(f"{own} = {{}}", "0 of 6 faults found"),
        Wrong(f"{own} = dict(list({own}.items())[:2])", "Not seen yet: 4"),
        Wrong(f"{own} = {{**{own}, {healthy}: 'A'}}", f"Line {healthy} is correct. {word}"),
        Wrong(
            f"letters = [*{own}.values()]\n{own} = dict(zip({own}, letters[1:] + letters[:1]))",
            "but not for the reason that you give",
        ),
        Wrong(f"{own} = {{**{own}, 1000: 'A'}}", "is not a line of the program"),
        Wrong(f"{own} = {{**{own}, 1: 'Z'}}", "is not one of the letters A to"),
        Wrong(f"{own} = list({own}.items())", "is a dict from line numbers to letters"),
        Right(f"{own} = {{line: letter.lower() for line, letter in {own}.items()}}"),
    ]


def _treatment(name: str, changes: dict[str, str]) -> str:
    """A cell: the solution's treatment with other text for the lines of the sick program that hold a part."""
    numbered = {_line(name, part): text for part, text in changes.items()}
    return f"{name}_treatment = {{**{name}_treatment, **{numbered!r}}}"


def _untreated(name: str, part: str) -> str:
    """A cell: the solution's treatment without its change at the line that holds `part`."""
    return f"{name}_treatment = {{k: v for k, v in {name}_treatment.items() if k != {_line(name, part)}}}"


def _whole(name: str, old: str, new: str) -> str:
    """A cell: the healthy program as a whole, with one change, as from an editor."""
    text = ward(name).healthy
    assert text.count(old) == 1, old
    return f"{name}_treatment = {text.replace(old, new)!r}"


ANSWERS = {f"16{letter}": _diagnoses(name) for letter, name in zip("acegik", NAMES, strict=True)}
ANSWERS |= {
    "16b": [
        Wrong(_untreated("digits", "optimizer = tf.train.AdamOptimizer(rate)"), "TPU201"),
        Wrong(_untreated("digits", "return dataset.batch(BATCH_SIZE)"), "TPU101"),
        Wrong(
            _whole(
                "digits",
                '    if params["use_tpu"]:\n        optimizer',
                "    if True:\n        optimizer",
            ),
            "wrap the optimizer only if",
        ),
        Wrong(
            _whole(
                "digits",
                "    optimizer = tf.train.AdamOptimizer(rate)\n",
                '    optimizer = tf.train.AdamOptimizer(rate)\n    assert params["use_tpu"], "no TPU"\n',
            ),
            "On a CPU, training raises AssertionError: no TPU At line 51:",
        ),
        Wrong(
            _whole(
                "digits",
                "optimizer.minimize(loss, tf.train.get_global_step())",
                'optimizer.minimize(loss, tf.train.get_global_step(), tf.trainable_variables("log"))',
            ),
            "A training step does not change hidden/bias, hidden/kernel.",
        ),
        Wrong(
            _treatment("digits", {"net = tf.layers.dropout(": ""}),
            "was dropout or noise taken out?",
        ),
        Wrong(
            _whole(
                "digits",
                "mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])",
                "mode, loss=loss",
            ),
            "the metric accuracy is missing",
        ),
        Wrong(
            _treatment("digits", {"def train_input_fn():": "def train_input_fn(params:"}), "line 18"
        ),
        Wrong("digits_treatment = 51", "A treatment is a dict"),
        Wrong("digits_treatment = {400: ''}", "lines 1 to"),
        Right(_whole("digits", "dataset.shuffle(512).repeat()", "dataset.repeat().shuffle(1024)")),
        Right(
            "from pathlib import Path\n"
            f"Path('digits.py').write_text({ward('digits').healthy!r})\n"
            "digits_treatment = Path('digits.py')"
        ),
    ],
    "16d": [
        Wrong(_untreated("photographs", "train_op = optimizer.minimize("), "TPU220"),
        Wrong(
            _whole(
                "photographs",
                "        if self.is_training:\n            image = tf.image.random_flip_left_right(image)\n",
                "",
            ),
            "was augmentation taken out?",
        ),
        Wrong(
            _whole("photographs", '        tf2_summary.scalar("loss", loss[0], step=gs)\n', ""),
            "summaries",
        ),
        Wrong(
            _whole(
                "photographs",
                "dataset.shuffle(NUM_TRAIN).repeat()",
                "dataset.take(128).shuffle(99).repeat()",
            ),
            "examples",
        ),
    ],
    "16f": [
        Wrong(_untreated("reviews", "if self.keep_prob < 1.0"), "TPU223"),
        Wrong(
            _treatment("reviews", {"if self.keep_prob": "        if False:"}),
            "was dropout or noise taken out?",
        ),
        Wrong(
            _treatment(
                "reviews", {"pairs = tf.lookup.KeyValue": "        of_word = words % GROUPS"}
            ),
            "In evaluation the loss is",
        ),
        Right(
            _whole(
                "reviews",
                "tf.gather(tf.constant(WORD_GROUPS), words)",
                "tf.gather(WORD_GROUPS, words)",
            )
        ),
    ],
    "16h": [
        Wrong(
            _whole(
                "portraits",
                "d_optimizer.minimize(d_loss, var_list",
                "d_optimizer.minimize(d_loss, tf.train.get_global_step(), var_list",
            ),
            "the global step",
        ),
        Wrong(
            _whole("portraits", ', "sorted": sorted_pictures', ""),
            "the prediction sorted is missing",
        ),
        Wrong(_whole("portraits", "return pictures * window", "return pictures"), "the loss is"),
        Wrong(
            _whole(
                "portraits", "        g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)\n", ""
            ),
            "TPU201",
        ),
    ],
    "16j": [
        Wrong(
            _whole(
                "boxes",
                "tf.metrics.accuracy(number, chosen, weights=is_real)",
                "tf.metrics.accuracy(number, chosen)",
            ),
            "the metric count_accuracy is",
        ),
        Wrong(
            _whole(
                "boxes",
                "dataset = dataset.concatenate(self._filler()).take(steps * batch_size)",
                "pass",
            ),
            "should give each of its 150 examples once",
        ),
        Wrong(
            _whole(
                "boxes", '            "box_loss": tf.metrics.mean(box_loss, weights=is_real),\n', ""
            ),
            "the metric box_loss is missing",
        ),
        Right(_whole("boxes", "train_batch_size=64", "train_batch_size=128")),
    ],
    "16l": [
        Wrong(
            _whole("films", "dataset.shuffle(count).repeat()", "dataset.shuffle(count)"),
            "TPU2",
        ),
        Wrong(
            "films_treatment = dict(films_treatment)\n"
            f"films_treatment.pop({_line('films', 'return tf.layers.dense(hidden, 1')})\n"
            f"films_treatment[{_line('films', 'error = tf.reduce_mean(')}] = "
            "'error = tf.reduce_mean(tf.square(tf.squeeze(stars, 1) - labels))'",
            re.compile("the metric|the prediction stars"),
        ),
        Wrong(_whole("films", "return tf.train.Scaffold(saver=saver)", "pass"), "TPU117"),
        Right(
            _whole(
                "films",
                ', "watch": tf.cast(stars > 3.5, tf.int32)',
                ', "watch": tf.cast(tf.greater(stars, 3.5), tf.int32)',
            )
        ),
    ],
}
