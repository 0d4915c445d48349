"""Lines of mapped functions that give a dataset what no TPU accepts."""

import importlib.util
import inspect

import numpy as np
import pytest
from dry_run_models import run_program
from reading import findings_of
from rules import Port, wrong_calls
from rules.judging import jobs, report_of  # noqa: F401

from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.facts.pipeline import LastBatch, rest_of_dataset
from lab_utils.dry_run.frontends import datasets
from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.frontends.keras import KerasWorkload
from lab_utils.dry_run.records import Stage
from lab_utils.dry_run.rules.inputs import no_fixed_size
from lab_utils.dry_run.workload import Observed
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


def test_a_layer_of_float64_is_a_finding(model):
    data = ROWS.map(lambda row: (row, row[:1])).batch(16, drop_remainder=True)
    found = findings_of(KerasWorkload(model, data))
    assert {each.rule for each in found} == {"TPU208"} and "/wide/" in found[0].where


@pytest.mark.parametrize(
    ("batch", "share", "says"),
    [
        (30, 4, "7 cores 4 examples each, one 2,"),
        (12, 2, "6 cores 2 examples each, 2 none,"),
        (4, 1, "4 cores 1 example each, 4 none,"),
    ],
)
@pytest.mark.parametrize("kind", [KerasWorkload, FunctionWorkload])
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed here")
@pytest.mark.usefixtures("jobs")
def test_a_batch_that_tf_distribute_splits_unevenly_is_a_note_and_is_judged(
    kind, batch, share, says
):
    rows = tf.data.Dataset.range(32).map(lambda n: tf.cast([n, 2 * n], tf.float32))
    data = rows.map(lambda row: (row, row[:1])).batch(batch, drop_remainder=True)
    subject = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    subject.compile("sgd", "mse")
    if kind is FunctionWorkload:
        subject = lambda rows, wanted: tf.reduce_mean(rows[:, :1] - wanted)  # noqa: E731
    workload = kind(subject, data)
    workload.observed = Observed(trained_at=Place("train.py", 7))
    [found] = findings_of(workload)
    assert (found.rule, found.severity, found.place.line) == ("TPU106", "note", 7)
    assert says in found.why
    program = workload.lower(8)
    assert program.per_core_batch == share and program.inputs[0].shape == (share, 2)
    features, _ = next(program.origin.read())
    assert features.shape == (8, share, 2)
    result = run_program(program, one_core=workload.lower(1, batch=8 * share))
    assert result.findings == [] and result.steps == 3


@pytest.mark.parametrize(
    "function, rule, mark", [(named, "TPU119", "named"), (cut, "TPU102", "cut")]
)
def test_what_no_tpu_accepts_is_named_at_the_line_that_makes_it(model, function, rule, mark):
    data = ROWS.map(function).batch(16, drop_remainder=True).prefetch(1)
    workloads = [KerasWorkload(model, data)]
    if rule == "TPU119":
        workloads.append(FunctionWorkload(lambda rows, names: rows, data))
    for workload in workloads:
        [found] = findings_of(workload)
        assert (found.rule, found.place.line) == (rule, line_of(mark))


@pytest.mark.parametrize(
    ("pipeline", "rest"),
    [
        (lambda rows: rows.batch(5), 2),
        (lambda rows: rows.batch(8), 0),
        (lambda rows: rows.batch(5, drop_remainder=True), 0),
        (lambda rows: rows.shuffle(9).batch(5, num_parallel_calls=2).map(tf.abs).prefetch(1), 2),
        (lambda rows: rows.batch(5).cache().repeat(), 2),
        (lambda rows: rows.repeat().batch(5), 0),
        (lambda rows: rows.batch(5).take(3), None),
        (lambda rows: rows.filter(lambda row: row[0] > 0).batch(5), None),
    ],
)
def test_the_size_of_a_last_batch_is_known_without_reading(pipeline, rest):
    assert rest_of_dataset(pipeline(ROWS)) == rest


def test_the_short_batch_is_none_of_the_whole_ones_where_batches_are_shuffled():
    """As in batch(128).shuffle(100), which may give the short one first."""
    batches = tf.data.Dataset.from_tensor_slices(np.zeros([10, 3])).batch(4)
    shuffled = batches.skip(2).concatenate(batches.take(2))
    assert next(iter(shuffled)).shape[0] == 2
    assert datasets.whole_batches(shuffled).element_spec.shape == (4, 3)


def test_arrays_without_a_batch_size_make_as_many_batches_as_an_epoch_has_steps():
    rows = np.zeros([120, 4], np.float32)
    batches = datasets.given_to_fit(rows, rows, steps_per_epoch=5)
    assert int(batches.cardinality()) == 5 and batches.element_spec[0].shape[0] == 24


@pytest.mark.parametrize(
    ("examples", "last"),
    [
        (float("inf"), None),
        (128, None),
        (200, "the last batch, which has 8"),
        (None, "if it is shorter"),
    ],
    ids=["repeated", "whole batches", "a shorter one", "unknown"],
)
def test_a_second_compilation_is_foretold_only_where_a_shorter_batch_can_come(examples, last):
    [found] = no_fixed_size(LastBatch(64, False, lambda: examples, NOWHERE))
    assert (last in found.why) if last else ("once more" not in found.why), found.why


def test_batches_that_nobody_can_count_leave_the_steps_of_an_epoch_unjudged():
    """3 batches of 16 rows are left of 100 that fit asks for, and only reading them would tell."""

    def main():
        with wrong_calls._strategy().scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[8])])
            model.compile("sgd", "mse")
        rows = wrong_calls._rows(96).filter(lambda row, label: label > 0.5)
        model.fit(rows.batch(16, drop_remainder=True), steps_per_epoch=100)

    report = report_of(Port(main=main), [Stage.TRACE, Stage.READ])
    [told] = [text for text in report.not_checked if "asks for 100 batches" in text]
    assert told.startswith("TPU211, of training: ") and "nobody knows" in told
