"""The code of the rules' pages: each Wrong block raises its rule, and each Right block does not."""

import tempfile
import time

import numpy as np
import pytest
from frozen import rows, same
from rules import frames, jax_frames, keras_jax_frames, parts
from rules.frames import arguments, compiled, in_input, in_model, input_function, mapped
from rules.judging import findings, in_lines, jobs, small_tensors_count_as_large  # noqa: F401
from rules.parts import EVAL, PREDICT, SIZE, TRAIN, tf, v1
from rules.snippets import snippets

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Stage


def images_and_labels():
    return tf.data.Dataset.from_tensors((tf.zeros([8, 8, 3], tf.uint8), 1))


def few(count):
    return lambda: parts.examples(count)


def paths():
    return tf.data.Dataset.from_tensor_slices(["a.jpg", "b.jpg"])


def named_images():
    example = (tf.zeros([8, 8, 3]), tf.constant("a.jpg"), tf.constant(7))
    return tf.data.Dataset.from_tensors(example)


def records(feature, value):
    """Records of one feature, in the names that TensorFlow gives its kinds."""
    features = tf.train.Features(feature={feature: tf.train.Feature(**value)})
    return lambda: tf.data.Dataset.from_tensors(
        tf.constant(tf.train.Example(features=features).SerializeToString())
    )


def record_file():
    path = tempfile.mkstemp(prefix="rule_page_")[1]
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(64):
            writer.write(bytes([number]))
    return path


def decode(record):
    if tf.executing_eagerly():
        time.sleep(0.02)  # Python's work, in tf.py_function: at most 50 records/s
    return tf.reshape(tf.io.decode_raw(record, tf.uint8), [-1])[0] / 255


def _first_byte(record):
    return tf.fill([SIZE], decode(record)), 1


def with_batch_norm(names):
    training = names["mode"]() == TRAIN
    rows = v1.layers.batch_normalization(names["features"](), training=training)
    return parts.loss_of(names["labels"](), v1.layers.dense(rows, parts.CLASSES))


def large(features, labels, mode, params):
    """For examples of megabytes: a layer on a few of their numbers."""
    logits = v1.layers.dense(features[:, :128], parts.CLASSES)
    return parts.spec(mode, labels, logits)


# Where the code of a page belongs that does not stand in model_fn and train. Several of one side are for its
# blocks in turn.
FRAMES = {
    "TPU101": in_input(),
    "TPU102": in_input(paths=paths),
    "TPU103": input_function(),
    "TPU104": frames.model_function,
    "TPU105": arguments(),
    "TPU106": arguments(),
    "TPU107": arguments(eval_input_fn=parts.train_input, predict_input_fn=parts.predict_input),
    "TPU109": arguments(),
    "TPU110": in_model(EVAL),
    "TPU112": in_model(EVAL),
    "TPU118": in_model(EVAL),
    "TPU119": mapped(named_images, "example"),
    "TPU120": in_input(batched=False),
    "TPU121": in_input(lambda: few(64)().batch(64), PREDICT),
    "TPU122": in_model(PREDICT),
    "TPU123": in_model(PREDICT),
    "TPU128": mapped(records("ids", {"int64_list": tf.train.Int64List(value=[1, 2])}), "parse"),
    "TPU129": arguments(),
    "TPU131": in_input(),
    "TPU132": frames.called,
    "TPU133": frames.called,
    "TPU201": in_model(rate=lambda names: 0.01),
    "TPU204": in_model(PREDICT),
    "TPU205": {
        "Wrong": in_model(),
        "Right": [in_input(batched=False, normalise=lambda: _halved), in_model()],
    },
    "TPU207": {
        "Wrong": in_model(images=lambda names: tf.zeros([8, 16, 16, 3], tf.uint8)),
        "Right": in_input(images_and_labels=lambda: images_and_labels().repeat()),
    },
    "TPU210": arguments(),
    "TPU211": in_input(few(500), batch=1024),
    "TPU212": input_function(
        EVAL, examples=lambda: parts.examples, random_flip_and_crop=lambda: _noisy
    ),
    "TPU213": in_model(PREDICT),
    "TPU214": in_input(),
    "TPU216": in_input(few(1024)),
    "TPU218": in_input(few(1024)),
    "TPU220": in_model(loss=with_batch_norm),
    "TPU222": in_input(
        batched=False,
        all_images=lambda: np.zeros([2**15, SIZE], np.float32),
        files=lambda: ["never read"],
        parse=lambda: lambda record: tf.reshape(tf.io.decode_raw(record, tf.float32), [SIZE]),
    ),
    "TPU223": in_model(EVAL),
    "TPU224": {"Wrong": in_model(), "Right": in_model(EVAL)},
    "TPU225": {
        "Wrong": in_input(few(150), EVAL),
        "Right": [in_input(few(150), EVAL, padding=few(42)), in_model(EVAL)],
    },
    "TPU226": input_function(batch=1024),
    "TPU227": in_model(
        net=lambda names: names["features"](),
        labels=lambda names: tf.cast(names["labels"](), tf.float32),
    ),
    "TPU230": frames.fitted,
    "TPU232": frames.dataset_of_keras,
    "TPU233": input_function(pattern=record_file, parse=lambda: _first_byte),
    "TPU234": frames.loop,
    "TPU235": frames.compiled_by_keras,
    "TPU236": frames.dataset_of_keras,
    "TPU237": arguments(),
    "TPU228": mapped(lambda: parts.examples().map(lambda row, label: row), "squash"),
    **jax_frames.FRAMES,
    "TPU302": {
        "Wrong": in_model(images=lambda names: tf.tile(names["images"](), [1, 20, 20, 3])),
        "Right": in_input(images_and_labels=lambda: images_and_labels().repeat()),
    },
    "TPU303": arguments(large, input_fn=frames.zeros((2**21,))),
    "TPU304": {
        "Wrong": compiled(1, (64, 64, 3), "images"),
        "Right": compiled(128, (8, 8, 3), "images"),
    },
    "TPU305": compiled(dtype=tf.bfloat16),
    "TPU306": compiled(name="images"),
    "TPU401": in_model(optimizer=lambda names: v1.train.GradientDescentOptimizer(0.01)),
    "TPU402": in_model(
        labels=lambda names: tf.one_hot(names["labels"](), parts.CLASSES),
        probabilities=lambda names: tf.nn.softmax(1e4 * names["logits"]()),
    ),
    "TPU403": in_model(
        labels=lambda names: tf.cast(names["labels"](), tf.float32),
        values=lambda names: names["logits"]()[:, 0],
    ),
    "TPU404": in_input(few(1024)),
    "TPU405": in_model(
        x=lambda names: v1.get_variable("x", [SIZE], initializer=v1.zeros_initializer())
    ),
    "TPU407": in_input(few(64)),
    "TPU409": in_model(points=lambda names: names["features"]() + 100.0),
    "TPU501": input_function(pattern=record_file, decode=lambda: decode),
    "TPU503": mapped(
        records("image/encoded", {"bytes_list": tf.train.BytesList(value=[b"jpeg"])}), "parse"
    ),
    "TPU504": in_input(few(60)),
}
# Run, and not judged: how fast an image is decoded says nothing on a machine that others use too.
NOT_JUDGED = {
    "TPU502": {
        "encoded": lambda: tf.io.encode_jpeg(tf.zeros([32, 32, 3], tf.uint8)),
        "window": lambda: [0, 0, 16, 16],
    }
}
ELSEWHERE = keras_jax_frames.FRAMES.keys()  # tests/test_dry_run_keras_jax.py


def _halved(features, labels):
    return features / 2.0, labels


def _noisy(features, labels):
    return features + tf.random.normal([SIZE]), labels


def _framed(snippet):
    frame = FRAMES.get(snippet.rule, in_model())
    frame = frame[snippet.side] if isinstance(frame, dict) else frame
    return frame[snippet.number] if isinstance(frame, list) else frame


def _costs(snippet):
    """The compiler and the virtual cores take seconds a block."""
    slow = rules.rule(snippet.rule).stage in (Stage.COMPILE, Stage.RUN)
    marks = [pytest.mark.slow] if slow else []
    if snippet.side == "Right":
        marks.append(pytest.mark.rotating(4))
    return pytest.param(snippet, marks=marks)


@pytest.mark.parametrize(
    "snippet",
    [_costs(each) for each in snippets() if each.rule not in NOT_JUDGED.keys() | ELSEWHERE],
    ids=lambda each: f"{each.rule}-{each.side}-{each.number}",
)
def test_code_of_a_page(snippet, jobs):  # noqa: F811
    wrong = snippet.side == "Wrong"
    topology = "v2:4x4" if snippet.rule == "TPU129" else "v2:2x2"
    found = findings(lambda: _framed(snippet)(snippet), snippet.rule, topology)
    same("pages", f"{snippet.rule} {snippet.side} {snippet.number}", rows(found))
    rules_found = {each.rule for each in found}
    assert (snippet.rule in rules_found) == wrong, in_lines(found)
    if wrong and rules.rule(snippet.rule).stage == Stage.RUN:
        return  # a loss that is not finite spoils variables too
    others = [each for each in found if each.severity == "error" and each.rule != snippet.rule]
    assert not others, in_lines(others)


@pytest.mark.parametrize(
    "snippet",
    [each for each in snippets() if each.rule in NOT_JUDGED],
    ids=lambda each: f"{each.rule}-{each.side}",
)
def test_code_of_a_page_that_is_not_judged(snippet):
    assert snippet.run(NOT_JUDGED[snippet.rule]).get("image").shape == (224, 224, 3)


def test_each_page_has_code_and_each_frame_a_page():
    assert FRAMES.keys() | NOT_JUDGED.keys() | ELSEWHERE <= set(rules.catalogue())
    assert not FRAMES.keys() & NOT_JUDGED.keys()
    sides = {(each.rule, each.side) for each in snippets()}
    assert sides == {(id, side) for id in rules.catalogue() for side in ("Wrong", "Right")}
