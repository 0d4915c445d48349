"""One program on virtual CPU devices, one for each core: whether the cores agree, and agree with one core."""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lab_utils.dry_run.private.process import ChildFailed, Progress
from lab_utils.dry_run.program import Program, Role
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run.execute import executing
from lab_utils.dry_run.run.losses import look_at_losses
from lab_utils.dry_run.run.one_core import joined_batches, loss_alone
from lab_utils.dry_run.run.record import VirtualRun
from lab_utils.dry_run.run.values import look_at_values

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
    compared = joined_batches(program, one_core, taken, result)
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
    look_at_values(program, ran[0]["steps"], batches, result)
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
