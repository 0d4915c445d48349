"""The signs of a program: what it feeds, trains, evaluates and predicts on a CPU, beside the healthy one.

A program whose fault is gone because the feature is gone too gives other signs. The model is called on the
healthy program's batches with weights that follow from the variables' names, so a right fix gives the same
numbers whatever its style. Where training draws random numbers, what is trained is compared, not how far.
"""

import collections
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.dry_run.graphs import all_nodes, ancestors
from lab_utils.estimator import tf, v1

_RANDOM = ("Random", "StatelessRandom", "TruncatedNormal", "Multinomial", "StatelessTruncated")
_WRITES = ("WriteScalarSummary", "WriteHistogramSummary", "WriteSummary", "WriteImageSummary")
_TOLERANCE = 1e-4
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


class Different(Exception):
    """The program computes something else; the message says what."""


@dataclass
class Signs:
    """What was measured here; `batches` by mode are those of its own input functions."""

    batches: dict[str, list[Any]]
    random_inputs: dict[str, bool]
    models: dict[str, "_Model"]


@dataclass(frozen=True)
class _Model:
    """One mode of the model on given batches."""

    numbers: dict[str, np.ndarray]
    moved: frozenset[str]
    random: bool
    summaries: int


def measured(port: Port, weight: str) -> Signs:
    """The signs of the healthy program, on its own batches."""
    batches, random = {}, {}
    for mode in ("train", "eval", "infer"):
        if port.input(mode):
            batches[mode], random[mode] = _read(port, mode)
    models = {mode: _model(port, mode, own) for mode, own in batches.items()}
    return Signs(batches, random, models)


def difference(port: Port, healthy: Signs, weight: str) -> str:
    """A sentence on the first thing that the program does unlike the healthy one; "" for none."""
    try:
        for mode in healthy.batches:
            _same_input(port, mode, healthy, weight)
        for mode, own in healthy.batches.items():
            _same_model(_called(port, mode, own), healthy.models[mode], mode)
    except Different as told:
        return str(told)
    return ""


_NAMES = {"train": "training", "eval": "evaluation", "infer": "prediction"}


def _same_input(port: Port, mode: str, healthy: Signs, weight: str) -> None:
    what = _NAMES[mode]
    if port.input(mode) is None:
        raise Different(f"port() gives no input function for {what} any more.")
    try:
        own, random = _read(port, mode)
    except Exception as error:  # whatever the learner's pipeline raises
        raise Different(f"On a CPU the input for {what} raises {_first(error)}") from error
    if random != healthy.random_inputs[mode]:
        raise Different(
            f"The input for {what} no longer draws anything at random: was augmentation taken out?"
            if healthy.random_inputs[mode]
            else f"The input for {what} draws random numbers, and should not."
        )
    ours, theirs = (_rows(each, weight, random) for each in (healthy.batches[mode], own))
    if lacking := set(ours.names) - set(theirs.names):
        raise Different(f"The input for {what} no longer gives {', '.join(sorted(lacking))}.")
    left, right = ours.of(ours.names), theirs.of(ours.names)
    if mode != "train":
        if left != right:
            more, fewer = sum((right - left).values()), sum((left - right).values())
            raise Different(
                f"The input for {what} should give each of its {sum(left.values())} examples once, "
                f"as it is. {fewer} of them are missing and {more} are other ones, or counted twice."
            )
        return
    if strange := set(right) - set(left):
        raise Different(f"{len(strange)} examples of training are not those of the data.")
    seen = len(set(right)) / len(set(left))
    if seen < 0.6:
        raise Different(f"Training sees {100 * seen:.0f} % of the examples: the others are lost.")


def _called(port: Port, mode: str, batches: list[Any]) -> _Model:
    try:
        return _model(port, mode, batches)
    except Different:
        raise
    except Exception as error:  # whatever the learner's model raises
        if "CrossReplicaSum" in str(error):
            raise Different(
                "On a CPU there is no all-reduce: wrap the optimizer only if params['use_tpu']."
            ) from error
        raise Different(f"On a CPU, {_NAMES[mode]} raises {_first(error)}") from error


def _same_model(own: _Model, healthy: _Model, mode: str) -> None:
    what = _NAMES[mode]
    if own.random != healthy.random:
        raise Different(
            f"The model draws nothing at random in {what} any more: was dropout or noise taken out?"
            if healthy.random
            else f"The model draws random numbers in {what}, and should not."
        )
    if lacking := sorted(healthy.moved - own.moved):
        raise Different(f"A training step does not change {', '.join(lacking[:4])}.")
    if extra := sorted(own.moved - healthy.moved):
        raise Different(f"A training step changes {', '.join(extra[:4])}, and should not.")
    if own.summaries < healthy.summaries:
        raise Different(
            f"host_call writes {own.summaries} summaries; it wrote {healthy.summaries} before."
        )
    for name, value in healthy.numbers.items():
        if name not in own.numbers:
            raise Different(f"In {what} {name} is missing.")
        other = own.numbers[name]
        if np.shape(other) != np.shape(value):
            raise Different(
                f"In {what} {name} has the shape {list(np.shape(other))}, and should have "
                f"{list(np.shape(value))}."
            )
        if not np.allclose(value, other, _TOLERANCE, _TOLERANCE * np.abs(value).max(initial=1e-6)):
            shown = (
                f"{float(other):.5g}, and the same weights should give {float(value):.5g}."
                if np.ndim(value) == 0
                else "other numbers than the same weights should give."
            )
            raise Different(f"In {what} {name} is {shown}")


def _first(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


@dataclass(frozen=True)
class _Rows:
    names: list[str]
    columns: dict[str, list[bytes]]
    count: int

    def of(self, names: Iterable[str]) -> collections.Counter:
        """The examples as a multiset."""
        return collections.Counter(zip(*(self.columns[name] for name in names), strict=True))


def _rows(batches: list[Any], weight: str, augmented: bool) -> _Rows:
    """The examples of some batches, those of weight 0 left out; without the zeros at a row's end.

    Where they are augmented, a row's values count and not their places: a mirrored picture is the same one.
    """
    columns: dict[str, list[bytes]] = collections.defaultdict(list)
    for batch in batches:
        flat = {name: np.asarray(value) for name, value in _flat(batch)}
        kept = next((v.astype(bool).ravel() for n, v in flat.items() if n.endswith(weight)), None)
        for name, value in flat.items():
            if value.dtype.kind not in "biuf" or (weight and name.endswith(weight)):
                continue
            rows = value if kept is None or not weight else value[kept]
            columns[name] += [_key(np.sort(row, axis=None) if augmented else row) for row in rows]
    return _Rows(sorted(columns), columns, len(next(iter(columns.values()), [])))


def _key(row: np.ndarray) -> bytes:
    return np.trim_zeros(np.round(np.ravel(row).astype(np.float64), 3) + 0.0, "b").tobytes()


def _flat(batch: tuple[Any, Any]) -> list[tuple[str, Any]]:
    found = []
    for part, value in zip(("features", "labels"), batch, strict=True):
        items = value.items() if isinstance(value, dict) else [("", value)]
        found += [(f"{part} {name}".strip(), each) for name, each in items if each is not None]
    return found


def _read(port: Port, mode: str) -> tuple[list[Any], bool]:
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
        random = any(node.op.startswith(_RANDOM) for node in all_nodes(graph.as_graph_def()))
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


def _model(port: Port, mode: str, batches: list[Any]) -> _Model:
    """Calls model_fn in `mode` and runs it on `batches`: one step in training, all of them otherwise."""
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        step = v1.train.create_global_step()
        feeds = tf.nest.map_structure(_placeholder, batches[0])
        config = port.estimator.config
        spec = port.estimator.model_fn(*feeds, mode, config)
        random = any(
            op.type.startswith(_RANDOM) for op in ancestors([t.op for t in _results(spec, mode)])
        )
        nodes = all_nodes(graph.as_graph_def())
        summaries = sum(node.op in _WRITES for node in nodes)
        with v1.Session(graph=graph) as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            session.run(v1.tables_initializer())
            for each in v1.trainable_variables():
                value = _value(each.op.name, each.shape.as_list())
                session.run(each.initializer, {each.initializer.inputs[1]: value})
            return _run(session, spec, mode, feeds, batches, random, summaries, step)


def _run(session, spec, mode, feeds, batches, random, summaries, step) -> _Model:
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
    return _Model(numbers, moved - _slots(moved), random, summaries)


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
