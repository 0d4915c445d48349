"""The signs of a program: what it feeds, trains, evaluates and predicts on a CPU, measured here.

The model is called on given batches with weights that follow from the variables' names, so two programs that
mean the same give the same numbers whatever their style.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.dry_run.inspect import all_nodes, ancestors, is_random
from lab_utils.estimator import tf, v1

_WRITES = ("WriteScalarSummary", "WriteHistogramSummary", "WriteSummary", "WriteImageSummary")
_BATCH, _MOST = 64, 12  # examples of a batch; batches of an input that is read


@dataclass(frozen=True)
class Port:
    """What a program's port() returns: a TPUEstimator with use_tpu=False, and its input functions."""

    estimator: Any
    train: Callable
    others: dict[str, Callable]

    @classmethod
    def of(cls, made: tuple) -> "Port":
        """From the tuple (estimator, input_fn) or (estimator, input_fn, options)."""
        estimator, train, *more = made
        return cls(estimator, train, dict(more[0]) if more else {})

    def input(self, mode: str) -> Callable | None:
        """The input_fn of a mode, if there is one."""
        return {
            "train": self.train,
            "eval": self.others.get("eval_input_fn"),
            "infer": self.others.get("predict_input_fn"),
        }[mode]


@dataclass
class Signs:
    """What was measured here; `batches` by mode are those of its own input functions."""

    batches: dict[str, list[Any]]
    random_inputs: dict[str, bool]
    models: dict[str, "Model"]


@dataclass(frozen=True)
class Model:
    """One mode of the model on given batches."""

    numbers: dict[str, np.ndarray]
    moved: frozenset[str]
    random: bool
    summaries: int


def measured(port: Port) -> Signs:
    """The signs of the healthy program, on its own batches."""
    batches, random = {}, {}
    for mode in ("train", "eval", "infer"):
        if port.input(mode):
            batches[mode], random[mode] = read(port, mode)
    models = {mode: model(port, mode, own) for mode, own in batches.items()}
    return Signs(batches, random, models)


def read(port: Port, mode: str) -> tuple[list[Any], bool]:
    """Batches of an input function, _MOST at most; whether it draws random numbers."""
    with tf.Graph().as_default() as graph:
        params = dict(port.estimator.params or {}) | {"batch_size": _BATCH, "use_tpu": False}
        given = port.input(mode)(params)
        if isinstance(given, tf.data.Dataset):
            iterator = v1.data.make_initializable_iterator(given)
            start, batch = iterator.initializer, iterator.get_next()
        else:
            start, batch = tf.no_op(), given
        batch = batch if isinstance(batch, tuple) else (batch, None)
        present = tuple(part for part in batch if part is not None)
        random = any(is_random(node.op) for node in all_nodes(graph.as_graph_def()))
        found = []
        with v1.Session(graph=graph) as session:
            session.run([start, v1.tables_initializer()])
            while len(found) < _MOST:
                try:
                    values = session.run(present)
                except tf.errors.OutOfRangeError:
                    break
                found.append((values[0], values[1] if len(values) == 2 else None))
    return found, random


def model(port: Port, mode: str, batches: list[Any]) -> Model:
    """Calls model_fn in `mode` and runs it on `batches`: one step in training, all of them otherwise."""
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        step = v1.train.create_global_step()
        feeds = tf.nest.map_structure(_placeholder, batches[0])
        config = port.estimator.config
        spec = port.estimator.model_fn(*feeds, mode, config)
        random = any(is_random(op.type) for op in ancestors([t.op for t in _results(spec, mode)]))
        nodes = all_nodes(graph.as_graph_def())
        summaries = sum(node.op in _WRITES for node in nodes)
        with v1.Session(graph=graph) as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            session.run(v1.tables_initializer())
            for each in v1.trainable_variables():
                value = _value(each.op.name, each.shape.as_list())
                session.run(each.initializer, {each.initializer.inputs[1]: value})
            return _run(session, spec, mode, feeds, batches, random, summaries, step)


def _run(session, spec, mode, feeds, batches, random, summaries, step) -> Model:
    def fed(batch: Any) -> dict:
        pairs = zip(tf.nest.flatten(feeds), tf.nest.flatten(batch), strict=True)
        return {tensor: value for tensor, value in pairs if tensor is not None}

    first, numbers, moved = fed(batches[0]), {}, frozenset()
    if mode == "infer":
        numbers = {
            f"the prediction {k}": v for k, v in session.run(spec.predictions, first).items()
        }
    elif mode == "eval":
        numbers["the loss"] = session.run(spec.loss, first)
        for batch in batches:
            session.run([update for _, update in spec.eval_metric_ops.values()], fed(batch))
        values = session.run({name: pair[0] for name, pair in spec.eval_metric_ops.items()})
        numbers |= {f"the metric {name}": value for name, value in values.items()}
    else:
        variables = {each.op.name: each for each in v1.global_variables()}
        before = session.run(variables)
        loss, _ = session.run([spec.loss, spec.train_op], first)
        after = session.run(variables)
        moved = frozenset(n for n in variables if not np.array_equal(before[n], after[n]))
        numbers["the global step"] = after["global_step"]
        if not random:
            trained = {each.op.name for each in v1.trainable_variables()}
            numbers["the loss"] = loss
            numbers |= {f"the new value of {n}": after[n] for n in sorted(moved & trained)}
    return Model(numbers, moved - _slots(moved), random, summaries)


def _slots(names: frozenset[str]) -> frozenset[str]:
    """Variables that belong to an optimizer, which another optimizer of the same kind names otherwise."""
    trained = {each.op.name for each in v1.trainable_variables()}
    return frozenset(
        n for n in names if any(n.startswith(f"{t}/") for t in trained) or "_power" in n
    )


def _results(spec: Any, mode: str) -> list[Any]:
    if mode == "infer":
        return list(spec.predictions.values())
    return [spec.loss]


def _placeholder(array: Any) -> Any:
    if array is None:
        return None
    array = np.asarray(array)
    dtype = tf.string if array.dtype.kind in "OSU" else array.dtype
    return v1.placeholder(dtype, array.shape)


def _value(name: str, shape: list[int]) -> np.ndarray:
    return np.random.RandomState(zlib.crc32(name.encode())).normal(0, 0.5, shape)
