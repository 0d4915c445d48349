"""Whether a TPU's rounding of matmuls changes what the steps of a program do, and at which line (TPU409)."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np

from lab_utils.common.figures import Figure, Kind, rounded
from lab_utils.common.source import Place
from lab_utils.dry_run.ops import of_gradient
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import Finding, Numerics
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run.precision import as_on_tpu, lines, products, without_a_seed
from lab_utils.dry_run.session import Session

Batch = list[np.ndarray]  # for each feature and label an array [cores, ...]

# A loss that is so far apart at the first step, where both have the same weights. One rounding to bfloat16
# changes a number by 0.4 % at most, so large numbers cancel here.
_OTHER_LOSS = 0.05
# Of how far the loss falls in float32, or the weights move, where they move another way.
_LESS_THAN_HALF = 0.5
# Times what another order of the examples makes, which differs from one order to the next.
_BEYOND_NOISE = 2
# A loss that falls by less tells nothing.
_FALLS = 0.05
# So many lines are tried, to see which does it: each takes a run of the steps.
_MOST_LINES = 8

# What the rounding is compared with.
ORDER, DRAWN = "another order of the examples", "another draw of examples from the batch"


def refusal(program: Program) -> str:
    """Why the steps cannot be compared with those of a TPU; "" where they can."""
    op = without_a_seed(program.hlo)
    return (
        f"What a TPU's rounding does: each run of the step draws other random numbers ({op})."
        if op
        else ""
    )


def variants(
    program: Program, batches: list[Batch], others: list[Batch]
) -> list[tuple[Program, list[Batch]]]:
    """The step as on a TPU with the same batches; the step as it is with other ones, for the noise."""
    return [(replace(program, hlo=as_on_tpu(program.hlo)), batches), (program, others)]


def in_another_order(batches: list[Batch]) -> list[Batch]:
    """The cores' shares of all batches, dealt again to cores and steps."""
    cores = len(batches[0][0])
    order = np.random.default_rng(0).permutation(len(batches) * cores)
    columns = [np.concatenate(arrays)[order] for arrays in zip(*batches, strict=True)]
    parts = [np.split(column, len(batches)) for column in columns]
    return [list(batch) for batch in zip(*parts, strict=True)]


def compared(exact: dict[str, Any], on_tpu: dict[str, Any], other: dict[str, Any]) -> Numerics:
    """What the child says of the three runs."""
    losses = [
        [sum(step["losses"]) / len(step["losses"]) for step in run["steps"] if step["losses"]]
        for run in (exact, on_tpu, other)
    ]
    moved = exact["moved"]
    weights = [run["apart"] / moved if moved else None for run in (on_tpu, other)]
    return Numerics(*losses, *weights)


def hurt(found: Numerics) -> str:
    """What the rounding does, in words; "" where it is little, or no more than another order of examples."""
    losses, on_tpu, other = found.losses, found.tpu_losses, found.other_losses
    if not all(map(math.isfinite, losses)):
        return ""
    if not all(map(math.isfinite, on_tpu)):
        return "the loss is not finite"
    if losses:
        noise = _BEYOND_NOISE * max(abs(a - b) for a, b in zip(other, losses, strict=True))
        first = abs(on_tpu[0] - losses[0])
        if first > max(_OTHER_LOSS * abs(losses[0]), noise):
            return f"the loss of the first step is {on_tpu[0]:.6g}, but {losses[0]:.6g} in float32"
        end, tpu_end = _end(losses), _end(on_tpu)
        falls = losses[0] - end
        short = tpu_end - end
        if falls > _FALLS * abs(losses[0]) and short > max(_LESS_THAN_HALF * falls, noise):
            return f"the loss falls to {tpu_end:.6g}, but to {end:.6g} in float32"
    if found.tpu_weights is not None and found.tpu_weights > max(
        _LESS_THAN_HALF, _BEYOND_NOISE * found.other_weights
    ):
        return (
            f"the final weights differ from those of float32 by {found.tpu_weights:.0%} of the "
            "distance that they moved"
        )
    return ""


def _end(losses: list[float]) -> float:
    """The mean of the last quarter of the steps."""
    last = losses[-max(1, len(losses) // 4) :]
    return sum(last) / len(last)


def tell(session: Session, found: Numerics, noise: str = ORDER) -> str:
    """Puts the losses into the session; returns how far the rounding takes loss and weights from float32."""
    session.numerics = found
    session.result.figures += [
        Figure(f"the same with a TPU's matmuls, step {number}", loss, "", Kind.MEASURED)
        for number, loss in enumerate(found.tpu_losses, 1)
    ]
    return _summary(found, noise)


def _summary(found: Numerics, noise: str) -> str:
    if not found.losses and found.tpu_weights is None:
        return (
            "The effect of a TPU's matmuls cannot be seen, because the step neither returns a "
            "loss nor trains anything."
        )
    on_tpu = [(found.tpu_loss, found.other_loss)] if found.losses else []
    on_tpu += [(found.tpu_weights, found.other_weights)] if found.tpu_weights is not None else []
    within = all(tpu <= other for tpu, other in on_tpu)
    return (
        f"With a TPU's matmuls, {_off(found, 0)}. With {noise}, {_off(found, 1)}. So the effect of "
        f"the rounding is {'within' if within else 'beyond'} the steps' own noise."
    )


def _off(found: Numerics, which: int) -> str:
    loss = (found.tpu_loss, found.other_loss)[which]
    weights = (found.tpu_weights, found.other_weights)[which]
    parts = [f"the loss is {rounded(100 * loss)} % off"] if found.losses else []
    if weights is not None:
        parts.append(
            f"the weights are off by {rounded(100 * weights)} % of the distance that they moved"
        )
    return ", ".join(parts)


def with_a_line_exact(program: Program) -> dict[Place, Program]:
    """For each of the learner's lines the step as on a TPU, but with that line's matmuls in float32.

    Those of its gradients, too. At most _MOST_LINES, in the program's order.
    """
    at_line: dict[Place, set[str]] = {}
    named = lines(program.hlo)
    for name, op in products(program.hlo).items():
        place = named[name] or program.origin.place_of(_forward(op))
        at_line.setdefault(place, set()).add(name)
    chosen = list(filter(None, at_line))[:_MOST_LINES]
    return {
        place: replace(program, hlo=as_on_tpu(program.hlo, frozenset(at_line[place])))
        for place in chosen
    }


def _forward(op: str) -> str:
    """The op whose gradient `op` is part of, else itself.

    "dense/MatMul" of "gradients/dense/MatMul_grad/MatMul_1" or "gradient_tape/dense/MatMul/MatMul_1".
    """
    op = re.sub(r"^(StatefulPartitionedCall/)?(PartitionedCall/)?", "", op)
    gradient = of_gradient(op)
    if "_grad/" in gradient:
        return gradient.partition("_grad/")[0]
    return gradient.rpartition("/")[0] or op


def finding_of(what: str, program: Program, place: Place, noise: str = ORDER) -> Finding:
    """TPU409, for what `hurt` says."""
    facts = {"what": what, "noise": noise[0].upper() + noise[1:]}
    return finding("TPU409", place or program.where, case=program.api, **facts)
