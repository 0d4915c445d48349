"""tf.contrib.summary by tf.summary of TensorFlow 2: the step comes last, and is optional."""

from contextlib import AbstractContextManager
from typing import Any

from lab_utils.estimator import tf, v1

create_file_writer = tf.summary.create_file_writer
create_summary_file_writer = create_file_writer  # its name in TensorFlow 1.4
flush = tf.summary.flush


def always_record_summaries() -> AbstractContextManager:
    """Within it, each summary is written."""
    return tf.summary.record_if(True)


def record_summaries_every_n_global_steps(
    n: int, global_step: Any = None
) -> AbstractContextManager:
    """Within it, summaries are written in each n-th step."""
    return tf.summary.record_if(lambda: tf.equal(_step(global_step) % n, 0))


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """A number over the steps."""
    return tf.summary.scalar(_tag(name, family), tensor, _step(step))


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """The distribution of a tensor's values."""
    return tf.summary.histogram(_tag(name, family), tensor, _step(step))


def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Pictures [batch, height, width, channels]."""
    return tf.summary.image(_tag(name, family), tensor, _step(step), max_outputs=max_images)


def _tag(name: str, family: str | None) -> str:
    return f"{family}/{name}" if family else name


def _step(step: Any) -> Any:
    step = v1.train.get_or_create_global_step() if step is None else step
    return tf.cast(step, tf.int64)
