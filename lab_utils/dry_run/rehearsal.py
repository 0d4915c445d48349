"""A learner's TPUEstimator on a TPU system that is not there: every stage looks at it through this."""

import contextlib
import copy
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab_utils.common import scratch
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.estimator import tpu

# What looks at a TPUEstimator, or builds a step, outside the dry run's stages.
settings, replicas = _tpu_estimator.settings, _tensorflow.replicas


@dataclass
class Rehearsal:
    """A temporary model_dir, and TensorFlow's lines of level WARNING and above so far."""

    model_dir: str
    log: list[str]

    def twin(self, estimator: Any, *, any_cores: bool = False, **changes: Any) -> Any:
        """A TPUEstimator(use_tpu=True) with the settings of `estimator`, writing to `model_dir`.

        With `any_cores` it may be for another number of cores than its num_shards says. `changes`
        replace arguments of its constructor. Warm starting is left out: it would read a checkpoint,
        and changes no shape.
        """
        given = _tpu_estimator.settings(estimator)
        others = {
            "config": _tpu_estimator.config_for_dry_run(given.config, self.model_dir, any_cores),
            "params": copy.deepcopy(given.params),
            "use_tpu": True,
            "eval_on_tpu": given.eval_on_tpu or not given.use_tpu,
            "warm_start_from": None,
        }
        return tpu.TPUEstimator(**vars(given) | others | changes)


@contextmanager
def rehearsing(cores: int, aloud: bool = False) -> Iterator[Rehearsal]:
    """Context manager: TPUEstimators ask about their TPU, and are told that it has `cores` cores.

    The model_dir is removed on leaving, and TensorFlow's log lines are caught. What the learner's own
    functions print is shown where it is `aloud` alone: they are called many times.
    """
    with (
        contextlib.nullcontext() if aloud else contextlib.redirect_stdout(io.StringIO()),
        scratch.folder() as model_dir,
        _tensorflow.caught_log() as log,
        _tpu_estimator.tpu_system(cores),
    ):
        yield Rehearsal(model_dir, log)
