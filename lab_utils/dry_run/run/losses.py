"""What the losses of virtual cores show: that one is not finite, or is not what one core finds."""

import math

import numpy as np

from lab_utils.common.source import NOWHERE
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run.record import VirtualRun

# Relative to the larger value. Summation in another order gives 1e-6 or so.
SAME_LOSS = 1e-3
# Beyond SAME_LOSS, up to this: a loss averaged on each core over its own number of weighted examples.
OWN_AVERAGE = 0.2
# With statistics of each core's own batch, the losses may differ; a sum makes them `cores` times apart.
ROUGHLY = 1.6


def look_at_losses(program: Program, batches: list[list[np.ndarray]], result: VirtualRun) -> None:
    """TPU402 for a loss that is not finite; TPU403 where one core finds another loss."""
    lost = lost_at(result.losses)
    if lost < math.inf:
        if not any(each.rule == "TPU405" for each in result.findings):
            result.findings.append(_not_finite(program, batches, int(lost), result.losses))
        return
    if not result.one_core_losses:
        return
    one = result.one_core_losses
    many = [sum(losses) / len(losses) for losses in result.losses]
    total = [sum(losses) for losses in result.losses]
    if program.may_add_up and abs(total[0] - one[0]) < abs(many[0] - one[0]):
        many = total
    for number, (a, b) in enumerate(zip(many, one, strict=False), 1):
        if abs(a - b) <= SAME_LOSS * max(abs(a), abs(b)):
            continue
        if program.batch_statistics:
            if number == 1 and max(abs(a), abs(b)) > program.cores / ROUGHLY * min(abs(a), abs(b)):
                result.findings.append(_other_loss(program, number, a, b))
            return
        # From the second step on the trained variables count: a gradient that is `cores` times too
        # large shows in how far the loss has moved.
        moved = max(abs(a - many[0]), abs(b - one[0]))
        if abs(a - b) > OWN_AVERAGE * (max(abs(a), abs(b)) if number == 1 else moved):
            result.findings.append(_other_loss(program, number, a, b))
            return
        result.notes.append(
            f"At step {number} the mean loss of the cores is {a:.6g}, and one core's {b:.6g}: "
            "within what an average over each core's own number of examples makes."
        )
        return


def lost_at(losses: list[list[float]]) -> float:
    """The first step (from 1) at which a core's loss is not finite; infinity if there is none."""
    lost = (step for step, each in enumerate(losses, 1) if not all(map(math.isfinite, each)))
    return next(lost, math.inf)


def _not_finite(
    program: Program, batches: list[list[np.ndarray]], step: int, losses: list[list[float]]
) -> Finding:
    core, loss = next(
        (core, loss) for core, loss in enumerate(losses[step - 1]) if not math.isfinite(loss)
    )
    where = NOWHERE
    if step == 1:
        where = program.origin.not_finite([[array[core] for array in batches[0]]])
    where = where or program.origin.loss
    return finding("TPU402", where or program.where, loss=loss, step=step)


def _other_loss(program: Program, step: int, many: float, one: float) -> Finding:
    where, origin = program.summed, program.origin
    if not where:  # a loss that differs only later shows how variables are changed
        trained = next((each.name for each in program.inputs if each.trainable), "")
        first = step == 1 or not trained
        where = origin.loss if first else origin.written(trained)
    where = where or program.where
    return finding("TPU403", where, step=step, many=f"{many:.6g}", one=f"{one:.6g}")
