"""Batches from the real input_fn of a TPUEstimator, split over the cores as TPUEstimator splits them."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.dry_run import remote
from lab_utils.dry_run.lower.errors import InputUnfit
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Mode
from lab_utils.estimator import tf, v1

_SEED = 1


@contextmanager
def fixed_seeds(seed: int | None) -> Iterator[None]:
    """Context manager: what is built in the default graph draws the same random numbers in each dry run.

    The graph's seed is `seed`, the estimator's own, where there is one. Keras takes the seeds of its
    initializers from Python's random numbers.
    """
    python, of_numpy = random.getstate(), np.random.get_state()
    v1.set_random_seed(_SEED if seed is None else seed)
    random.seed(_SEED)
    np.random.seed(_SEED)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(of_numpy)


class _Pipeline(NamedTuple):
    structure: Any  # nest of tensors: (features, labels), or (features,)
    tensors: list[tf.Tensor]
    initializer: Any


class Feed:
    """What each core gets of an input_fn.

    `features` and `labels` are nests of tf.TensorSpec with the shapes of one core (labels None
    where there are none).

    Raises:
        InputUnfit: a shape is not fixed, or its batch cannot be split over the cores.
    """

    def __init__(self, estimator: Any, input_fn: Callable, mode: str, cores: int) -> None:
        self._estimator, self._input_fn, self._mode = estimator, input_fn, mode
        with _tpu_estimator.tpu_system(cores), _tensorflow.silent_log():
            self._sharding = _tpu_estimator.sharding(estimator, mode)
            self._axes = _tpu_estimator.settings(estimator).batch_axis
            with self._graph() as pipelines:
                tensors = pipelines[0].tensors
                specs = [self._spec(tensor, axis) for tensor, axis in self._with_axes(tensors)]
                structure = tf.nest.pack_sequence_as(pipelines[0].structure, specs)
        self._cores = cores
        self.features, self.labels = structure if len(structure) == 2 else (*structure, None)

    def read(self) -> Iterator[list[np.ndarray]]:
        """Calls input_fn again and yields a global batch at a time.

        Each is a list of arrays [cores, ...], features before labels, in the order of tf.nest. The
        iterator ends where the data end for any of the cores.

        Raises:
            tf.errors.OpError: what reading the data raised.
            Unavailable: this machine cannot read them.
        """
        with (
            _tpu_estimator.tpu_system(self._cores),
            _tensorflow.silent_log(),
            self._graph() as pipelines,
            v1.Session(config=remote.SESSION) as session,
        ):
            remote.check(session.graph)
            session.run(v1.tables_initializer())
            session.run([pipeline.initializer for pipeline in pipelines])
            while True:
                try:
                    cores = [core for pipe in pipelines for core in self._cores_of(pipe, session)]
                except tf.errors.OutOfRangeError:
                    return
                yield [np.stack(values) for values in zip(*cores, strict=True)]

    def _cores_of(self, pipeline: _Pipeline, session: v1.Session) -> list[list[np.ndarray]]:
        """The flat tensors of each core that one pipeline feeds in a step."""
        count = self._sharding.replicas
        if self._sharding.kind == "per host, one batch a core":
            return [session.run(pipeline.tensors) for _ in range(count)]
        values = session.run(pipeline.tensors)
        if self._sharding.kind != "per host, split":
            return [values] * count
        split = [np.split(value, count, axis) for value, axis in self._with_axes(values)]
        return [list(core) for core in zip(*split, strict=True)]

    def _with_axes(self, tensors: list[Any]) -> list[tuple[Any, int]]:
        axes = self._axes or [0] * len(tensors)
        return list(zip(tensors, axes, strict=True))

    def _spec(self, tensor: tf.Tensor, axis: int) -> tf.TensorSpec:
        shape = tensor.shape.as_list() if tensor.shape.rank is not None else [None]
        if self._mode == Mode.PREDICT.key and shape[:1] == [None] and tensor.shape.rank:
            shape[0] = self._sharding.batch_size  # TPUEstimator pads a shorter last batch
        if None in shape:
            raise InputUnfit(f"a tensor of input_fn has no fixed shape: {tensor.shape}")
        if self._sharding.kind == "per host, split":
            if not shape or shape[axis] % self._sharding.replicas:
                raise InputUnfit(
                    f"a tensor of input_fn of shape {shape} cannot be split over "
                    f"{counted(self._sharding.replicas, 'core')} along axis {axis}"
                )
            shape[axis] //= self._sharding.replicas
        return tf.TensorSpec(shape, tensor.dtype)

    @contextmanager
    def _graph(self) -> Iterator[list[_Pipeline]]:
        """The graph of all pipelines: one for each time that TPUEstimator would call input_fn."""
        with tf.Graph().as_default(), fixed_seeds(self._estimator.config.tf_random_seed):
            yield [self._pipeline(number) for number in range(self._sharding.invocations)]

    def _pipeline(self, number: int) -> _Pipeline:
        data = _tpu_estimator.call_input_fn(self._estimator, self._input_fn, self._mode, number)
        initializer = tf.no_op()
        if isinstance(data, tf.data.Dataset):
            iterator = v1.data.make_initializable_iterator(data)
            data, initializer = iterator.get_next(), iterator.initializer
        features, labels = data if isinstance(data, tuple) else (data, None)
        structure = (features,) if labels is None else (features, labels)
        return _Pipeline(structure, tf.nest.flatten(structure), initializer)
