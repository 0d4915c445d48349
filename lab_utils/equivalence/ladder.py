"""Climbs from variables to a short run, and says at which rung two ports part, and in what."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.equivalence.jax_sides import JaxPort, JaxSide, KerasOnJaxSide, is_on_jax
from lab_utils.equivalence.sides import EstimatorSide, KerasSide
from lab_utils.estimator import tf

RUNGS = ("variables", "outputs", "one step", "short run")
_MARKS = {True: "holds", False: "DIFFERS", None: "not run"}
TOLERANCE = 1e-3  # of outputs, loss and updates
# Of the update of what no gradient trains, such as the running variance of batch normalisation, which
# TensorFlow 1 divides by n - 1 and Keras by n.
STATISTICS_TOLERANCE = 2e-2


@dataclass(frozen=True)
class Rung:
    """One rung.

    Attributes:
        name: one of RUNGS.
        holds: None where it was not run, because a lower one did not hold.
        says: what was found (measured here), in a sentence.
    """

    name: str
    holds: bool | None
    says: str


@dataclass
class Ladder:
    """What `ladder` found. `losses`: of each step of the short run, the Estimator's and the port's."""

    rungs: list[Rung] = field(default_factory=list)
    losses: list[tuple[float, float]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every rung does: the ports are the same, as far as this batch and these steps show."""
        return all(rung.holds for rung in self.rungs)

    def __str__(self) -> str:
        names = [f"{number}. {rung.name}" for number, rung in enumerate(self.rungs, start=1)]
        return "\n".join(
            f"{name:<13} {_MARKS[rung.holds]:<12} {rung.says}".rstrip()
            for name, rung in zip(names, self.rungs, strict=True)
        )

    __repr__ = __str__


def ladder(
    estimator: Any,
    model: Any,
    batches: Iterable[tuple[Any, Any]],
    *,
    prediction: str = "logits",
    output: Callable = lambda outputs: outputs,
    to_keras: Callable[[Any, Any], tuple[Any, Any]] = lambda features, labels: (features, labels),
    names: dict[str, str] | None = None,
    run_tolerance: float = 2e-2,
) -> Ladder:
    """Compares an Estimator with the Keras model or the JAX step that it was ported to, rung by rung.

    Differences are relative: the norm of the difference over the norm of the Estimator's value, all
    measured here. The Estimator is built with use_tpu=False; nothing is written to its model_dir, and the
    port keeps its weights.

    Args:
        estimator: an Estimator, or a TPUEstimator with use_tpu=False. Its weights are those of its newest
            checkpoint, or fresh ones.
        model: the port: a compiled Keras model, on TensorFlow or on JAX, or a JaxPort.
        batches: (features, labels) as the Estimator takes them: NumPy arrays, all of one shape. The first
            serves for rungs 1 to 3, all of them for the short run.
        prediction: the entry of the Estimator's predictions that the port's output is to equal.
        output: applied to the port's output before it is compared, such as keras.ops.softmax.
        to_keras: turns the Estimator's features and labels into the port's.
        names: paths of the port's weights by names of the Estimator's variables. Without it they are paired
            by name where the port has the same names, and else in order.
        run_tolerance: of the loss in the short run, over its largest value: rounding grows from step to step.

    Returns:
        The ladder; its text names the first rung that does not hold, and what differs.

    Raises:
        ValueError: no batches, an uncompiled Keras model, or no such prediction.
    """
    batches = [tf.nest.map_structure(np.asarray, tuple(batch)) for batch in batches]
    if not batches:
        raise ValueError("no batches: the ladder needs at least one (features, labels)")
    pairs = [(batch, to_keras(*batch)) for batch in batches]
    result = Ladder()
    theirs, ours = EstimatorSide(estimator, *batches[0], prediction), _side(model, output)
    try:
        for rung in _climb(theirs, ours, pairs, names or {}, run_tolerance, result.losses):
            result.rungs.append(rung)
            if not rung.holds:
                break
    finally:
        ours.close()
    result.rungs += [Rung(name, None, "") for name in RUNGS[len(result.rungs) :]]
    return result


def _side(model: Any, output: Callable) -> KerasSide | JaxSide:
    if isinstance(model, JaxPort):
        return JaxSide(model, output)
    return KerasOnJaxSide(model, output) if is_on_jax(model) else KerasSide(model, output)


def _climb(
    theirs: EstimatorSide,
    ours: KerasSide | JaxSide,
    pairs: list[tuple[Any, Any]],
    names: dict[str, str],
    run_tolerance: float,
    losses: list[tuple[float, float]],
) -> Iterator[Rung]:
    """Yields one rung after the other; goes on only from one that holds. Fills `losses`."""
    matched, difference = _match(theirs, ours, names)
    weights = sum(variable.size for variable in theirs.variables(matched).values())
    says = f"{counted(len(matched), 'variable')}, {counted(weights, 'weight')}"
    yield Rung(RUNGS[0], not difference, difference or says)

    def equalise() -> None:
        """Both with the Estimator's first weights."""
        theirs.reset()
        values = theirs.variables(matched)
        ours.write({path: values[name] for name, path in matched.items()})

    equalise()
    (features, labels), (x, y) = pairs[0]
    left, right = theirs.outputs(features), ours.outputs(x)
    if left.shape != right.shape:
        says = f"the Estimator gives {list(left.shape)}, {ours.name} {list(right.shape)}"
        yield Rung(RUNGS[1], False, says)
    yield _judge(RUNGS[1], "outputs differ", _difference(left, right), TOLERANCE)

    random = {"the Estimator": theirs.random(), ours.name: ours.random(x, y)}
    if any(random.values()):
        who = "; ".join(f"{side} ({', '.join(ops)})" for side, ops in random.items() if ops)
        says = (
            f"a training step draws random numbers in {who}: switch dropout and augmentation off "
            "to compare"
        )
        yield Rung(RUNGS[2], False, says)
    equalise()
    before = theirs.variables(matched)
    first = theirs.step(features, labels), ours.step(x, y)
    loss = _difference(*first)
    if not loss <= TOLERANCE:
        says = f"the loss is {first[0]:.6g} in the Estimator, {first[1]:.6g} in {ours.name}"
        yield Rung(RUNGS[2], False, says)
    after, other = theirs.variables(matched), ours.variables(matched.values())
    updates = {
        name: _difference(after[name] - before[name], other[path] - before[name])
        for name, path in matched.items()
    }
    for name in theirs.untrained:
        if not updates[name] <= STATISTICS_TOLERANCE:
            what = f"the update of {name}, which no gradient trains, differs"
            yield _judge(RUNGS[2], what, updates[name], STATISTICS_TOLERANCE)
    differences = {f"the update of {name}": updates[name] for name in theirs.trained}
    differences["the loss"] = loss
    worst = max(differences, key=differences.get)
    yield _judge(RUNGS[2], f"{worst} differs", differences[worst], TOLERANCE)

    equalise()
    for batch, keras_batch in pairs:
        losses.append((theirs.step(*batch), ours.step(*keras_batch)))
    left, right = np.array(losses).T
    differences = np.abs(left - right) / np.abs(left).max()
    step = int(np.argmax(differences))
    what = f"the loss over {counted(len(losses), 'step')}, most at step {step + 1}, differs"
    yield _judge(RUNGS[3], what, float(differences[step]), run_tolerance)


def _match(
    theirs: EstimatorSide, ours: KerasSide | JaxSide, names: dict[str, str]
) -> tuple[dict[str, str], str]:
    """The Estimator's names -> the port's paths; and in what the variables differ, or ""."""
    matched = dict(names)
    for kind, left, right in (
        ("trained", theirs.trained, ours.trained),
        ("not trained", theirs.untrained, ours.untrained),
    ):
        left = [name for name in left if name not in names]
        right = [path for path in right if path not in names.values()]
        if len(left) != len(right):
            side, longer = (ours.name, right) if len(left) < len(right) else ("the Estimator", left)
            extra = longer[min(len(left), len(right)) :]
            return {}, f"only {side} has {', '.join(extra)} ({kind})"
        if set(left) == set(right):
            right = left
        matched |= dict(zip(left, right, strict=True))
    shapes = {name: variable.shape for name, variable in theirs.variables(matched).items()}
    for name, path in matched.items():
        here, there = list(shapes[name]), list(ours.variables([path])[path].shape)
        if here != there:
            return {}, f"{name} is {here} in the Estimator, {path} is {there} in {ours.name}"
    return matched, ""


def _judge(name: str, what: str, difference: float, tolerance: float) -> Rung:
    says = f"{what} by {difference:.1e} of the whole; tolerated: {tolerance:.0e}"
    return Rung(name, difference <= tolerance, says)


def _difference(left: Any, right: Any) -> float:
    """||left - right|| / ||left||, in float64; infinite where only left is zero."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    apart, whole = np.linalg.norm(left - right), np.linalg.norm(left)
    return float(apart / whole) if whole else math.inf if apart else 0.0
