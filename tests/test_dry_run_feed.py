"""Measuring an input pipeline: what is counted, what its end and its errors do, what follows."""

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from lab_utils.common.figures import Kind
from lab_utils.common.source import Place
from lab_utils.dry_run.feed import measure as feed
from lab_utils.dry_run.feed import required
from lab_utils.dry_run.records import Feed, Severity
from lab_utils.estimator import tf

SHORT = 0.2  # seconds to measure: the tests look at counts, not at speed


def batches(examples: int = 40, batch: int = 8) -> tf.data.Dataset:
    data = ({"image": np.zeros([examples, 3, 5], np.float32)}, np.zeros([examples], np.int32))
    return tf.data.Dataset.from_tensor_slices(data).batch(batch, drop_remainder=True)


def test_batches_of_strings_and_sparse_tensors_are_counted():
    def made():
        lines = tf.data.Dataset.from_tensor_slices(["a", "bcd", "ef"]).batch(2)
        return lines.map(lambda text: (text, tf.sparse.from_dense([[0, 7], [0, 0]])))

    assert feed.measure(made, seconds=SHORT).batches_in_pass == 2


def test_finite_data_is_read_again_and_its_batches_are_told():
    assert feed.measure(batches, seconds=SHORT).batches_in_pass == 5
    assert feed.measure(batches(), seconds=SHORT).batches_in_pass == 5

    def tensors():
        return tf.compat.v1.data.make_one_shot_iterator(batches().repeat()).get_next()

    assert feed.measure(tensors, seconds=SHORT).batches_in_pass is None
    assert feed.measure(lambda: batches().repeat(), seconds=SHORT).batches_in_pass is None


def test_the_rate_is_that_of_the_pipeline():
    def slow():
        def wait(number):
            time.sleep(0.02)
            return number

        data = tf.data.Dataset.range(1000).map(lambda n: tf.numpy_function(wait, [n], tf.int64))
        return data.map(lambda n: tf.ensure_shape(n, [])).batch(2)

    assert 0 < feed.measure(slow, seconds=SHORT).examples_per_second <= 50
    told = feed.measure(slow, seconds=SHORT, batch_size=20)
    assert told.examples_per_second > 2 * 50  # ten times as many examples in each batch


def test_measuring_leaves_the_callers_graph_alone():
    with tf.Graph().as_default() as graph:
        feed.measure(batches, seconds=SHORT)
        assert not graph.get_operations()
    assert tf.executing_eagerly()


def test_data_without_a_batch_is_named_so():
    with pytest.raises(feed.NoBatches):
        feed.measure(lambda: batches(examples=4, batch=8), seconds=SHORT)


def test_an_error_in_the_pipeline_comes_through():
    def broken():
        return batches().map(lambda features, label: tf.io.decode_jpeg("no image"))

    with pytest.raises(tf.errors.InvalidArgumentError, match="(?i)image"):
        feed.measure(broken, seconds=SHORT)


def test_it_works_where_eager_execution_is_off():
    code = """
        from lab_utils import estimator
        import tensorflow as tf
        tf.compat.v1.disable_v2_behavior()
        from lab_utils.dry_run.feed import measure as feed
        made = lambda: tf.compat.v1.data.Dataset.range(12).batch(4)
        print([feed.measure(source, seconds=0.2).batches_in_pass for source in (made, made())])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert ran.stdout.strip() == "[3, 3]", ran.stderr


def rate(used: float, idle: float) -> feed.FeedRate:
    return feed.FeedRate(100.0, 0.1, used, idle, 4, None)


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
    figures = Feed()
    where = Place("model.py", 3, function="input_fn")
    found = required.compare(rate(used, idle), figures, demand, where)
    assert [finding.rule for finding in found] == ([rule] if rule else [])
    assert figures["times_too_slow"].value == pytest.approx(demand / 100)
    assert figures["host_cores_needed"].value == pytest.approx(used * demand / 100)
    assert all(figure.kind is Kind.DERIVED for figure in figures.values())
    for finding in found:
        assert finding.where == "model.py:3, in input_fn"
        assert (finding.severity is Severity.WARNING) == (rule == "TPU501")


def test_figures_are_measured_ones():
    figures = rate(1.0, 0.0).figures()
    assert figures["examples_per_second"].value == 100
    assert {figure.kind for figure in figures.values()} == {Kind.MEASURED}


def test_usable_cores_are_those_of_this_process():
    assert 1 <= feed.usable_cores() <= 4096
