"""One program on virtual CPU devices, one for each core: whether the cores agree, and agree with one core."""

import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.private import hlo as _hlo
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import Answer, ChildFailed, NoRoom, Progress
from lab_utils.dry_run.program import Input, Program, Role
from lab_utils.dry_run.records import Finding, Numerics
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.run import findings, numerics
from lab_utils.dry_run.run.findings import Batch, VirtualRun


@contextmanager
def running(
    program: Program,
    *,
    steps: int = 3,
    one_core: Program | None = None,
    on_tpu: bool = False,
) -> Iterator[Callable[[Progress | None], VirtualRun]]:
    """Context manager: `steps` steps of `program` run on as many virtual cores as it has replicas.

    Args:
        one_core: the same step lowered for 1 core with the global batch. It starts from the same
            values and is fed the same examples; its loss must be that of the cores to within
            SAME_LOSS. It is left out where random numbers or statistics of each core's own batch
            make a difference right.
        on_tpu: also the steps with matmuls as a TPU computes them (numerics.py).

    Yields:
        what waits for them and judges them.

    Raises:
        Unavailable: jax is not installed here.
    """
    result = VirtualRun()
    epochs = _epochs(program, steps)
    batches = [batch for epoch in epochs for batch in epoch]
    needed = 1 if program.reads_again else min(steps, program.least_steps or steps)
    if len(batches) < needed:
        result.findings.append(finding("TPU407", program.where, have=len(batches), need=needed))
    if not batches:
        yield lambda progress: result
        return
    if len(epochs) > 1:
        ends = counted(len(epochs[0]), "batch")
        result.notes.append(f"The data end after {ends}, so they were read again.")
    findings.look_at_batches(program, epochs, result)
    whole = _joined_batches(program, one_core, batches, result)
    programs = [(program, batches), *_beside(program, one_core, whole)]
    if on_tpu and (refusal := numerics.refusal(program)):
        on_tpu = False
        result.not_compared.append(refusal)
    if on_tpu:
        programs += numerics.variants(program, batches, numerics.in_another_order(batches))
    with executing(programs) as wait:

        def finish(progress: Progress | None) -> VirtualRun:
            say = progress or (lambda what: None)
            _result(program, result, lambda: wait(progress), on_tpu=on_tpu)
            if findings.may_hold_a_term(program, result):
                say("running a step with the same examples on all cores")
                _look_at_term(program, one_core, batches[0], result)
            if result.numerics:
                found = result.numerics
                result.findings += look_at_rounding(
                    program, batches, found, numerics.ORDER, say, result.not_compared
                )
            return result

        yield finish


def _beside(
    program: Program, one_core: Program | None, whole: list[Batch]
) -> list[tuple[Program, list[Batch]]]:
    """What one core does with the whole batches, to compare with; nothing where there are none."""
    if not whole:
        return []
    if program.batch_statistics:  # only the first step can be compared, and that roughly
        return [(one_core if program.may_add_up else _loss_only(one_core), whole[:1])]
    return [(one_core, whole)]


def _look_at_term(program: Program, one_core: Program, batch: Batch, result: VirtualRun) -> None:
    """Runs the first step again for the shares of two cores, each of which all cores get."""
    shares = [[array[[core] * program.cores] for array in batch] for core in (0, 1)]
    whole = _joined_batches(program, one_core, shares, VirtualRun())
    pairs = [
        ((program, [many]), (one_core, [one])) for many, one in zip(shares, whole, strict=True)
    ]
    try:
        with executing(list(itertools.chain(*pairs))) as wait:
            losses = [run["steps"][0]["losses"] for run in wait(None)[0]["runs"]]
    except (NoRoom, ChildFailed):
        return
    others = [
        VirtualRun(losses=[many], one_core_losses=one)
        for many, one in zip(losses[::2], losses[1::2], strict=True)
    ]
    findings.look_at_term(program, others, result)


def look_at_rounding(
    program: Program,
    batches: list[Batch],
    found: Numerics,
    noise: str,
    say: Progress,
    not_compared: list[str],
) -> list[Finding]:
    """TPU409 where a TPU's rounding hurts, at the line that does it; else why no line is known is noted."""
    if not (what := numerics.hurt(found)):
        return []
    say("looking for the line whose rounding makes the difference")
    try:
        line = _culprit(program, batches, found)
    except (NoRoom, ChildFailed) as error:
        reason = process.exception_line(error) if isinstance(error, ChildFailed) else str(error)
        not_compared.append(f"Which line's rounding makes the difference: {reason}")
        line = NOWHERE
    return [numerics.finding_of(what, program, line, noise)]


def _culprit(program: Program, batches: list[Batch], found: Numerics) -> Place:
    """The line that only needs float32 matmuls, for all to be well; NOWHERE if it is not a single one."""
    tried = numerics.with_a_line_exact(program)
    programs = [program, *tried.values()]
    with executing([(each, batches) for each in programs]) as wait:
        exact, *runs = wait(None)[0]["runs"]
    for place, run in zip(tried, runs, strict=True):
        again = numerics.compared(exact, run, exact)
        again.other_losses, again.other_weights = found.other_losses, found.other_weights
        if not numerics.hurt(again):
            return place
    return NOWHERE


def _epochs(program: Program, steps: int) -> list[list[Batch]]:
    """Batches for so many steps, or as many as there are; those of a new epoch are a list of their own."""
    epochs: list[list[Batch]] = []
    left = steps
    while left and (batches := list(itertools.islice(program.origin.read(), left))):
        epochs.append(batches)
        left -= len(batches)
        if not program.reads_again:
            break
    return epochs


def _result(
    program: Program,
    result: VirtualRun,
    wait: Callable[[], tuple[dict[str, Any], bool]],
    *,
    on_tpu: bool,
) -> None:
    """What the steps did, added to what the batches showed."""
    try:
        answer, result.cached = wait()
    except ChildFailed as error:
        reason = process.exception_line(error)
        result.findings.append(
            finding("TPU406", program.where, message=str(error), cores=program.cores, reason=reason)
        )
        return
    ran = answer["runs"]
    if on_tpu:
        *ran, as_on_tpu, other = ran
        result.numerics = numerics.compared(ran[0], as_on_tpu, other)
    result.steps = len(ran[0]["steps"])
    result.losses = [step["losses"] for step in ran[0]["steps"] if step["losses"]]
    if not result.losses:
        result.not_compared.append("Losses: the step returns none.")
    elif len(ran) > 1:
        result.one_core_losses = [step["losses"][0] for step in ran[1]["steps"]]
    findings.look_at_values(program, ran[0]["steps"], result)
    findings.look_at_losses(program, result)
    if len(ran) > 1:
        many, one = (of["steps"][0]["variables"] for of in ran)
        findings.look_at_slots(program, many, one, result)


def _joined_batches(
    program: Program, one_core: Program | None, batches: list[Batch], result: VirtualRun
) -> list[Batch]:
    """The batches for one core, joined; none where its loss is expected to differ, with a note."""
    if program.random:
        result.not_compared.append(
            f"Not compared with one core: the step draws random numbers ({program.random[0]})."
        )
        return []
    if program.batch_statistics:
        result.not_compared.append(
            "Small differences from one core: the loss was compared only roughly, to find a sum "
            "where a mean belongs, because each core computes statistics of its own share of the "
            f"batch ({program.batch_statistics[0]})."
        )
    if one_core is None:
        return []
    many, whole = ([step.inputs[n] for n in step.feeds] for step in (program, one_core))
    whole_batches = [
        [_join(array, a, b) for array, a, b in zip(batch, many, whole, strict=True)]
        for batch in batches
    ]
    if any(array is None for batch in whole_batches for array in batch):
        result.not_compared.append("Not compared with one core: its input has different shapes.")
        return []
    return whole_batches


def _join(array: np.ndarray, part: Input, whole: Input) -> np.ndarray | None:
    """The cores' parts [cores, ...] as the one core's input [1, ...]; None where they do not fit."""
    if part.shape == whole.shape:
        return array[:1]
    axes = [n for n, (a, b) in enumerate(zip(part.shape, whole.shape, strict=True)) if a != b]
    if len(axes) != 1 or part.shape[axes[0]] * len(array) != whole.shape[axes[0]]:
        return None
    return np.concatenate(list(array), axis=axes[0])[None]


def _loss_only(program: Program) -> Program:
    """The step without what it does to its variables: XLA drops what the loss does not need.

    That is the larger part of a step, and so of the seconds that its compilation takes. A step that returns
    no loss, or nothing else, stays as it is.
    """
    module = _hlo.module(program.hlo)
    entry = next(item for item in module.computations if item.id == module.entry_computation_id)
    root = next(item for item in entry.instructions if item.id == entry.root_id)
    number = next((n for n, item in enumerate(program.outputs) if item.role == Role.LOSS), None)
    if number is None or root.opcode != "tuple":
        return program
    root.operand_ids[:] = [root.operand_ids[number]]
    for shape in (root.shape, entry.program_shape.result, module.host_program_shape.result):
        del shape.tuple_shapes[number + 1 :]
        del shape.tuple_shapes[:number]
    module.input_output_alias.Clear()
    hlo = module.SerializeToString(deterministic=True)
    return replace(program, hlo=hlo, outputs=[program.outputs[number]])


def executing(programs: list[tuple[Program, list[Batch]]]) -> AbstractContextManager[Answer]:
    """Context manager: each program runs on virtual cores, a step for each of its batches.

    All start from the values of the first one. The answer has "runs", for each program {"steps": [{"losses":
    [...], "variables": {...}}, ...], "moved": ..., "apart": ...} as child.py has it. Errors are those of
    process.answering.
    """
    request, files = requested(programs)
    return process.answering("run", request, files, "jax", cores=programs[0][0].cores)


def requested(
    programs: list[tuple[Program, list[Batch]]],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the child is asked for, to run these programs, and the files that it reads."""
    files = {"values.npz": npz(programs[0][0].origin.values)}
    runs, names_of_hlo, names_of_batches = [], {}, {}
    for program, batches in programs:
        hlo = names_of_hlo.setdefault(program.hlo, f"{len(names_of_hlo)}.hlo")
        files[hlo] = program.hlo
        names = []
        for batch in batches:  # programs have batches in common
            if id(batch) not in names_of_batches:
                name = names_of_batches[id(batch)] = f"batch_{len(names_of_batches)}.npz"
                arrays = zip(program.feeds, batch, strict=True)
                files[name] = npz({str(number): array for number, array in arrays})
            names.append(names_of_batches[id(batch)])
        runs.append(
            {
                "hlo": hlo,
                "cores": program.cores,
                "inputs": [asdict(input_) for input_ in program.inputs],
                "outputs": [asdict(output) for output in program.outputs],
                "batches": names,
            }
        )
    return {"runs": runs}, files


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays as their bytes: numpy's own format has no bfloat16."""
    file = io.BytesIO()
    flat = {name: np.frombuffer(a.tobytes(), np.uint8) for name, a in arrays.items()}
    np.savez(file, **flat)
    return file.getvalue()
