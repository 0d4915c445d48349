"""One program on virtual CPU devices, one for each core: whether the cores agree, and agree with one core."""

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.private.process import ChildFailed, Progress
from lab_utils.dry_run.program import Input, Program, Role
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run.execute import executing
from lab_utils.dry_run.run.loss import loss_alone
from lab_utils.dry_run.run.losses import look_at_losses, lost_at
from lab_utils.dry_run.run.record import Disagreement, VirtualRun

# Relative to the larger value. Summation in another order gives 1e-6 or so.
SAME_VARIABLE = 1e-5
# A line of a traceback that names the exception; XLA's own messages go on after it.
_EXCEPTION = re.compile(r"[\w.]+(Error|Exception): ")


def run_program(
    program: Program,
    *,
    steps: int = 3,
    batches: Iterable[list[np.ndarray]] | None = None,
    one_core: Program | None = None,
    progress: Progress | None = None,
) -> VirtualRun:
    """Runs `steps` steps of `program` on as many virtual cores as it has replicas.

    Args:
        batches: global batches as `Program.read` yields them; by default those.
        one_core: the same step lowered for 1 core with the global batch. It starts from the same
            values and is fed the same examples; its loss must be that of the cores to within
            SAME_LOSS. It is left out where random numbers or statistics of each core's own batch
            make a difference right.

    Raises:
        CompilerMissing: jax is not installed here.
    """
    with running(program, steps=steps, batches=batches, one_core=one_core) as finish:
        return finish(progress)


@contextmanager
def running(
    program: Program,
    *,
    steps: int = 3,
    batches: Iterable[list[np.ndarray]] | None = None,
    one_core: Program | None = None,
) -> Iterator[Callable[[Progress | None], VirtualRun]]:
    """Context manager: the steps run, as run_program has it; yields what waits for them and judges them."""
    result = VirtualRun()
    if any(each.role == Role.HOST for each in program.inputs):
        result.not_compared.append(
            "Not run: the step takes values that the host computes meanwhile."
        )
        yield lambda progress: result
        return
    taken = list(itertools.islice(program.origin.read() if batches is None else batches, steps))
    if len(taken) < steps:
        result.findings.append(
            finding("TPU407", program.where, have=len(taken), need=steps)
        )  # fmt: skip
    if not taken:
        yield lambda progress: result
        return
    _look_at_batches(program, taken, result)
    compared = _one_core_batches(program, one_core, taken, result)
    if compared and program.batch_statistics:  # the loss of the first step says all that it can
        one_core, compared = loss_alone(one_core), compared[:1]
    with executing(program, taken, one_core if compared else None, compared) as wait:
        yield lambda progress: _judged(
            program, result, taken, bool(compared), lambda: wait(progress)
        )


def _judged(
    program: Program,
    result: VirtualRun,
    batches: list[list[np.ndarray]],
    compared: bool,
    wait: Callable[[], tuple[list[dict[str, Any]], bool]],
) -> VirtualRun:
    """What the steps did, added to what the batches showed."""
    try:
        ran, result.cached = wait()
    except ChildFailed as error:
        lines = str(error).splitlines()
        reason = next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[-1])
        result.findings.append(
            finding("TPU406", program.where, message=str(error), cores=program.cores, reason=reason)
        )
        return result
    result.steps = len(ran[0]["steps"])
    result.losses = [step["losses"] for step in ran[0]["steps"] if step["losses"]]
    if not result.losses:
        result.not_compared.append("Losses: the step returns none.")
    elif compared:
        result.one_core_losses = [step["losses"][0] for step in ran[1]["steps"]]
    _look_at_values(program, ran[0]["steps"], batches, result)
    look_at_losses(program, batches, result)
    return result


def _look_at_batches(program: Program, batches: list[list[np.ndarray]], result: VirtualRun) -> None:
    """TPU404: two cores with the same examples, or a core with those of the step before."""
    earlier: dict[str, str] = {}
    for step, batch in enumerate(batches, 1):
        digests: dict[str, str] = {}
        for core in range(program.cores):
            arrays = [array[core] for array in batch]
            if all(_constant(array) for array in arrays):
                continue  # made-up data: nothing can be told from them
            digest = hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
            name = f"core {core} at step {step}"
            twin = digests.get(digest) or earlier.get(digest)
            if twin:
                which = f"{twin} and {name}"
                result.findings.append(finding("TPU404", program.where, which=which, step=step))
                return
            digests[digest] = name
        earlier = {} if program.one_batch else digests


def _constant(array: np.ndarray) -> bool:
    return array.ndim == 0 or array.shape[0] < 2 or bool((array == array[:1]).all())


def _one_core_batches(
    program: Program, one_core: Program | None, batches: list[list[np.ndarray]], result: VirtualRun
) -> list[list[np.ndarray]]:
    """The batches for one core, joined; none where its loss is expected to differ, with a note."""
    if program.random:
        result.not_compared.append(
            f"Not compared with one core: the step draws random numbers ({program.random[0]})."
        )
        return []
    if program.batch_statistics:
        result.not_compared.append(
            "The loss was compared with one core's roughly, for a sum where a mean belongs: each core "
            f"takes statistics over its own share of the batch ({program.batch_statistics[0]})."
        )
    if one_core is None:
        return []
    own, whole = ([each.inputs[n] for n in each.fed] for each in (program, one_core))
    joined = [
        [_join(array, a, b) for array, a, b in zip(batch, own, whole, strict=True)]
        for batch in batches
    ]
    if any(array is None for batch in joined for array in batch):
        result.not_compared.append("Not compared with one core: its input has other shapes.")
        return []
    return joined


def _join(array: np.ndarray, own: Input, whole: Input) -> np.ndarray | None:
    """The cores' parts [cores, ...] as the one core's input [1, ...]; None where they do not fit."""
    if own.shape == whole.shape:
        return array[:1]
    grown = [n for n, (a, b) in enumerate(zip(own.shape, whole.shape, strict=True)) if a != b]
    if len(grown) != 1 or own.shape[grown[0]] * len(array) != whole.shape[grown[0]]:
        return None
    return np.concatenate(list(array), axis=grown[0])[None]


def _look_at_values(
    program: Program,
    steps: list[dict[str, Any]],
    batches: list[list[np.ndarray]],
    result: VirtualRun,
) -> None:
    """TPU401, TPU405 and TPU408, from what the child says of each variable after each step."""
    trained = {each.name for each in program.inputs if each.trainable}
    lost = lost_at(result.losses)  # what such a loss does to the variables is not told beside it
    others = set()
    for number, step in enumerate(steps, 1):
        for name, entry in step["variables"].items():
            if not entry.get("finite", True):
                if number < lost and all(each.rule != "TPU405" for each in result.findings):
                    where = _lost(program, name, batches[0] if number == 1 else None)
                    result.findings.append(finding("TPU405", where, variable=name, step=number))
                continue
            difference = entry.get("difference", math.inf)
            if len(set(entry["digests"])) == 1 or difference <= SAME_VARIABLE * entry.get(
                "scale", 0
            ):
                continue
            if not _is_trained(name, trained):
                others.add(name)
            elif all(each.variable != name for each in result.disagreements):
                result.disagreements.append(Disagreement(name, number, difference))
    if others:
        result.notes.append(
            f"{', '.join(sorted(others)[:3])}{' ...' if len(others) > 3 else ''} differ between cores, "
            "as statistics of each core's own examples do; core 0's are saved."
        )
    if result.disagreements:
        named = [each.variable for each in result.disagreements]
        last = steps[-1]["variables"]
        result.findings.append(
            finding(
                "TPU401",
                _written(program, named[0]),
                steps=len(steps),
                variables=", ".join(named[:3])
                + (f" and {len(named) - 3} more" if named[3:] else ""),
                difference=f"{max(last[name].get('difference', 0.0) for name in named):.3g}",
            )
        )
    if len(steps) > 1 and trained and not _changed(program, trained, steps[-1]["variables"]):
        gathering = _gathering(program, trained, steps[-1]["variables"])
        if gathering:
            result.notes.append(
                f"No trained variable changed in {len(steps)} steps, but {gathering} did, as where gradients "
                "are gathered over more steps."
            )
        else:
            result.findings.append(finding("TPU408", program.where, steps=len(steps)))


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
    where = NOWHERE
    if batch:
        own = [[array[core] for array in batch] for core in range(program.cores)]
        where = program.origin.gradient_not_finite(own)
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
