"""What a run on virtual cores shows: of its batches, its losses and its variables (rules TPU4xx)."""

import functools
import hashlib
import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab_utils.common.source import Place
from lab_utils.dry_run.program import Api, Program, Role
from lab_utils.dry_run.records import Finding, Mode, Numerics
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run.verdicts import (
    LEAST_RATIO,
    LEAST_TERM,
    OWN_AVERAGE,
    SAME_LOSS,
    SAME_VARIABLE,
    Ran,
    depends_on_cores,
    is_a_term,
    least_ratio,
    no_change,
    not_finite,
)
from lab_utils.dry_run.wording import some

# What becomes of variables that differ between the cores by right.
_SAVED = {
    Api.ESTIMATOR: "TPUEstimator saves the values of core 0.",
    Api.STRATEGY: (
        "When tf.distribute reads or saves such variables, it combines them as their aggregation "
        "says."
    ),
}

Batch = list[np.ndarray]  # for each feature and label an array [cores, ...]


@dataclass
class VirtualRun:
    """What happened on virtual cores.

    Attributes:
        steps: how many ran.
        losses: of each step, one for each core; empty where the step returns none.
        one_core_losses: of each step, of one core fed the whole global batch; empty where that was
            not run. Only of the first step, where cores take statistics of their own examples.
        notes: what was seen and is not a fault.
        doubt: what may explain that the losses of many cores and of one are a little apart.
        not_compared: what was not run or not compared, and why.
        cached: an earlier dry run ran the same program from the same values on the same batches.
        numerics: the same steps as a TPU's matrix unit computes them, where that was asked for.
    """

    steps: int = 0
    losses: list[list[float]] = field(default_factory=list)
    one_core_losses: list[float] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubt: str = ""
    not_compared: list[str] = field(default_factory=list)
    cached: bool = False
    numerics: Numerics | None = None


def look_at_batches(program: Program, epochs: list[list[Batch]], result: VirtualRun) -> None:
    """TPU404: two cores with the same examples, or a core with those of the step before in its epoch."""
    earlier: dict[str, str] = {}
    numbered = [(number, batch) for epoch in epochs for number, batch in enumerate(epoch)]
    for step, (number, batch) in enumerate(numbered, 1):
        digests: dict[str, str] = {}
        for core in range(program.cores):
            arrays = [array[core] for array in batch]
            if all(_constant(array) for array in arrays):
                continue  # made-up data: nothing can be told from them
            digest = hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
            name = f"core {core} at step {step}"
            twin = digests.get(digest) or (number and earlier.get(digest))
            if twin:
                which = f"{twin} and {name}"
                result.findings.append(finding("TPU404", program.where, which=which, step=step))
                return
            digests[digest] = name
        earlier = digests


def _constant(array: np.ndarray) -> bool:
    return array.ndim == 0 or array.shape[0] < 2 or bool((array == array[:1]).all())


def look_at_losses(program: Program, result: VirtualRun) -> None:
    """TPU403 where one core finds another loss."""
    one = result.one_core_losses
    if not one or not all(map(math.isfinite, itertools.chain(*result.losses))):
        return
    many = means_of(program, result.losses, one)
    for number, (a, b) in enumerate(zip(many, one, strict=False), 1):
        if not math.isclose(a, b, rel_tol=SAME_LOSS):
            # From the second step on the trained variables count: a gradient that is `cores` times too
            # large shows in how far the loss has moved.
            scale = max(abs(a), abs(b)) if number == 1 else max(abs(a - many[0]), abs(b - one[0]))
            _judge(program, number, (a, b), scale, result)
            return
    off = abs(many[0] - one[0]) / max(abs(many[0]), abs(one[0]), 1e-30)
    if program.joined_statistics and off > SAME_VARIABLE:
        result.not_compared.append(
            f"TPU403: {program.joined_statistics[0].position} averages variances over the cores, and "
            f"ignores how much their means differ. With this batch, this changes the loss by only {off:.2%}."
        )


def means_of(program: Program, losses: list[list[float]], one: list[float]) -> list[float]:
    """The mean loss of the cores at each step, or their sum where that may be and is nearer to one core's."""
    many = [sum(values) / len(values) for values in losses]
    total = [sum(values) for values in losses]
    is_sum = program.may_add_up and abs(total[0] - one[0]) < abs(many[0] - one[0])
    return total if is_sum else many


def _judge(
    program: Program, number: int, losses: tuple[float, float], scale: float, result: VirtualRun
) -> None:
    """What it says that the losses of many cores and of one are apart at a step, beside their size there."""
    many, one = losses
    if program.batch_statistics:
        small, large = sorted(map(abs, losses))
        if number == 1 and large > program.cores / LEAST_RATIO * small:
            result.findings.append(_other_loss(program, number, many, one))
    elif program.joined_statistics or abs(many - one) > OWN_AVERAGE * scale:
        result.findings.append(_other_loss(program, number, many, one))
    else:
        result.doubt = (
            f"At step {number}, the mean loss of the cores is {many:.6g}, and that of one core is {one:.6g}. "
            "Such a difference can arise if each core averages over its own number of examples."
        )


def may_hold_a_term(program: Program, result: VirtualRun) -> bool:
    """Whether the losses of the first step are apart, and so little that no rule has told it yet."""
    if not result.one_core_losses or any(earlier.rule == "TPU403" for earlier in result.findings):
        return False
    is_rough = program.batch_statistics or any(
        {"bf16", "f16"}.intersection(matmul.dtypes) for matmul in program.matmuls
    )
    return not is_rough and not math.isclose(*_first_losses(program, result), rel_tol=LEAST_TERM)


def look_at_term(program: Program, others: list[VirtualRun], result: VirtualRun) -> None:
    """TPU403, as a note, where `is_a_term`, if all cores have the same examples in `others`.

    A number of the program may have been divided by that of the cores before, which makes it right.
    """
    losses = [_first_losses(program, run) for run in (result, *others)]
    if is_a_term(losses):
        result.findings.append(_other_loss(program, 1, *losses[0], note=True))
        result.doubt = ""


def _first_losses(program: Program, result: VirtualRun) -> tuple[float, float]:
    """The losses of many cores and of one at the first step."""
    one = result.one_core_losses[:1]
    return means_of(program, result.losses[:1], one)[0], one[0]


def _other_loss(
    program: Program, step: int, many: float, one: float, *, note: bool = False
) -> Finding:
    where, origin = program.place_of_sum, program.origin
    first = "shares" if program.api is Api.STRATEGY else "loss"
    case = program.api if step > 1 else first
    if step == 1 and program.joined_statistics:
        where, case = program.joined_statistics[0], "variance"
    if not where:  # a loss that differs only later shows how variables are changed
        variable = next((array.name for array in program.inputs if array.trainable), "")
        where = origin.place_of_write(variable) if variable and step > 1 else origin.loss
    return depends_on_cores(
        where or program.where, step, "the mean loss over the cores", (many, one), case, note=note
    )


def look_at_slots(program: Program, many: dict, one: dict, result: VirtualRun) -> None:
    """TPU403 for gradients that are summed while the rate is still too small to show in a loss.

    Args:
        many, one: what the child says of the variables after the first step on all cores and on one core. A
            variable that began at zero then holds the step's gradients, if it has the shape of a trained one
            and does not differ between the cores, as the momentum of an optimizer.
    """
    if any(earlier.rule == "TPU403" for earlier in result.findings):
        return
    shapes = {array.shape for array in program.inputs if array.trainable and array.shape}
    names = {
        array.name for array in program.inputs if array.shape in shapes and not array.trainable
    }
    names &= (many.keys() & one.keys()) - set(_differing([{"variables": many}]))
    slots = [
        (one[name]["norm"], name)
        for name in names
        if not program.origin.values[name].any()
        and one[name].get("norm", 0) > 0
        and math.isfinite(many[name]["norm"] + one[name]["norm"])
    ]
    if not slots:
        return
    norm, name = max(slots)  # small ones may hold rounding errors
    # Averaged gradients, clipped or not, make it about as large as one core's; summed ones of N cores sqrt(N)
    # to N times as large.
    if many[name]["norm"] > least_ratio(program.cores, bool(program.batch_statistics)) * norm:
        where = program.origin.place_of_write(name)
        what = f"the norm of {name}, which holds gradients,"
        values, at = (many[name]["norm"], norm), where or program.where
        result.findings.append(depends_on_cores(at, 1, what, values, program.api))


def look_at_values(program: Program, steps: list[dict[str, Any]], result: VirtualRun) -> None:
    """TPU401, TPU402, TPU405 and TPU408, from what the child says of losses and variables of each step."""
    where = program.origin.loss or program.where
    ran = [Ran(step["losses"], _not_finite(step["variables"])) for step in steps]
    result.findings += not_finite(ran, where, functools.partial(_place_of_write, program))
    trainable = {array.name for array in program.inputs if array.trainable}
    differing = _differing(steps)
    others = sorted(name for name in differing if not _is_trained(name, trainable))
    if others:
        result.notes.append(
            f"{some(others)} differ between cores, which is normal for statistics of each core's "
            f"own examples. {_SAVED[program.api]}"
        )
    names = [name for name in differing if name not in others]
    after = steps[-1]["variables"]
    if names:
        difference = max(after[name].get("difference", 0.0) for name in names)
        result.findings.append(
            finding(
                "TPU401",
                _place_of_write(program, names[0]),
                steps=len(steps),
                variables=some(names),
                difference=f"{difference:.3g}",
                case=program.api,
            )
        )
    may_not_change = len(steps) == 1 or not trainable or program.mode == Mode.FORWARD
    if may_not_change or _has_changed(program, trainable, after):
        return
    if accumulator := _accumulator(program, trainable, after):
        result.notes.append(
            f"No trained variable changed in {len(steps)} steps, but {accumulator} did, so the "
            "program may accumulate gradients over more steps."
        )
    else:
        trained = ((array.name, array.dtype) for array in program.inputs if array.trainable)
        result.findings.append(no_change(program.where, len(steps), program.api, trained))


def _not_finite(variables: dict[str, Any]) -> list[str]:
    return [name for name, entry in variables.items() if not entry.get("finite", True)]


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


# "SGD/m/dense/kernel". Those of an Estimator begin with the name of their variable.
_SLOT_OF_KERAS = re.compile(r"\w+/(m|v|momentum|velocity)/")


def _accumulator(program: Program, trainable: set[str], after: dict[str, Any]) -> str:
    """A variable that changed and may hold gradients for a later step; "" where there is none.

    Slots of an optimizer, averages of batch normalisation and counters change in any step.
    """
    shapes = {variable.shape for variable in program.inputs if variable.trainable}
    for variable in program.inputs:
        if (
            variable.role == Role.VARIABLE
            and variable.shape in shapes
            and "int" not in variable.dtype
            and not _is_trained(variable.name, trainable)
            and not _SLOT_OF_KERAS.match(variable.name)
            and "moving_" not in variable.name
            and _has_changed(program, {variable.name}, after)
        ):
            return variable.name
    return ""


def _place_of_write(program: Program, variable: str) -> Place:
    """The line that gives a variable its new value; the step's own where it is not known."""
    return program.origin.place_of_write(variable) or program.where


def _is_trained(name: str, trainable: set[str]) -> bool:
    return name in trainable or any(name.startswith(f"{variable}/") for variable in trainable)


def _has_changed(program: Program, names: set[str], after: dict[str, Any]) -> bool:
    for name in names & after.keys():
        before = hashlib.sha256(program.origin.values[name].tobytes()).hexdigest()[:16]
        if any(digest != before for digest in after[name]["digests"]):
            return True
    return False
