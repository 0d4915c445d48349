"""Measuring an input pipeline: what is counted, what its end and its errors do, what follows."""

import contextlib
import time
from types import SimpleNamespace

import numpy as np
import pytest

from lab_utils.common.figures import Figure, Kind
from lab_utils.common.source import Place
from lab_utils.dry_run import remote
from lab_utils.dry_run.feed import stage
from lab_utils.dry_run.records import Feed, Severity
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.estimator import tf

SHORT = 0.2  # seconds to measure: the tests look at counts, not at speed


def batches(examples: int = 40, batch: int = 8) -> tf.data.Dataset:
    data = ({"image": np.zeros([examples, 3, 5], np.float32)}, np.zeros([examples], np.int32))
    return tf.data.Dataset.from_tensor_slices(data).batch(batch, drop_remainder=True)


def strings():
    lines = tf.data.Dataset.from_tensor_slices(["a", "bcd", "ef"]).batch(2)
    return lines.map(lambda text: (text, tf.sparse.from_dense([[0, 7], [0, 0]])))


def tensors():
    return tf.compat.v1.data.make_one_shot_iterator(batches().repeat()).get_next()


SOURCES = {"strings": strings, "function": batches, "dataset": batches(), "tensors": tensors}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_data_are_read_again_and_again_in_a_graph_of_their_own(source):
    with tf.Graph().as_default() if callable(source) else contextlib.nullcontext() as graph:
        figures, *_ = stage.measure(source, seconds=SHORT)
        assert not graph or not graph.get_operations()
    assert figures["examples_per_second"].value > 0
    assert {figure.kind for figure in figures.values()} == {Kind.MEASURED}


def test_the_rate_is_that_of_the_pipeline():
    def slow():
        def wait(number):
            time.sleep(0.02)
            return number

        data = tf.data.Dataset.range(1000).map(lambda n: tf.numpy_function(wait, [n], tf.int64))
        return data.map(lambda n: tf.ensure_shape(n, [])).batch(2)

    alone, *_ = stage.measure(slow, seconds=SHORT)
    assert 0 < alone["examples_per_second"].value <= 50
    tenfold, *_ = stage.measure(slow, seconds=SHORT, batch_size=20)
    assert tenfold["examples_per_second"].value > 2 * 50


def test_an_even_rate_is_known_soon_and_an_uneven_one_is_not():
    even = np.arange(60) * 0.01
    assert stage.is_known(even) and not stage.is_known(even[:8])
    # Each refill of a buffer stops it: three of ten parts take five times as long.
    stalls = np.cumsum(np.where(np.arange(60) % 20 == 0, 0.25, 0.01))
    assert not stage.is_known(stalls)


def test_the_measurement_ends_when_the_rate_is_known(monkeypatch):
    clock = iter(np.arange(10_000) * 0.005)
    made = SimpleNamespace(perf_counter=lambda: next(clock), process_time=time.process_time)
    monkeypatch.setattr(stage, "time", made)
    *_, sure = stage.measure(batches(), seconds=2.0)
    assert 0.5 <= sure < 0.7
    monkeypatch.setattr(stage, "is_known", lambda ends: False)
    *_, unsure = stage.measure(batches(), seconds=2.0)
    assert 1.7 < unsure < 1.8


def test_data_without_a_batch_is_named_so():
    with pytest.raises(stage.NoBatches):
        stage.measure(lambda: batches(examples=4, batch=8), seconds=SHORT)


def test_an_error_in_the_pipeline_comes_through():
    def broken():
        return batches().map(lambda features, label: tf.io.decode_jpeg("no image"))

    with pytest.raises(tf.errors.InvalidArgumentError, match="(?i)image"):
        stage.measure(broken, seconds=SHORT)


def test_a_batch_that_takes_too_long_ends_the_measurement_and_is_no_finding(monkeypatch):
    def late():
        def example(number):
            time.sleep(1)
            return number

        return tf.data.Dataset.range(8).map(lambda n: tf.numpy_function(example, [n], tf.int64))

    workload = SimpleNamespace(
        feed_place=None, feed=lambda cores: contextlib.nullcontext((late, 8))
    )
    session = SimpleNamespace(workload=workload, cores=8, say=print)
    monkeypatch.setattr(stage, "MOST_SECONDS", SHORT)
    monkeypatch.setattr(remote, "SESSION", tf.compat.v1.ConfigProto(operation_timeout_in_ms=200))
    with pytest.raises(Unavailable, match="gave no batch within 120 s"):
        stage.carry_out(session)


@pytest.mark.parametrize(
    ("used", "idle", "demand", "rule"),
    [
        (1.05, 2.9, 1000.0, "TPU501"),  # one core busy, three idle: no host would help
        (3.8, 0.1, 1000.0, "TPU502"),  # all cores busy: a larger host would
        (1.05, 0.0, 1000.0, "TPU502"),  # one core busy, and others' work on the rest
        (1.05, 2.9, 99.0, None),  # fast enough
    ],
)
def test_a_slow_pipeline_is_a_warning_only_where_it_would_be_slow_on_any_host(
    used, idle, demand, rule
):
    measured = {"examples_per_second": 100.0, "host_cores": used, "machine_cores": 4}
    figures = Feed(**{name: Figure("", n, "", Kind.DERIVED) for name, n in measured.items()})
    where = Place("model.py", 3, function="input_fn")
    required = Figure("required", demand, "examples/s", Kind.DERIVED)
    found = stage.compare(figures, idle, required, where)
    assert [finding.rule for finding in found] == ([rule] if rule else [])
    assert figures["host_cores_needed"].value == pytest.approx(used * demand / 100)
    assert all(figure.kind is Kind.DERIVED for figure in figures.values())
    for finding in found:
        assert finding.where == "model.py:3, in input_fn"
        assert (finding.severity is Severity.WARNING) == (rule == "TPU501")
