"""tf.contrib.summary by tf.summary of TensorFlow 2: the step comes last, and is optional."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from lab_utils.estimator import tf, v1


def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> tf.summary.SummaryWriter:
    """A writer of event files, for `with writer.as_default():`."""
    return tf.summary.create_file_writer(logdir, max_queue, flush_millis, filename_suffix, name)


create_summary_file_writer = create_file_writer  # its name in TensorFlow 1.4


def always_record_summaries() -> AbstractContextManager:
    """Within it, each summary is written."""
    return tf.summary.record_if(True)


def never_record_summaries() -> AbstractContextManager:
    """Within it, no summary is written."""
    return tf.summary.record_if(False)


def record_summaries_every_n_global_steps(
    n: int, global_step: Any = None
) -> AbstractContextManager:
    """Within it, summaries are written in each n-th step."""
    return tf.summary.record_if(lambda: tf.equal(_step(global_step) % n, 0))


def flush(writer: Any = None, name: str | None = None) -> Any:
    """Writes what the writer holds."""
    return tf.summary.flush(writer, name)


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """A number over the steps."""
    return _write(tf.summary.scalar, name, tensor, family, step)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """The distribution of a tensor's values."""
    return _write(tf.summary.histogram, name, tensor, family, step)


def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Pictures [batch, height, width, channels]."""
    return _write(tf.summary.image, name, tensor, family, step, max_outputs=max_images)


def audio(
    name: str,
    tensor: Any,
    sample_rate: int,
    max_outputs: int,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Sound [batch, frames, channels]."""
    return _write(
        tf.summary.audio,
        name,
        tensor,
        family,
        step,
        sample_rate=sample_rate,
        max_outputs=max_outputs,
    )


def generic(
    name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None
) -> Any:
    """A tensor with a plugin's metadata."""
    return tf.summary.write(_tag(name, family), tensor, _step(step), metadata)


def _write(
    write: Callable, name: str, tensor: Any, family: str | None, step: Any, **options: Any
) -> Any:
    return write(_tag(name, family), tensor, step=_step(step), **options)


def _tag(name: str, family: str | None) -> str:
    return f"{family}/{name}" if family else name


def _step(step: Any) -> Any:
    step = v1.train.get_or_create_global_step() if step is None else step
    return tf.cast(step, tf.int64)
