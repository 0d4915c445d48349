"""What learners get wrong in lab 16, the clinic, and the words that they must hear."""

import re

from lab_utils.check import programs
from lab_utils.check.clinic.ward import ward
from wrong_answers import Mutant, Right, Wrong, edited, rewritten

RATE = "tf.train.exponential_decay(0.01, tf.train.get_global_step(), 1000, 0.5)"
SIZE = 'params["batch_size"]'
_ERROR = "error = tf.reduce_mean("
_WATCH = 'predictions = {"stars": stars, "watch": tf.cast(stars > 3.5, tf.int32)}'
_COLUMN = (
    'tf.squeeze(tf.layers.dense(hidden, 1, name="stars"), axis=1)',
    'tf.layers.dense(hidden, 1, name="stars")',
)


def _below(*changes: tuple[str, str]) -> Right:
    """The films with the loss fixed further down, so that its letter, F, stands behind H."""
    return Right(f'{programs.as_python(rewritten("films", *changes))}films_reason = "IKHFCD"')


def _reasons(name: str) -> list:
    """The same habits for each program."""
    own, patient = f"{name}_reason", ward(name)
    false = next(letter for letter, why in patient.choices.items() if why in patient.others)
    return [
        Wrong(
            edited(name, (patient.faults[0].wrong, patient.faults[0].right)),
            "The dry run still finds",
        ),
        Wrong(f"{own} = ''", f"is fixed. {own} is 6 different letters from A to"),
        Wrong(f"{own} = {own}[:5]", f"{own} is 6 different letters from A to"),
        Wrong(f"{own} = {own}[0] + {own}[:5]", f"{own} is 6 different letters from A to"),
        Wrong(f"{own} = {own}[:5] + 'Z'", f"{own} is 6 different letters from A to"),
        Wrong(f"{own} = {{18: {own}}}", f"{own} is 6 different letters from A to"),
        Wrong(
            f"{own} = {false!r} + {own}[1:]",
            f"The reason is not {false}, {patient.choices[false]}.",
        ),
        Wrong(f"{own} = {own}[::-1]", "but not in the order of your changes, from top to bottom"),
        Right(f"{own} = ', '.join({own}).lower()"),
    ]


ANSWERS = {
    "16a": [
        *_reasons("digits"),
        Wrong(
            rewritten(
                "digits",
                (
                    '    if params["use_tpu"]:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n',
                    "",
                ),
            ),
            "TPU201",
        ),
        Wrong(
            rewritten(
                "digits",
                (
                    'repeat()\n    return dataset.batch(params["batch_size"], drop_remainder=True)',
                    'repeat()\n    return dataset.batch(params["batch_size"])',
                ),
            ),
            re.compile(r"TPU101 at line 22 `return dataset\.batch"),
        ),
        Wrong(
            rewritten(
                "digits", ('    if params["use_tpu"]:\n        opt', "    if True:\n        opt")
            ),
            "wrap the optimizer only if",
        ),
        Wrong(
            rewritten(
                "digits",
                (
                    "    optimizer = tf.train.AdamOptimizer(rate)\n",
                    '    optimizer = tf.train.AdamOptimizer(rate)\n    assert params["use_tpu"], "no TPU"\n',
                ),
            ),
            "On a CPU, training raises AssertionError: no TPU At line 51:",
        ),
        Wrong(
            rewritten(
                "digits",
                (
                    "optimizer.minimize(loss, tf.train.get_global_step())",
                    'optimizer.minimize(loss, tf.train.get_global_step(), tf.trainable_variables("log"))',
                ),
            ),
            "A training step does not change hidden/bias, hidden/kernel.",
        ),
        Wrong(
            rewritten("digits", ("    net = tf.layers.dropout(net, 0.2, training=training)\n", "")),
            "was dropout or noise taken out?",
        ),
        Wrong(
            rewritten(
                "digits",
                ("mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])", "mode, loss=loss"),
            ),
            "the metric accuracy is missing",
        ),
        Wrong(rewritten("digits", (RATE, "0.01")), "is the learning rate another one"),
        Wrong(
            rewritten("digits", (RATE, "0.01")),
            re.compile(
                "You changed `rate = tf.train.exponential_decay.*, which was correct. A schedule"
            ),
        ),
        Wrong(
            rewritten(
                "digits",
                (
                    f"repeat()\n    return dataset.batch({SIZE}",
                    "repeat()\n    return dataset.batch(64",
                ),
            ),
            "makes batches of 64 whatever params",
        ),
        Wrong(
            rewritten("digits", ("dataset.shuffle(512).repeat()", "dataset.repeat()")),
            "no longer shuffles",
        ),
        Wrong(
            rewritten("digits", ("def train_input_fn(params):", "def train_input_fn(params:")),
            "line 18",
        ),
        Wrong(
            rewritten(
                "digits", ("dataset.shuffle(512).repeat()", "dataset.repeat().shuffle(1024)")
            ),
            "mixes the examples of several epochs",
        ),
        Wrong(
            rewritten("digits", ("dataset.shuffle(512).repeat()", "dataset.repeat().shuffle(512)")),
            "mixes the examples of several epochs",
        ),
        Wrong(
            rewritten("digits", ("eval_batch_size=BATCH_SIZE", "eval_batch_size=48")),
            "With eval_batch_size=48, evaluation gets 96 of the 128 examples",
        ),
        Right(rewritten("digits", ("eval_batch_size=BATCH_SIZE", "eval_batch_size=8"))),
        Right(rewritten("digits", ("eval_batch_size=BATCH_SIZE", "eval_batch_size=128"))),
        Wrong(
            rewritten("digits", ("train_batch_size=BATCH_SIZE", "train_batch_size=BATCH_SIZE * 8")),
            "train_batch_size of TPUEstimator is 512, and was 64: it is the batch of all cores together",
        ),
        Wrong(
            rewritten("digits", ("iterations_per_loop=100", "iterations_per_loop=300")),
            "the first one is that of step 600",
        ),
        Right(rewritten("digits", ("dataset.shuffle(512)", "dataset.shuffle(1024)"))),
        Right(rewritten("digits", ("def port():", "# all four changes\n\n\ndef port():"))),
    ],
    "16b": [
        *_reasons("photographs"),
        Wrong(
            rewritten(
                "photographs",
                (
                    "        with tf.control_dependencies(update_ops):\n            train_op = ",
                    "        train_op = ",
                ),
            ),
            "TPU220",
        ),
        Wrong(
            rewritten(
                "photographs",
                (
                    "        if self.is_training:\n            image = tf.image.random_flip_left_right(image)\n",
                    "",
                ),
            ),
            "was augmentation taken out?",
        ),
        Wrong(
            rewritten("photographs", ("random_flip_left_right", "random_flip_up_down")),
            "Is the augmentation another one?",
        ),
        Wrong(
            rewritten("photographs", ("dataset.shuffle(NUM_TRAIN)", "dataset")),
            "no longer shuffles",
        ),
        Wrong(
            rewritten("photographs", ("dataset.shuffle(NUM_TRAIN)", "dataset.shuffle(16)")),
            "shuffles less than before",
        ),
        Wrong(
            rewritten(
                "photographs", ('        tf2_summary.scalar("loss", loss[0], step=gs)\n', "")
            ),
            "summaries",
        ),
        Wrong(
            rewritten(
                "photographs",
                ("dataset.shuffle(NUM_TRAIN).repeat()", "dataset.take(128).shuffle(99).repeat()"),
            ),
            "examples",
        ),
    ],
    "16c": [
        *_reasons("reviews"),
        Wrong(
            rewritten(
                "reviews",
                ("        if training:\n            state", "        if True:\n            state"),
            ),
            "TPU223",
        ),
        Wrong(
            rewritten(
                "reviews",
                ("        if training:\n            state", "        if False:\n            state"),
            ),
            "was dropout or noise taken out?",
        ),
        Wrong(
            rewritten("reviews", ("tf.gather(tf.constant(WORD_GROUPS), words)", "words % GROUPS")),
            "In evaluation the loss is",
        ),
        Right(
            rewritten(
                "reviews",
                ("tf.gather(tf.constant(WORD_GROUPS), words)", "tf.gather(WORD_GROUPS, words)"),
            )
        ),
        # A generator's data, whose number is not known
        Wrong(
            rewritten("reviews", ("shuffle(256).repeat()", "shuffle(256)")),
            "ends after 4 batches of 64, and was without end: was repeat taken out?",
        ),
        # Features that no fault is about: a gradient's limit, an optimizer, settings
        Wrong(
            rewritten(
                "reviews",
                (
                    "    gradients = [tf.clip_by_norm(gradient, 5.0) for gradient in gradients]\n",
                    "",
                ),
            ),
            "was the clipping of gradients changed?",
        ),
        Wrong(
            rewritten(
                "reviews", ("tf.clip_by_norm(gradient, 5.0)", "tf.clip_by_norm(gradient, 1.0)")
            ),
            "was the clipping of gradients changed?",
        ),
        Right(
            rewritten(
                "reviews",
                (
                    "[tf.clip_by_norm(gradient, 5.0) for gradient in gradients]",
                    "[gradient * 5.0 / tf.maximum(tf.norm(gradient), 5.0) for gradient in map(tf.convert_to_tensor, gradients)]",
                ),
            )
        ),
        Wrong(
            rewritten("reviews", ("RMSPropOptimizer", "GradientDescentOptimizer")),
            "No weights are updated by RMSProp any more",
        ),
        Wrong(
            rewritten("reviews", ('        model_dir="run/reviews",\n', "")),
            "model_dir of RunConfig was set, and is not any more",
        ),
        Right(rewritten("reviews", ("run/reviews", "run/mine"))),
        Wrong(
            rewritten("reviews", ('"keep_prob": 0.8', '"keep_prob": 0.5')),
            "The rate of dropout is 0.5, and was 0.2.",
        ),
        Wrong(
            rewritten("reviews", (", initializer=tf.zeros_initializer()", "")),
            "The training of cell/bias starts from other values",
        ),
    ],
    "16d": [
        *_reasons("portraits"),
        Mutant(
            "d_optimizer.minimize(d_loss, var_list",
            "d_optimizer.minimize(d_loss, tf.train.get_global_step(), var_list",
            "the global step",
        ),
        Mutant(', "sorted": sorted_pictures', "", "the prediction sorted is missing"),
        Mutant("return pictures * window", "return pictures", "the loss is"),
        Wrong(
            rewritten(
                "portraits",
                (
                    "d_optimizer = tf.train.AdamOptimizer(2e-4, beta1=0.5)",
                    "d_optimizer = tf.train.AdamOptimizer(2e-4)",
                ),
            ),
            "An optimizer's beta1 is 0.9, and was 0.5",
        ),
        Mutant("        g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)\n", "", "TPU201"),
        # Half as fast, where the other optimizer hides it in how far the weights move all together
        Wrong(
            rewritten(
                "portraits",
                (
                    "g_optimizer = tf.train.AdamOptimizer(2e-4,",
                    "g_optimizer = tf.train.AdamOptimizer(1e-4,",
                ),
            ),
            "moves generator/hidden/kernel 0.5 times as far as it should",
        ),
    ],
    "16e": [
        *_reasons("boxes"),
        Mutant(
            "tf.metrics.accuracy(number, chosen, weights=is_real)",
            "tf.metrics.accuracy(number, chosen)",
            "the metric count_accuracy is",
        ),
        Mutant(
            "dataset = dataset.concatenate(self._filler()).take(steps * batch_size)",
            "pass",
            "should give each of its 150 examples once",
        ),
        Mutant(
            '            "box_loss": tf.metrics.mean(box_loss, weights=is_real),\n',
            "",
            "the metric box_loss is missing",
        ),
        Right(rewritten("boxes", ("train_batch_size=64", "train_batch_size=128"))),
        Wrong(
            rewritten("boxes", ("shuffle(NUM_TRAIN).repeat()", "shuffle(NUM_TRAIN)")),
            "ends after 4 batches of 64, and was without end: was repeat taken out?",
        ),
        Mutant(
            "tf.train.MomentumOptimizer(params.learning_rate, params.momentum)",
            "tf.train.GradientDescentOptimizer(params.learning_rate)",
            "No weights are updated by Momentum any more: is the optimizer another one?",
        ),
    ],
    "16f": [
        *_reasons("films"),
        # The column of the network is made a row only where it meets the labels, or they become a column
        _below(
            _COLUMN,
            (f"        {_ERROR}", f"        stars = stars[:, 0]\n        {_ERROR}"),
        ),
        _below(
            _COLUMN,
            (f"        {_ERROR}", f"        labels = labels[:, None]\n        {_ERROR}"),
        ),
        # The words of advice stay where there is no TPU.
        Right(
            rewritten(
                "films",
                (
                    _WATCH,
                    f'{_WATCH}\n            if not params["use_tpu"]:\n                predictions["advice"] = '
                    'tf.gather(["skip it", "watch it"], predictions["watch"])',
                ),
            )
        ),
        Wrong(
            rewritten("films", ("predict_batch_size=64", "predict_batch_size=48")),
            "With predict_batch_size=48, prediction gets 96 of the 128 examples",
        ),
        Mutant("dataset.shuffle(count).repeat()", "dataset.shuffle(count)", "TPU2"),
        Wrong(
            rewritten(
                "films",
                _COLUMN,
                ("tf.square(stars - labels)", "tf.square(tf.squeeze(stars, 1) - labels)"),
            ),
            "the metric",
        ),
        Mutant("return tf.train.Scaffold(saver=saver)", "pass", "TPU117"),
        Wrong(
            rewritten("films", ("train_op=train_op, scaffold_fn=scaffold_fn", "train_op=train_op")),
            "max_to_keep of the Saver was set, and is not any more",
        ),
        Wrong(
            rewritten("films", ("tf.train.Saver(max_to_keep=3)", "tf.train.Saver()")),
            "max_to_keep of the Saver was set, and is not any more",
        ),
        Wrong(
            rewritten("films", ("        save_checkpoints_steps=400,\n", "")),
            "save_checkpoints_steps of RunConfig was set",
        ),
        Wrong(
            rewritten("films", ("iterations_per_loop=100, num_shards=8", "")),
            "iterations_per_loop of TPUConfig was set",
        ),
        Right(
            rewritten("films", ("iterations_per_loop=100, num_shards=8", "iterations_per_loop=200"))
        ),
        Right(
            rewritten(
                "films",
                ("tf.cast(stars > 3.5, tf.int32)", "tf.cast(tf.greater(stars, 3.5), tf.int32)"),
            )
        ),
    ],
    "16g": [
        Right(
            'change, verdict = ("(params):\\n    pictures, labels = load_data(512", "():\\n    pictures, labels = load_data(512"), "Trace"'
        ),
        Right('change, verdict = ["decay(0.01", "decay(0.05"], "none"'),
        Right("""
            old = "train_op = optimizer.minimize(loss, tf.train.get_global_step())"
            halves = "inner = tf.train.AdamOptimizer(rate)\\n    gradients = inner.compute_gradients(loss)"
            change = old, f"{halves}\\n    train_op = optimizer.apply_gradients(gradients, tf.train.get_global_step())"
            verdict = "run"
        """),
        Right('change, verdict = ("iterations_per_loop=100", "iterations_per_loop=300"), "none"'),
        Right("""
            change = "AdamOptimizer(rate)", "AdamOptimizer(rate * (8 if params['use_tpu'] else 1))"
            verdict = "none"
        """),
        Wrong(
            'change, verdict = ("iterations_per_loop=100", "iterations_per_loop=50"), "none"',
            "No stage of the dry run complains of your change",
        ),
        Wrong('verdict = "run"', "Not run, but read. TPU201"),
        Wrong('verdict = "none"', "Not none, but read"),
        Wrong('verdict = "compile"', "one of trace, read, run, none"),
        Wrong('change = ("optimizer", "adam")', "times in your digits.py, not once"),
        Wrong(
            'change = ("shuffle(512)", "shuffle(1024)")',
            "No stage of the dry run complains of your change",
        ),
        Wrong('change = "shuffle(512)"', "a pair of texts"),
        Wrong(edited("digits"), "Fix digits.py first"),
    ],
}
