"""The signs of a program: what it feeds, trains, evaluates and predicts on a CPU, beside the healthy one's.

A program whose fault is gone because the feature is gone too gives other signs. The model is called on the
healthy program's batches, with weights that follow from the variables' names, so two programs that mean the
same give the same numbers whatever their style. Where training draws random numbers, what is trained is
compared, not how far.
"""

import collections
import contextlib
import inspect
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.check import same
from lab_utils.check.outcome import Wrong
from lab_utils.check.tools import expect, reason
from lab_utils.common.figures import counted
from lab_utils.dry_run.inspect import all_nodes, ancestors, is_random
from lab_utils.equivalence.sides import ModelGraph
from lab_utils.estimator import tf, tpu, v1

_BATCH, _MOST = 64, 12  # examples of a batch; batches of an input that is read
_TOLERANCE = 1e-4
_NAMES = {"train": "training", "eval": "evaluation", "infer": "prediction"}
_OPTIONS = {"eval": "eval_input_fn", "infer": "predict_input_fn"}
_ALL_REDUCE = "On a CPU there is no all-reduce: wrap the optimizer only if params['use_tpu']."


@dataclass(frozen=True)
class Port:
    """What a program's port() returns: an Estimator, or a TPUEstimator with use_tpu=False, and its inputs."""

    estimator: Any
    train: Callable
    others: dict[str, Callable]

    @classmethod
    def of(cls, result: tuple) -> "Port":
        """From the tuple (estimator, input_fn) or (estimator, input_fn, options)."""
        estimator, train, *more = result
        return cls(estimator, train, dict(more[0]) if more else {})

    def input(self, mode: str) -> Callable | None:
        """The input_fn of a mode, if there is one."""
        return self.train if mode == "train" else self.others.get(_OPTIONS[mode])

    def batches(self, mode: str) -> Any:
        """What the input_fn of a mode returns; as for Estimator, it gets params where it names them."""
        params = {**self.estimator.params, "batch_size": _BATCH, "use_tpu": False}
        input_fn = self.input(mode)
        named = "params" in inspect.signature(input_fn).parameters
        plain = not named and not isinstance(self.estimator, tpu.TPUEstimator)
        return input_fn() if plain else input_fn(params)


@dataclass(frozen=True)
class Model:
    """One mode of the model on given batches."""

    numbers: dict[str, np.ndarray]
    moved: frozenset[str]
    random: bool
    summaries: int


@dataclass(frozen=True)
class Signs:
    """What was measured of the healthy program, by mode.

    `inputs` are the batches of its own input functions, and whether these draw random numbers.
    """

    inputs: dict[str, tuple[list[tuple], bool]]
    models: dict[str, Model]


def measured(port: Port) -> Signs:
    """The signs of the healthy program, on its own batches."""
    inputs = {mode: _read(port, mode) for mode in _NAMES if port.input(mode)}
    models = {mode: _model(port, mode, batches) for mode, (batches, _) in inputs.items()}
    return Signs(inputs, models)


def difference(port: Port, healthy: Signs, weight: str) -> str:
    """A sentence on the first thing that the program does unlike the healthy one; "" for none.

    Args:
        port: the program's.
        healthy: the healthy one's signs.
        weight: the feature that is 0 for an example which only fills up a batch; "" for none.
    """
    try:
        for mode, (batches, random) in healthy.inputs.items():
            _expect_input(port, mode, batches, random, weight)
        for mode, (batches, _) in healthy.inputs.items():
            _expect_model(_attempt(_model, port, mode, batches), healthy.models[mode], mode)
    except Wrong as different:
        return str(different)
    return ""


def _read(port: Port, mode: str) -> tuple[list[tuple], bool]:
    """Batches of an input function, _MOST at most; whether it draws random numbers."""
    arrays = []
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        batch = port.batches(mode)
        if isinstance(batch, tf.data.Dataset):
            iterator = v1.data.make_initializable_iterator(batch)
            session.run(iterator.initializer)
            batch = iterator.get_next()
        session.run(v1.tables_initializer())
        batch = batch if isinstance(batch, tuple) else (batch,)
        random = any(is_random(node.op) for node in all_nodes(graph.as_graph_def()))
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while len(arrays) < _MOST:
                arrays.append(session.run(tuple(part for part in batch if part is not None)))
    return arrays, random


def _model(port: Port, mode: str, batches: list[tuple]) -> Model:
    """Calls model_fn in `mode` and runs it on `batches`: one step in training, all of them otherwise."""
    config = port.estimator.config

    def build(batch: tuple) -> Any:
        features, labels = (*batch, None)[:2]
        return port.estimator.model_fn(features, labels, mode, config)

    model = ModelGraph(config, batches[0], build)
    spec, before = model.spec, model.read()
    drawn = {name: _value(name, before[name].shape) for name in model.trained}
    model.write(drawn)
    before |= drawn
    results = spec.predictions.values() if mode == "infer" else [spec.loss]
    random = any(is_random(op.type) for op in ancestors([result.op for result in results]))
    ops = [node.op for node in all_nodes(model.graph.as_graph_def())]
    summaries = sum(op.startswith("Write") and op.endswith("Summary") for op in ops)
    numbers, moved = {}, frozenset()
    if mode == "infer":
        predictions = model.run(spec.predictions, batches[0])
        numbers = {f"the prediction {name}": value for name, value in predictions.items()}
    elif mode == "eval":
        numbers["the loss"] = model.run(spec.loss, batches[0])
        for batch in batches:
            model.run([update for _, update in spec.eval_metric_ops.values()], batch)
        for name, (value, _) in spec.eval_metric_ops.items():
            numbers[f"the metric {name}"] = model.run(value, batches[0])
    else:
        loss, _ = model.run([spec.loss, spec.train_op], batches[0])
        after = model.read()
        moved = frozenset(n for n in before if not np.array_equal(before[n], after[n]))
        moved -= {n for n in moved if _is_slot(n, model.trained)}
        numbers["the global step"] = after["global_step"]
        if not random:
            numbers["the loss"] = loss
            trained = sorted(moved & set(model.trained))
            numbers |= {f"the new value of {name}": after[name] for name in trained}
    numbers = {name: np.asarray(value, np.float64)[()] for name, value in numbers.items()}
    return Model(numbers, moved, random, summaries)


def _value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.RandomState(zlib.crc32(name.encode())).normal(0, 0.5, shape)


def _is_slot(name: str, trained: list[str]) -> bool:
    """Whether a variable is an optimizer's, which another one of the same kind names otherwise."""
    return "_power" in name or any(name.startswith(f"{each}/") for each in trained)


def _attempt(function: Callable, port: Port, mode: str, *arguments: Any) -> Any:
    """`function` on a learner's program; raises Wrong in place of whatever that raises."""
    try:
        return function(port, mode, *arguments)
    except Exception as error:
        if "CrossReplicaSum" in str(error):
            raise Wrong(_ALL_REDUCE) from error
        what = f"the input for {_NAMES[mode]}" if function is _read else _NAMES[mode]
        raise Wrong(f"On a CPU, {what} raises {reason(error)}") from error


def _expect_input(
    port: Port, mode: str, healthy: list[tuple], healthy_random: bool, weight: str
) -> None:
    what = f"The input for {_NAMES[mode]}"
    gone = f"port() gives no input function for {_NAMES[mode]} any more."
    expect(port.input(mode) is not None, gone)
    batches, random = _attempt(_read, port, mode)
    expect(healthy_random or not random, f"{what} draws random numbers, and should not.")
    lost = f"{what} no longer draws anything at random: was augmentation taken out?"
    expect(random or not healthy_random, lost)
    ours, theirs = (_columns(each, weight, random) for each in (healthy, batches))
    lacking = sorted(ours.keys() - theirs.keys())
    expect(not lacking, f"{what} no longer gives {', '.join(lacking)}.")
    expected, actual = (
        collections.Counter(zip(*(columns[name] for name in ours), strict=True))
        for columns in (ours, theirs)
    )
    if mode != "train":
        missing, other = (expected - actual).total(), (actual - expected).total()
        examples = counted(expected.total(), "example")
        once = f"{what} should give each of its {examples} once, unchanged. Missing: {missing};"
        expect(expected == actual, f"{once} changed or repeated: {other}.")
        return
    strange = len(actual.keys() - expected.keys())
    expect(not strange, f"{counted(strange, 'example')} of training cannot be found in the data.")
    share = len(actual) / len(expected)
    expect(share >= 0.6, f"Training sees {share:.0%} of the examples: the others are lost.")


def _columns(batches: list[tuple], weight: str, augmented: bool) -> dict[str, list[bytes]]:
    """The examples of some batches by feature, those of weight 0 left out, without the zeros at a row's end.

    Where they are augmented, a row's values count and not their places: a mirrored picture is the same one.
    """
    columns: dict[str, list[bytes]] = collections.defaultdict(list)
    for batch in batches:
        arrays = {}
        for part, value in zip(("features", "labels"), batch, strict=False):
            items = value.items() if isinstance(value, dict) else [("", value)]
            arrays |= {f"{part} {name}".strip(): np.asarray(array) for name, array in items}
        weights = next((arrays.pop(n) for n in list(arrays) if weight and n.endswith(weight)), None)
        for name, value in arrays.items():
            if value.dtype.kind in "biuf":
                rows = value if weights is None else value[weights.astype(bool).ravel()]
                rows = (np.sort(row, axis=None) for row in rows) if augmented else rows
                columns[name] += map(_key, rows)
    return columns


def _key(row: np.ndarray) -> bytes:
    return np.trim_zeros(np.round(np.ravel(row).astype(np.float64), 3) + 0.0, "b").tobytes()


def _expect_model(model: Model, healthy: Model, mode: str) -> None:
    what = _NAMES[mode]
    drawn = f"The model draws random numbers in {what}, and should not."
    expect(healthy.random or not model.random, drawn)
    lost = f"The model draws nothing at random in {what} any more: was dropout or noise taken out?"
    expect(model.random or not healthy.random, lost)
    for names, message in (
        (healthy.moved - model.moved, "does not change {}."),
        (model.moved - healthy.moved, "changes {}, and should not."),
    ):
        expect(not names, "A training step " + message.format(", ".join(sorted(names)[:4])))
    fewer = f"host_call writes {model.summaries} summaries; it wrote {healthy.summaries} before."
    expect(model.summaries >= healthy.summaries, fewer)
    for name, value in healthy.numbers.items():
        expect(name in model.numbers, f"In {what} {name} is missing.")
        apart = same.difference(value, model.numbers[name], _TOLERANCE)
        wrong = f"In {what} {name} is not what the same weights should give: {apart}."
        expect(not apart, wrong)
