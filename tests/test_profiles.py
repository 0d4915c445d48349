"""Profiles of TensorFlow's profiler, as events."""

import pytest

from lab_utils.notebook.profiles import recorded


def test_no_profile_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="call tf.profiler.experimental.stop"):
        recorded(tmp_path)


def test_each_session_call_is_an_event(tmp_path):
    from lab_utils.estimator import tf, v1

    with tf.Graph().as_default(), v1.Session() as session:
        product = tf.matmul(tf.ones([64, 64]), tf.random.normal([64, 64]))
        tf.profiler.experimental.start(str(tmp_path))
        for _ in range(5):
            session.run(product)
        tf.profiler.experimental.stop()
    events = recorded(tmp_path)
    calls = [each for each in events if each.name == "SessionRun"]
    assert len(calls) == 5 and len({each.row for each in calls}) == 1
    assert min(each.start for each in events) == 0
    ends = [moment for call in calls for moment in (call.start, call.end)]
    assert ends == sorted(ends)
