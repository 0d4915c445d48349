"""A progress bar over global steps, which an Estimator drives through a hook."""

import contextlib
import sys
from collections.abc import Iterator

import tensorflow as tf
from tqdm import tqdm

from lab_utils.runtime import CellLine, in_notebook

v1 = tf.compat.v1


class _Bar(v1.train.SessionRunHook):
    """Follows the global step: on a TPU it moves on by whole loops."""

    def __init__(self, bar: tqdm) -> None:
        self._bar = bar

    def begin(self) -> None:
        self._step = v1.train.get_global_step()

    def before_run(self, run_context):
        return v1.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values) -> None:
        self._bar.update(max(0, int(run_values.results) - self._bar.n))


@contextlib.contextmanager
def bar(step: int, steps: int) -> Iterator[_Bar]:
    """Context manager: a bar from `step` to `steps`; in a log file, a line every ten seconds instead."""
    notebook = in_notebook()
    interval = 0.1 if sys.stderr.isatty() else 0.5 if notebook else 10
    options = {"desc": "train", "unit": "step", "mininterval": interval}
    file = CellLine() if notebook else sys.stderr
    with tqdm(total=steps, initial=step, file=file, **options) as progress:
        yield _Bar(progress)
        progress.update(max(0, steps - progress.n))  # a longer run before this one took more
