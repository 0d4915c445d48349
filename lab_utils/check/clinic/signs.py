"""The signs of a program: what it feeds, trains, evaluates and predicts on a CPU, beside the healthy one's.

A program whose fault is gone because the feature is gone too gives other signs. The model is called on the
healthy program's batches, with weights that follow from the variables' names, so two programs that mean the
same give the same numbers whatever their style. Where training draws random numbers, what is trained is
compared, not how far.
"""

import collections
import contextlib
import inspect
import re
import tempfile
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.check import same
from lab_utils.check.outcome import Wrong
from lab_utils.check.tools import expect, failure
from lab_utils.common.figures import counted
from lab_utils.dry_run.inspect import all_nodes, ancestors, is_random, settings
from lab_utils.equivalence.sides import ModelGraph
from lab_utils.estimator import tf, tpu, v1

_BATCH, _MOST = 64, 12  # examples of a batch; batches of an input that is read
_TOLERANCE = 1e-4
_OF_LOSS = 1e-5  # which shows a weight decay of 1e-5 in one of several layers
_MANY = 64  # weights, from which on the spread of random ones is compared
_MIXED = 0.02  # of all examples, from which on an input counts as shuffled
_STEPS, _FASTER = (10, 4900), 1.5  # global steps of a schedule; where another pace is another rate
_STEEP, _CLIPPED = 100, 3  # times as large a variable; where another pace is another clipping
_KEPT = 5  # checkpoints, by a Saver that is told no number
_NEW = "the new value of"
_APPLY, _DROP = "ResourceApply", "GreaterEqual"  # ops that update variables, and that of dropout
_RATES = (" lr", " alpha")  # learning rates, as those ops call them
_SPEED = {
    "prefetch": "Prefetch",
    "a map that works on several at a time": "Parallel|MapAndBatch",
    "cache": "Cache",
}
_NAMES = {"train": "training", "eval": "evaluation", "infer": "prediction"}
_OPTIONS = {"eval": "eval_input_fn", "infer": "predict_input_fn"}
_SIZES = {"eval": "eval", "infer": "predict"}  # as the constructor calls the modes
_SAVE, _LOOP = "save_checkpoints_steps of RunConfig", "iterations_per_loop of TPUConfig"
_SIZE = "{}_batch_size of TPUEstimator"
_ALL_REDUCE = "On a CPU there is no all-reduce: wrap the optimizer only if params['use_tpu']."


@dataclass(frozen=True)
class Port:
    """What a program's port() returns: an Estimator, or a TPUEstimator with use_tpu=False, and its inputs."""

    estimator: Any
    train: Callable
    options: dict[str, Callable] = field(default_factory=dict)

    def input(self, mode: str) -> Callable | None:
        """The input_fn of a mode, if there is one."""
        return self.train if mode == "train" else self.options.get(_OPTIONS[mode])

    def batch_size(self, mode: str) -> int:
        """The constructor's batch for evaluation or prediction; _BATCH where it has none."""
        if not isinstance(self.estimator, tpu.TPUEstimator):
            return _BATCH
        return settings(self.estimator).batch_size(_SIZES[mode]) or _BATCH

    def batches(self, mode: str, size: int = _BATCH) -> Any:
        """What the input_fn of a mode returns; as for Estimator, it gets params where it names them."""
        input_fn = self.input(mode)
        takes_params = "params" in inspect.signature(input_fn).parameters
        if not takes_params and not isinstance(self.estimator, tpu.TPUEstimator):
            return input_fn()
        return input_fn({**self.estimator.params, "batch_size": size, "use_tpu": False})


@dataclass(frozen=True)
class Model:
    """One mode of the model on some batches.

    `changes` are the variables that a training step changes; `paces` is how far it moves each of the
    weights, by global step; `steep` is how far it moves all of them where one variable, by its name, makes
    the gradients large; `settings` are what training is told beside the model, by its name in a message;
    `constants` are the numbers of its optimizers but for the learning rate, such as beta1, and the rates of
    dropout; `starts` are the values from which weights are trained.
    """

    numbers: dict[str, np.ndarray]
    trained: frozenset[str]
    changes: frozenset[str]
    random: bool
    summaries: int
    paces: dict[int, dict[str, float]] = field(default_factory=dict)
    steep: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    constants: frozenset[tuple[str, str, float]] = frozenset()
    starts: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Input:
    """What an input function gives: batches, in training the same with another seed, and what sizes it makes.

    `random` says whether it draws random numbers, shuffling apart; `rows` are those of a first batch where
    params ask for _BATCH and for half of it. `count` is the number of its batches as far as tf.data knows it;
    `speed` are the transforms that do not change what comes, but how fast. `lent` means that port() gives no
    input for this mode, so that the batches are another mode's.
    """

    batches: list[tuple]
    random: bool
    again: list[tuple]
    rows: tuple[int, int]
    count: int
    speed: frozenset[str]
    lent: bool = False


Signs = dict[str, tuple[Input, Model]]  # by mode


def signs_of(port: Port) -> Signs:
    """The signs of the healthy program, on its own batches."""
    inputs = {mode: _read(port, mode) for mode in _NAMES if port.input(mode)}
    signs = {mode: (read, _model(port, mode, read.batches)) for mode, read in inputs.items()}
    if "infer" not in inputs and "eval" in inputs:
        read = inputs["eval"]
        lent = replace(read, batches=[batch[:1] for batch in read.batches], lent=True)
        with contextlib.suppress(Exception):  # a model_fn without this mode
            signs["infer"] = lent, _model(port, "infer", lent.batches)
    return signs


def difference(
    port: Port,
    healthy: Signs,
    weight: str,
    columns: Sequence[str] = (),
    same_size: bool = False,
) -> str:
    """A sentence on the first thing that the program does unlike the healthy one; "" for none.

    Args:
        port: the program's.
        healthy: the healthy one's signs.
        weight: the feature that is 0 for an example which only fills up a batch; "" for none.
        columns: predictions that may be [B, 1] as well as [B].
        same_size: the train_batch_size has to be the healthy one's.
    """
    theirs: dict[str, Model] = {}
    try:
        for mode, (given, _) in healthy.items():
            what = f"the input for {_NAMES[mode]}"
            if not given.lent:
                _expect_input(port, mode, given, weight)
        for mode, (given, model) in healthy.items():
            what = _NAMES[mode]
            theirs[mode] = _model(port, mode, given.batches)
            _flatten(theirs[mode], columns)
            _expect_model(theirs[mode], model, what)
            _expect_settings(theirs[mode], model, same_size)
        for mode, model in theirs.items():
            _expect_pace(model, healthy[mode][1])
            _expect_clipping(model, healthy[mode][1])
    except Wrong as error:
        return str(error)
    except Exception as error:  # whatever the learner's lines raise
        all_reduce = "CrossReplicaSum" in str(error)
        return _ALL_REDUCE if all_reduce else f"On a CPU, {what} raises {failure(error)}"
    return ""


def _read(port: Port, mode: str) -> Input:
    """What an input function gives, _MOST batches at most."""
    batches, ops, count = _batches(port, mode)
    again = _batches(port, mode, seed=2)[0] if mode == "train" else []
    half = _batches(port, mode, size=_BATCH // 2, most=1)[0]
    rows = tuple(len(tf.nest.flatten(some)[0]) if some else 0 for some in (batches[:1], half))
    speed = frozenset(
        what for what, kinds in _SPEED.items() if any(re.search(kinds, op) for op in ops)
    )
    return Input(batches, any(map(is_random, ops)), again, rows, count, speed)


def _batches(
    port: Port, mode: str, seed: int = 1, size: int = _BATCH, most: int = _MOST
) -> tuple[list[tuple], set[str], int]:
    """Batches of an input function; the kinds of its ops; the number of its batches, as tf.data knows it."""
    arrays, count = [], tf.data.UNKNOWN_CARDINALITY
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.set_random_seed(seed)
        with warnings.catch_warnings():  # that functions of map use this seed
            warnings.simplefilter("ignore")
            batch = port.batches(mode, size)
        if isinstance(batch, tf.data.Dataset):
            count = session.run(tf.data.experimental.cardinality(batch))
            iterator = v1.data.make_initializable_iterator(batch)
            session.run(iterator.initializer)
            batch = iterator.get_next()
        session.run(v1.tables_initializer())
        batch = batch if isinstance(batch, tuple) else (batch,)
        ops = {node.op for node in all_nodes(graph.as_graph_def())}
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while len(arrays) < most:
                arrays.append(session.run(tuple(part for part in batch if part is not None)))
    return arrays, ops, int(count)


def _model(port: Port, mode: str, batches: list[tuple]) -> Model:
    """Calls model_fn in `mode` and runs it on `batches`: one step in training, all of them otherwise."""
    config = port.estimator.config

    def build(batch: tuple) -> Any:
        features, labels = (*batch, None)[:2]
        return port.estimator.model_fn(features, labels, mode, config)

    model = ModelGraph(config, batches[0], build)
    spec, start = model.spec, model.read()
    draws = {name: np.random.RandomState(zlib.crc32(name.encode())) for name in model.trained}
    model.write({name: draw.normal(0, 0.5, start[name].shape) for name, draw in draws.items()})
    before = model.read()
    results = spec.predictions.values() if mode == "infer" else [spec.loss]
    random = any(is_random(op.type) for op in ancestors([result.op for result in results]))
    ops = [node.op for node in all_nodes(model.graph.as_graph_def())]
    summaries = sum(op.startswith("Write") and op.endswith("Summary") for op in ops)
    numbers, changes, paces, steep = {}, frozenset(), {}, {}
    if mode == "infer":
        # Strings stay on the host: a program may well keep them for a run without a TPU.
        values = {k: v for k, v in spec.predictions.items() if v.dtype != tf.string}
        predictions = model.run(values, batches[0])
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
        changes = frozenset(n for n in before if not np.array_equal(before[n], after[n]))
        # But an optimizer's own, which another optimizer of the same kind names otherwise.
        slots = tuple(f"{name}/" for name in model.trained)
        changes -= {name for name in changes if "_power" in name or name.startswith(slots)}
        numbers["the global step"] = after["global_step"]
        if not random:
            numbers["the loss"] = loss
            names = sorted(changes - {"global_step"})
            numbers |= {f"{_NEW} {name}": after[name] for name in names}
        paces = {step: _pace(model, before, step, batches[0]) for step in _STEPS}
        for name in model.trained:
            large = {**before, name: before[name] * _STEEP}
            steep[name] = _all(_pace(model, large, _STEPS[0], batches[0]))
    numbers = {name: np.asarray(value, np.float64)[()] for name, value in numbers.items()}
    told = _settings(port, spec) if mode == "train" else {}
    trained, constants = frozenset(model.trained), _constants(model.graph)
    starts = {name: start[name] for name in model.trained}
    return Model(
        numbers, trained, changes, random, summaries, paces, steep, told, constants, starts
    )


def _settings(port: Port, spec: Any) -> dict[str, Any]:
    """What a program sets, without what it leaves to the defaults."""
    config, saver = port.estimator.config, getattr(spec.scaffold, "saver", None)
    found = {
        _SAVE: config.save_checkpoints_steps,
        "tf_random_seed of RunConfig": config.tf_random_seed,
    }
    folder = Path(config.model_dir or "")  # one of Estimator's own, where the program names none
    own = folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith("tmp")
    found["model_dir of RunConfig"] = None if own else config.model_dir
    if isinstance(config, tpu.RunConfig):
        loop = config.tpu_config.iterations_per_loop
        default = tpu.TPUConfig().iterations_per_loop
        found[_LOOP] = None if loop == default else loop
        sizes = settings(port.estimator)
        found |= {
            _SIZE.format(mode): sizes.batch_size(mode) for mode in ("train", "eval", "predict")
        }
    kept = saver.saver_def.max_to_keep if saver else _KEPT
    found["max_to_keep of the Saver"] = None if kept == _KEPT else kept
    return {name: value for name, value in found.items() if value is not None}


def _constants(graph: tf.Graph) -> frozenset[tuple[str, str, float]]:
    """The numbers that training keeps: the op that takes each, what it is, and its value, rounded."""
    found = set()
    for op in graph.get_operations():
        numbers = {}
        if op.type.startswith(_APPLY):
            arguments = zip(op.op_def.input_arg, op.inputs, strict=True)
            numbers = {f"An optimizer's {argument.name}": tensor for argument, tensor in arguments}
        elif op.type == _DROP and _is_noise(op.inputs[0].op):
            numbers = {"The rate of dropout": op.inputs[1]}
        for name, tensor in numbers.items():
            value = None if tensor.shape.rank else tf.get_static_value(tensor)
            if value is not None and not name.endswith(_RATES):
                found.add((op.type, name, round(float(value), 9)))
    return frozenset(found)


def _is_noise(op: tf.Operation) -> bool:
    """Whether an op gives random numbers that no weights have a share in."""
    types = {each.type for each in ancestors([op])}
    return any(map(is_random, types)) and not any("Variable" in each for each in types)


def _pace(
    model: ModelGraph, start: dict[str, np.ndarray], step: int, batch: tuple
) -> dict[str, float]:
    """How far one training step at global step `step` moves each of the weights from `start`."""
    model.write({**start, "global_step": np.int64(step)})
    model.run(model.spec.train_op, batch)
    after = model.read()
    return {name: float(np.linalg.norm(after[name] - start[name])) for name in model.trained}


def _all(paces: dict[str, float]) -> float:
    """How far the weights move all together."""
    return float(np.linalg.norm(list(paces.values())))


def _expect_input(port: Port, mode: str, healthy: Input, weight: str) -> None:
    what = f"The input for {_NAMES[mode]}"
    expect(
        port.input(mode) is not None, f"port() gives no input function for {_NAMES[mode]} any more."
    )
    given = _read(port, mode)
    expect(healthy.random or not given.random, f"{what} draws random numbers, and should not.")
    expect(
        given.random or not healthy.random,
        f"{what} no longer draws anything at random: was augmentation taken out?",
    )
    follows = healthy.rows[0] == 2 * healthy.rows[1]
    expect(
        not follows or given.rows[0] != given.rows[1],
        f"{what} makes batches of {given.rows[0]} whatever params['batch_size'] says.",
    )
    slower = sorted(healthy.speed - given.speed)
    expect(not slower, f"{what} no longer has {' and '.join(slower)}.")
    names = _columns(healthy.batches, weight, given.random).keys()
    lacking = sorted(names - _columns(given.batches, weight, given.random).keys())
    expect(not lacking, f"{what} no longer gives {', '.join(lacking)}.")

    def examples(batches: list[tuple]) -> list[tuple[bytes, ...]]:
        columns = _columns(batches, weight, given.random)
        return list(zip(*(columns[name] for name in names), strict=True))

    ours, theirs = examples(healthy.batches), examples(given.batches)
    expected, actual = collections.Counter(ours), collections.Counter(theirs)
    if mode != "train":
        missing, other = (expected - actual).total(), (actual - expected).total()
        number = counted(expected.total(), "example")
        why = f"{what} should give each of its {number} once, unchanged. Missing: {missing};"
        expect(expected == actual, f"{why} changed or repeated: {other}.")
        size = port.batch_size(mode)
        whole, *_ = _batches(port, mode, size=size, most=-(-len(ours) // size))
        lost = (expected - collections.Counter(examples(whole))).total()
        why = f"With {_SIZES[mode]}_batch_size={size}, {_NAMES[mode]} gets {expected.total() - lost} of the"
        expect(not lost, f"{why} {number}: the others do not fill a batch, and are dropped.")
        return
    read = len(given.batches)
    count = given.count if given.count >= 0 else read
    why = (
        f"{what} ends after {count} batches of {_BATCH}, and was without end: was repeat taken out?"
    )
    endless = healthy.count == tf.data.INFINITE_CARDINALITY
    expect(not endless or given.count < 0, why)
    # Of a generator no number is known, so those that were read count.
    goes_on = healthy.count < 0 and len(healthy.batches) == _MOST
    expect(not goes_on or read == _MOST, why)
    strange = len(actual.keys() - expected.keys())
    why = " Is the augmentation another one?" if healthy.random else ""
    expect(not strange, f"{counted(strange, 'training example')} cannot be found in the data.{why}")
    share = len(actual) / len(expected)
    expect(share >= 0.6, f"Training sees {share:.0%} of the examples: the others are lost.")
    before = _mixed(ours, examples(healthy.again))
    _expect_shuffle(_mixed(theirs, examples(given.again)), before)
    epoch = len(expected)
    different = len(set(theirs[:epoch]))
    why = (
        f"Of the first {epoch} training examples only {different} are different: where repeat stands above "
        "shuffle, the buffer mixes the examples of several epochs. Shuffle first, then repeat."
    )
    whole = len(set(ours[:epoch])) - _MIXED * epoch
    expect(len(theirs) < epoch or different >= whole, why)
    expect(
        _repeats(ours, epoch) or not _repeats(theirs, epoch),
        "Training no longer shuffles again in each epoch.",
    )


def _expect_shuffle(mixed: float, before: float) -> None:
    if before < _MIXED:  # the healthy program does not shuffle, or a little
        return
    expect(mixed > 0, "Training no longer shuffles: its examples come in the same order each time.")
    why = "Training shuffles less than before: an example stays near its place in the data."
    expect(mixed > before / 2, f"{why} Where does shuffle stand, and what does its buffer hold?")


def _mixed(first: list, second: list) -> float:
    """How far examples are from their places if read with another seed, as a share of all: 0 to about 1/3."""
    places = {example: n for n, example in reversed(list(enumerate(second)))}
    ends = {example: n for n, example in reversed(list(enumerate(first)))}
    distances = [abs(n - places[example]) for example, n in ends.items() if example in places]
    return float(np.mean(distances)) / len(ends) if distances else 0.0


def _repeats(examples: list, epoch: int) -> bool:
    """Whether an epoch of so many examples has the order of the one before it."""
    following = examples[epoch:]
    return bool(following) and following == examples[: len(following)]


def _columns(batches: list[tuple], weight: str, random: bool) -> dict[str, list[bytes]]:
    """The examples of some batches by feature, those of weight 0 left out, without the zeros at a row's end.

    Of a `random` input the values in each line of a picture count, and not their places in it: a mirrored
    picture is the same one, but not one that stands on its head.
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
                rows = map(_without_order, rows) if random else rows
                flat = (np.ravel(row).astype(np.float64).round(3) + 0.0 for row in rows)
                columns[name] += [np.trim_zeros(row, "b").tobytes() for row in flat]
    return columns


def _without_order(row: np.ndarray) -> np.ndarray:
    """An example with its values sorted: those of a picture [lines, columns, ...] within each line."""
    return np.sort(row, axis=1 if row.ndim > 1 else None)


def _expect_model(model: Model, healthy: Model, what: str) -> None:
    expect(
        healthy.random or not model.random,
        f"The model draws random numbers in {what}, and should not.",
    )
    expect(
        model.random or not healthy.random,
        f"The model draws nothing at random in {what} any more: was dropout or noise taken out?",
    )
    gone, new = sorted(healthy.trained - model.trained), sorted(model.trained - healthy.trained)
    why = f"Variables have other names: {', '.join(gone)} became {', '.join(new) or 'none'}, so"
    expect(not gone, f"{why} checkpoints that are there no longer fit.")
    for names, why in (
        (healthy.changes - model.changes, "does not change {}."),
        (model.changes - healthy.changes, "changes {}, and should not."),
    ):
        expect(not names, "A training step " + why.format(", ".join(sorted(names)[:4])))
    expect(
        model.summaries >= healthy.summaries,
        f"host_call writes fewer summaries than before: {model.summaries}, not {healthy.summaries}.",
    )
    _expect_starts(model, healthy)
    _expect_constants(model, healthy)
    weights = [name for name in healthy.numbers if name.startswith(_NEW)]
    _expect_numbers(model, healthy, what, [name for name in healthy.numbers if name not in weights])
    if (
        not healthy.random
    ):  # else where the rest is right: other noise moves the weights differently
        _expect_pace(model, healthy)
    _expect_numbers(model, healthy, what, weights)


def _expect_starts(model: Model, healthy: Model) -> None:
    """Raises `Wrong` where weights start from another number, or from random ones of another size."""
    for name, before in healthy.starts.items():
        start = model.starts[name]
        same_number = np.ptp(start) == np.ptp(before) == 0 and start.flat[0] == before.flat[0]
        sizes = [np.std(each) for each in (start, before)]
        both_random = min(sizes) > 0 and (before.size < _MANY or max(sizes) < _FASTER * min(sizes))
        expect(
            bool(same_number or both_random),
            f"The training of {name} starts from other values: is the initializer another one?",
        )


def _expect_constants(model: Model, healthy: Model) -> None:
    """Raises `Wrong` where an optimizer is another one, or one of its numbers or a rate of dropout is."""
    kinds, before = ({kind for kind, *_ in each.constants} for each in (model, healthy))
    gone = sorted(k.removeprefix(_APPLY) for k in before - kinds if k.startswith(_APPLY))
    expect(
        not gone,
        f"No weights are updated by {' and '.join(gone)} any more: is the optimizer another one?",
    )
    for kind, name, value in sorted(model.constants - healthy.constants):
        before = [v for k, n, v in healthy.constants if (k, n) == (kind, name)]
        why = f"{name} is {value:g}, and was {before[0]:g}." if before else ""
        expect(not before, why)


def _expect_settings(model: Model, healthy: Model, same_size: bool) -> None:
    """Raises `Wrong` where a setting is missing, or no longer fits."""
    lost = [name for name in healthy.settings if name not in model.settings]
    expect(not lost, f"{' and '.join(lost)} was set, and is not any more.")
    name = _SIZE.format("train")
    size, before = (each.settings.get(name) for each in (model, healthy))
    expect(
        not same_size or size == before,
        f"{name} is {size}, and was {before}: it is the batch of all cores together.",
    )
    save, loop = model.settings.get(_SAVE), model.settings.get(_LOOP)
    if save and loop and healthy.settings.get(_SAVE, 0) % healthy.settings.get(_LOOP, 1) == 0:
        why = f"A checkpoint is due every {save} steps, but a loop of {loop} ends before one is written:"
        expect(save % loop == 0, f"{why} the first one is that of step {-(-save // loop) * loop}.")


def _flatten(model: Model, columns: Sequence[str]) -> None:
    """Makes [B] of those predictions that are [B, 1]."""
    for name in (f"the prediction {each}" for each in columns):
        value = model.numbers.get(name)
        if value is not None and value.ndim == 2 and value.shape[1] == 1:
            model.numbers[name] = value[:, 0]


def _expect_pace(model: Model, healthy: Model) -> None:
    for step, paces in healthy.paces.items():
        pairs = {"the weights": (_all(model.paces[step]), _all(paces))}
        if not healthy.random:  # else other noise moves a variable up to three times as far
            pairs |= {name: (model.paces[step][name], pace) for name, pace in paces.items()}
        for name, (pace, before) in pairs.items():
            times = pace / before if before else 1.0
            why = f"A training step at global step {step} moves {name} {times:.2g} times as far"
            why += " as it should: is the learning rate another one, or its schedule?"
            expect(1 / _FASTER < times < _FASTER, why)


def _expect_clipping(model: Model, healthy: Model) -> None:
    """Raises `Wrong` where large gradients move the weights by another measure than the healthy program's."""
    for name, pace in healthy.steep.items():
        times = model.steep[name] / pace if pace else 1.0
        why = f"Where {name} is {_STEEP} times as large, and gradients are large, a training step moves the"
        why += f" weights {times:.2g} times as far as it should: was the clipping of gradients changed?"
        large = max(model.steep[name], pace) > _FASTER * _all(healthy.paces[_STEPS[0]])
        expect(not large or 1 / _CLIPPED < times < _CLIPPED, why)


def _expect_numbers(model: Model, healthy: Model, what: str, names: Sequence[str]) -> None:
    for name in names:
        expect(name in model.numbers, f"In {what} {name} is missing.")
        tolerance = _OF_LOSS if name == "the loss" else _TOLERANCE
        apart = same.difference(healthy.numbers[name], model.numbers[name], tolerance)
        expect(not apart, f"In {what} {name} is not what the same weights should give: {apart}.")
