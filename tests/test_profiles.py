"""Profiles of TensorFlow's profiler, as events."""

import pytest

from lab_utils.profiles import recorded


def test_no_profile_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="call tf.profiler.experimental.stop"):
        recorded(tmp_path)


def test_session_calls_and_their_ops_are_events(tmp_path):
    from lab_utils.estimator import tf, v1

    with tf.Graph().as_default(), v1.Session() as session:
        # Large: the executor records ops that take some microseconds, and not each small one.
        product = tf.matmul(tf.ones([500, 500]), tf.random.normal([500, 500]), name="product")
        session.run(product)
        tf.profiler.experimental.start(str(tmp_path))
        for _ in range(5):
            session.run(product)
        tf.profiler.experimental.stop()
    events = recorded(tmp_path)
    calls = [each for each in events if each.name == "SessionRun"]
    ops = [each for each in events if each.name == "product:MatMul"]
    assert calls and ops
    for op in ops:
        assert any(call.start <= op.start <= op.end <= call.end for call in calls)
