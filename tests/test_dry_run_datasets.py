"""Lines of mapped functions that give a dataset what no TPU accepts."""

import inspect

import numpy as np
import pytest

from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.frontends.keras import KerasWorkload
from lab_utils.estimator import tf


def line_of(mark):
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    return 1 + next(n for n, line in enumerate(lines) if line.endswith(f"# <- {mark}"))


def named(row):
    return row, tf.strings.as_string(row[0])  # <- named


def cut(row):
    return row[: tf.cast(row[0], tf.int32)], row[:1]  # <- cut


ROWS = tf.data.Dataset.from_tensor_slices(np.ones([32, 8], np.float32))


@pytest.fixture(scope="module")
def model():
    wide = tf.keras.layers.Dense(1, dtype="float64", name="wide")
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=[8]), wide])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("batch", "rule", "where"), [(16, "TPU208", "/wide/"), (12, "TPU106", "the dataset")]
)
def test_a_layer_of_float64_or_a_batch_that_the_cores_cannot_share_is_a_finding(
    model, batch, rule, where
):
    data = ROWS.map(lambda row: (row, row[:1])).batch(batch, drop_remainder=True)
    [found] = KerasWorkload(model, data).read([], 8)
    assert found.rule == rule and where in found.where


@pytest.mark.parametrize(
    "function, rule, mark", [(named, "TPU119", "named"), (cut, "TPU102", "cut")]
)
def test_what_no_tpu_accepts_is_named_at_the_line_that_makes_it(model, function, rule, mark):
    data = ROWS.map(function).batch(16).prefetch(1)
    findings = KerasWorkload(model, data).read([], 8)
    if rule == "TPU119":
        findings += FunctionWorkload(lambda rows, names: rows, data).read([], 8)
    assert {(found.rule, found.place.line) for found in findings} == {(rule, line_of(mark))}
