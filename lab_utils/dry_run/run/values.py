"""What the variables of virtual cores show: that they differ, are not finite, or never change."""

import hashlib
import math
from typing import Any

import numpy as np

from lab_utils.common.source import Place
from lab_utils.dry_run.program import Program, Role
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run.losses import lost_at
from lab_utils.dry_run.run.record import VirtualRun

# Relative to the larger value. Summation in another order gives 1e-6 or so.
SAME_VARIABLE = 1e-5
_SHOWN = 3


def look_at_values(
    program: Program,
    steps: list[dict[str, Any]],
    batches: list[list[np.ndarray]],
    result: VirtualRun,
) -> None:
    """TPU401, TPU405 and TPU408, from what the child says of each variable after each step."""
    result.findings += _not_finite(program, steps, batches, result.losses)
    trained = {each.name for each in program.inputs if each.trainable}
    differing = _differing(steps)
    others = sorted(name for name in differing if not _is_trained(name, trained))
    if others:
        result.notes.append(
            f"{', '.join(others[:_SHOWN])}{' ...' if others[_SHOWN:] else ''} differ between cores, "
            "as statistics of each core's own examples do; core 0's are saved."
        )
    result.drifted = names = [name for name in differing if name not in others]
    after = steps[-1]["variables"]
    if names:
        more = f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else ""
        result.findings.append(
            finding(
                "TPU401",
                _written(program, names[0]),
                steps=len(steps),
                variables=", ".join(names[:_SHOWN]) + more,
                difference=f"{max(after[name].get('difference', 0.0) for name in names):.3g}",
            )
        )
    if len(steps) == 1 or not trained or _changed(program, trained, after):
        return
    if gathering := _gathering(program, trained, after):
        result.notes.append(
            f"No trained variable changed in {len(steps)} steps, but {gathering} did, as where gradients "
            "are gathered over more steps."
        )
    else:
        result.findings.append(finding("TPU408", program.where, steps=len(steps)))


def _not_finite(
    program: Program,
    steps: list[dict[str, Any]],
    batches: list[list[np.ndarray]],
    losses: list[list[float]],
) -> list[Finding]:
    """TPU405 for the first such variable; what a lost loss does to the variables is not told beside it."""
    lost = lost_at(losses)
    for number, step in enumerate(steps, 1):
        for name, entry in step["variables"].items():
            if number < lost and not entry.get("finite", True):
                where = _lost(program, name, batches[0] if number == 1 else None)
                return [finding("TPU405", where, variable=name, step=number)]
    return []


def _differing(steps: list[dict[str, Any]]) -> list[str]:
    """The variables that differ between the cores, in the order in which they begin to."""
    names = {}
    for step in steps:
        for name, entry in step["variables"].items():
            difference = entry.get("difference", math.inf)
            same = len(set(entry["digests"])) == 1
            same = same or difference <= SAME_VARIABLE * entry.get("scale", 0)
            if not same and entry.get("finite", True):
                names[name] = None
    return list(names)


def _gathering(program: Program, trained: set[str], after: dict[str, Any]) -> str:
    """A variable that changed and may hold gradients for a later step; "" where there is none.

    Slots of an optimizer, averages of batch normalisation and counters change in any step.
    """
    shapes = {each.shape for each in program.inputs if each.trainable}
    for each in program.inputs:
        if (
            each.role == Role.VARIABLE
            and each.shape in shapes
            and "int" not in each.dtype
            and not _is_trained(each.name, trained)
            and "moving_" not in each.name
            and _changed(program, {each.name}, after)
        ):
            return each.name
    return ""


def _lost(program: Program, variable: str, batch: list[np.ndarray] | None) -> Place:
    """The line whose gradient is not finite with the first batch, else the one that writes the variable."""
    where = None
    if batch:
        parts = [[array[core] for array in batch] for core in range(program.cores)]
        where = program.origin.gradient_not_finite(parts)
    return where or _written(program, variable)


def _written(program: Program, variable: str) -> Place:
    """The line that gives a variable its new value; the step's own where it is not known."""
    return program.origin.written(variable) or program.where


def _is_trained(name: str, trained: set[str]) -> bool:
    return name in trained or any(name.startswith(f"{each}/") for each in trained)


def _changed(program: Program, trained: set[str], after: dict[str, Any]) -> bool:
    for name in trained & after.keys():
        before = hashlib.sha256(program.origin.values[name].tobytes()).hexdigest()[:16]
        if any(digest != before for digest in after[name]["digests"]):
            return True
    return False
