"""Climbs from variables to a short run, and says at which rung two ports part, and in what."""

import base64
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.equivalence.sides import Arrays, EstimatorSide, KerasSide

RUNGS = ("variables", "outputs", "one step", "short run")


@dataclass(frozen=True)
class Rung:
    """One rung.

    Attributes:
        name: one of RUNGS.
        holds: None where it was not run, because a lower one did not hold.
        says: what was found, in a sentence.
        difference: the largest relative difference found (measured here); None for rungs without one.
        tolerance: the largest that is taken for equal.
    """

    name: str
    holds: bool | None
    says: str
    difference: float | None = None
    tolerance: float | None = None


@dataclass
class Ladder:
    """What `ladder` found. `losses`: of each step of the short run, the Estimator's and Keras's."""

    rungs: list[Rung] = field(default_factory=list)
    losses: list[tuple[float, float]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every rung does: the ports are the same, as far as this batch and these steps show."""
        return all(rung.holds for rung in self.rungs)

    def _rows(self) -> list[tuple[str, str, str]]:
        marks = {True: "holds", False: "DIFFERS", None: "not run"}
        return [
            (f"{number}. {rung.name}", marks[rung.holds], rung.says)
            for number, rung in enumerate(self.rungs, start=1)
        ]

    def __str__(self) -> str:
        return "\n".join(
            f"{name:<13} {mark:<12} {says}".rstrip() for name, mark, says in self._rows()
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        picture = io.BytesIO()
        self.plot().savefig(picture, format="svg")
        encoded = base64.b64encode(picture.getvalue()).decode()
        left = '<td style="text-align:left">'
        rows = "".join(
            f"<tr>{''.join(left + escape(cell) + '</td>' for cell in row)}</tr>"
            for row in self._rows()
        )
        return f'<table>{rows}</table><img src="data:image/svg+xml;base64,{encoded}"/>'

    def plot(self) -> Any:
        """The differences rung by rung beside what is tolerated, and both courses of the loss."""
        from lab_utils.equivalence.plot import draw

        return draw(self.rungs, self.losses)


class _Parts(Exception):
    """A rung does not hold; carries it."""

    def __init__(self, rung: Rung) -> None:
        self.rung = rung


def ladder(
    estimator: Any,
    model: Any,
    batches: Iterable[tuple[Any, Any]],
    *,
    prediction: str = "logits",
    output: Callable = lambda outputs: outputs,
    to_keras: Callable[[Any, Any], tuple[Any, Any]] = lambda features, labels: (features, labels),
    names: dict[str, str] | None = None,
    tolerance: float = 1e-3,
    kept_tolerance: float = 2e-2,
    run_tolerance: float = 2e-2,
) -> Ladder:
    """Compares an Estimator with the Keras model that it was ported to, rung by rung.

    Differences are relative: the norm of the difference over the norm of the Estimator's value, all
    measured here. The Estimator is built with use_tpu=False; nothing is written to its model_dir, and the
    Keras model keeps its weights.

    Args:
        estimator: an Estimator, or a TPUEstimator with use_tpu=False. Its weights are those of its newest
            checkpoint, or fresh ones.
        model: a compiled Keras model.
        batches: (features, labels) as the Estimator takes them: NumPy arrays, all of one shape. The first
            serves for rungs 1 to 3, all of them for the short run.
        prediction: the entry of the Estimator's predictions that the Keras model's output is to equal.
        output: applied to the Keras model's output before it is compared, such as keras.ops.softmax.
        to_keras: turns the Estimator's features and labels into the Keras model's.
        names: paths of Keras weights by names of the Estimator's variables, where their orders differ.
        tolerance: of outputs, loss and updates.
        kept_tolerance: of the update of what no gradient trains, such as the running variance of batch
            normalisation, which TensorFlow 1 divides by n - 1 and Keras by n.
        run_tolerance: of the loss in the short run, over its largest value: rounding grows from step to step.

    Returns:
        The ladder; its text names the first rung that does not hold, and what differs.

    Raises:
        ValueError: no batches, an uncompiled Keras model, or no such prediction.
    """
    batches = [_arrays(batch) for batch in batches]
    if not batches:
        raise ValueError("no batches: at least one (features, labels) is needed")
    pairs = [(batch, to_keras(*batch)) for batch in batches]
    theirs = EstimatorSide(estimator, *batches[0], prediction)
    ours = KerasSide(model, output)
    found = Ladder()
    try:
        matched, rung = _variables(theirs, ours, names or {})
        found.rungs.append(rung)
        found.rungs.append(_outputs(theirs, ours, matched, pairs[0], tolerance))
        found.rungs.append(_step(theirs, ours, matched, pairs[0], tolerance, kept_tolerance))
        found.rungs.append(_run(theirs, ours, matched, pairs, run_tolerance, found.losses))
    except _Parts as parts:
        found.rungs.append(parts.rung)
        found.rungs += [Rung(name, None, "") for name in RUNGS[len(found.rungs) :]]
    finally:
        ours.restore()
        theirs.close()
    return found


def _variables(
    theirs: EstimatorSide, ours: KerasSide, names: dict[str, str]
) -> tuple[dict[str, str], Rung]:
    """Rung 1: the Estimator's names -> Keras's paths."""
    matched = dict(names)
    for kind, left, right in (
        ("trained", theirs.trained, ours.trained),
        ("kept", theirs.kept, ours.kept),
    ):
        left = [name for name in left if name not in names]
        right = [path for path in right if path not in names.values()]
        for index in range(max(len(left), len(right))):
            if index >= len(left) or index >= len(right):
                side, extra = ("Keras", right) if index >= len(left) else ("the Estimator", left)
                says = f"{side} alone has {', '.join(extra[index:])} ({kind})"
                raise _Parts(Rung(RUNGS[0], False, says))
            matched[left[index]] = right[index]
    shapes = {name: each.shape for name, each in theirs.variables(matched).items()}
    for name, path in matched.items():
        other = ours.variables([path])[path].shape
        if shapes[name] != other:
            says = (
                f"{name} is {list(shapes[name])} in the Estimator, {path} is {list(other)} in Keras"
            )
            raise _Parts(Rung(RUNGS[0], False, says))
    weights = sum(math.prod(shape) for shape in shapes.values())
    return matched, Rung(
        RUNGS[0], True, f"{counted(len(matched), 'variable')}, {counted(weights, 'weight')}"
    )


def _outputs(theirs, ours, matched, pair, tolerance) -> Rung:
    """Rung 2."""
    _equalise(theirs, ours, matched)
    (features, _), (x, _) = pair
    left, right = theirs.outputs(features), ours.outputs(x)
    if left.shape != right.shape:
        says = f"the Estimator gives {list(left.shape)}, Keras {list(right.shape)}"
        raise _Parts(Rung(RUNGS[1], False, says))
    return _judged(RUNGS[1], "outputs", _difference(left, right), tolerance)


def _step(theirs, ours, matched, pair, tolerance, kept_tolerance) -> Rung:
    """Rung 3: the loss, then the update of each variable."""
    drawn = {"the Estimator": theirs.random(), "Keras": ours.random(*pair[1])}
    if any(drawn.values()):
        who = "; ".join(f"{side} ({', '.join(ops)})" for side, ops in drawn.items() if ops)
        says = f"a training step draws at random in {who}: switch dropout and augmentation off to compare"
        raise _Parts(Rung(RUNGS[2], False, says))
    _equalise(theirs, ours, matched)
    before = theirs.variables(matched)
    losses = theirs.step(*pair[0]), ours.step(*pair[1])
    loss = _difference(*losses)
    if not loss <= tolerance:
        says = f"the loss is {losses[0]:.6g} in the Estimator, {losses[1]:.6g} in Keras"
        raise _Parts(Rung(RUNGS[2], False, says, loss, tolerance))
    after, other = theirs.variables(matched), ours.variables(matched.values())
    updates = {
        name: _difference(after[name] - before[name], other[path] - before[name])
        for name, path in matched.items()
    }
    for name in theirs.kept:
        if not updates[name] <= kept_tolerance:
            says = f"the update of {name}, which no gradient trains, differs by {updates[name]:.1e}"
            raise _Parts(Rung(RUNGS[2], False, says, updates[name], kept_tolerance))
    worst = max(theirs.trained, key=updates.get)
    if updates[worst] < loss:
        return _judged(RUNGS[2], "the loss", loss, tolerance)
    return _judged(RUNGS[2], f"the update of {worst}", updates[worst], tolerance)


def _run(theirs, ours, matched, pairs, tolerance, losses) -> Rung:
    """Rung 4."""
    _equalise(theirs, ours, matched)
    for batch, keras_batch in pairs:
        losses.append((theirs.step(*batch), ours.step(*keras_batch)))
    left, right = np.array(losses).T
    differences = np.abs(left - right) / np.abs(left).max()
    step = int(np.argmax(differences))
    what = f"the loss over {counted(len(losses), 'step')}, most at step {step + 1},"
    return _judged(RUNGS[3], what, float(differences[step]), tolerance)


def _equalise(theirs: EstimatorSide, ours: KerasSide, matched: dict[str, str]) -> None:
    """Both with the Estimator's first weights."""
    theirs.reset()
    values = theirs.variables(matched)
    ours.write({path: values[name] for name, path in matched.items()})


def _judged(name: str, what: str, difference: float, tolerance: float) -> Rung:
    holds = difference <= tolerance
    says = f"{what} differ{'' if what == 'outputs' else 's'} by {difference:.1e} of the whole"
    rung = Rung(name, holds, f"{says}; tolerated: {tolerance:.0e}", difference, tolerance)
    if not holds:
        raise _Parts(rung)
    return rung


def _difference(left: Any, right: Any) -> float:
    """||left - right|| / ||left||, in float64; infinite where only left is zero."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    apart, whole = np.linalg.norm(left - right), np.linalg.norm(left)
    return float(apart / whole) if whole else math.inf if apart else 0.0


def _arrays(batch: tuple[Any, Any]) -> Arrays:
    import tensorflow as tf

    return tf.nest.map_structure(np.asarray, tuple(batch))
