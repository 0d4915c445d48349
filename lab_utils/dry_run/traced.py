"""What tracing one mode of a TPUEstimator gave."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.records import Mode
from lab_utils.estimator import tf


@dataclass
class Trace:
    """One mode's graph, as far as it could be built.

    Attributes:
        mode: TRAIN, EVAL, PREDICT or SERVING.
        cores: of the TPU system that the estimator was told of.
        replicas: copies of the model on them, fewer where a copy takes several cores; 0 if not known.
        global_batch: the batch size that the constructor got for this mode.
        graph: the whole graph, there also after an error (None if it fell before input_fn).
        core_graph: the graph in which model_fn ran, one core's step (in serving, the whole graph).
        features, labels: what model_fn got.
        spec: what model_fn returned (None if it raised).
        error: the genuine exception, with its traceback.
        log: TensorFlow's lines of level WARNING and above.
        borrowed_input: eval or predict was traced with the training input_fn.
        model_fn, input_fn: the functions that were called.
        probe: no input_fn was given for this mode, and the training one is tried. Batch sizes are set
            by habit: an error is kept only where model_fn came as far as this mode's own results.
        parts: the arguments that model_fn gave to the spec that it made last, raising or not.
        made_at: the learner's line that made it.
        not_checked: what could not be told of this mode, and why.
    """

    mode: Mode
    cores: int
    global_batch: int | None
    graph: tf.Graph | None = None
    core_graph: Any = None
    features: Any = None
    labels: Any = None
    spec: Any = None
    error: Exception | None = None
    log: list[str] = field(default_factory=list)
    borrowed_input: bool = False
    probe: bool = False
    replicas: int = 0
    parts: frozenset[str] = frozenset()
    made_at: Place = NOWHERE
    not_checked: list[str] = field(default_factory=list)
    model_fn: Callable | None = None
    input_fn: Callable | None = None

    @property
    def per_core_batch(self) -> int | None:
        """The batch of one core, or None where there is no global batch or it does not divide."""
        replicas = self.replicas or self.cores
        if not self.global_batch or self.global_batch % replicas:
            return None
        return self.global_batch // replicas
