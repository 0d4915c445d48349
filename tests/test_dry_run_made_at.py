"""Lines of Keras layers and of eager datasets, which are noted while a program makes them."""

import inspect

import numpy as np
import pytest

from lab_utils.common.source import Place
from lab_utils.dry_run.frontends import made_at
from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.frontends.keras import KerasWorkload
from lab_utils.estimator import tf

HERE = "test_dry_run_made_at.py"


def line_of(mark):
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    return 1 + next(n for n, line in enumerate(lines) if line.endswith(f"# <- {mark}"))


def rows(count):
    return tf.data.Dataset.from_tensor_slices(np.ones([count, 8], np.float32))


def named(row):
    return row, tf.strings.as_string(row[0])  # <- named


def cut(row):
    return row[: tf.cast(row[0], tf.int32)], row[:1]  # <- cut


@pytest.fixture(scope="module")
def model():
    with made_at.noted([tf.keras.layers.Layer]):
        made = tf.keras.Sequential(
            [
                tf.keras.layers.Dense(4, input_shape=[8]),
                tf.keras.layers.Dense(1, dtype="float64", name="wide"),  # <- wide
            ]
        )
    made.compile("sgd", "mse")
    return made


def test_a_keras_model_of_float64_is_told_once_at_the_line_of_the_layer(model):
    data = rows(32).map(lambda row: (row, row[:1])).batch(16, drop_remainder=True)
    [found] = KerasWorkload(model, data).read([], 8)
    assert found.rule == "TPU208"
    assert (found.place.file.endswith(HERE), found.place.line) == (True, line_of("wide"))


def test_an_op_is_of_the_layer_whose_name_it_bears(model):
    for op, line in (
        ("model/wide/MatMul", line_of("wide")),
        ("gradient_tape/model/wide_1/MatMul", line_of("wide")),
        ("wide_of_another/MatMul", None),
        ("Adam/mul", None),
    ):
        assert made_at.of_layer(Place(op=op)).line == line
    known = Place("model.py", 3, op="model/wide/MatMul")
    assert made_at.of_layer(known) is known


@pytest.mark.parametrize(
    "function, rule, mark", [(named, "TPU119", "named"), (cut, "TPU102", "cut")]
)
def test_what_no_tpu_takes_is_told_at_the_line_that_makes_it(model, function, rule, mark):
    data = rows(32).map(function).batch(16).prefetch(1)
    [found] = KerasWorkload(model, data).read([], 8)
    assert (found.rule, found.place.line) == (rule, line_of(mark))
    if rule == "TPU119":
        [found] = FunctionWorkload(lambda rows, names: rows, data).read([], 8)
        assert (found.rule, found.place.line) == (rule, line_of(mark))


def test_a_batch_that_cannot_be_shared_is_told_where_it_is_made(model):
    with made_at.noted([]):
        data = rows(32).map(lambda row: (row, row[:1])).repeat()
        data = data.batch(12, drop_remainder=True)  # <- batch
        data = data.prefetch(1)
    [found] = KerasWorkload(model, data).read([], 8)
    assert (found.rule, found.place.line) == ("TPU106", line_of("batch"))
    unknown = KerasWorkload(model, rows(32).map(lambda row: (row, row[:1])).batch(12))
    assert unknown.read([], 8)[0].where == "the dataset"
