"""Stage 3: the step, compiled by libtpu for a topology that need not be here.

The compiler works in a process of its own; its answers are cached.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from lab_utils.common.figures import Figure, Kind, counted
from lab_utils.dry_run import cache
from lab_utils.dry_run.compile.figures import (
    Compiled,
    add_figures,
    by_line,
    of_collectives,
    placed,
)
from lab_utils.dry_run.compile.findings import findings_of, merged, out_of_memory
from lab_utils.dry_run.compile.hlo.summary import Summary, summarise
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import CompilerMissing, Progress
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import CompiledStep, Memory, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.session import Session, Skip, leaves_room
from lab_utils.runtime import chips
from lab_utils.runtime.chips import BadTopology

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"([\d.]+)([KMGT]?)"
_OUT_OF_MEMORY = (
    re.compile(rf"total memory required for [\w ]+ \({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    re.compile(rf"Used {_SIZE} of {_SIZE} hbm"),  # of older runtimes
)


def carry_out(session: Session) -> Generator[None, None, str]:
    """Stage "compile"; returns its detail. Raises Skip where the compiler is not installed.

    Beside the compiler the next step is lowered, and the next stage begins. Steps are compiled side by side
    where they leave room, else each when the one before it is done.
    """
    compiled: list[Compiled] = []
    outcomes: list[Callable[[], str]] = []
    with ExitStack() as compilers:

        def start(program: Program) -> Callable[[Progress | None], Compiled]:
            session.say(f"{program.name} for {session.topology}")
            return compilers.enter_context(compiling(program, session.topology))

        def outcome(program: Program, finish: Callable[[Progress | None], Compiled] | None) -> str:
            compiled.append((finish or start(program))(session.say))
            return _taken(session, compiled[-1])

        try:
            for mode in session.modes_to_compile():
                try:
                    program = session.program(mode)
                except (CannotLower, InputUnfit) as error:
                    if mode is Mode.TRAIN:
                        raise
                    outcomes.append(partial(str, session.cannot_lower(mode, error)[1]))
                    continue
                together = not outcomes or leaves_room(program)
                outcomes.append(partial(outcome, program, start(program) if together else None))
        except CompilerMissing as error:
            raise Skip(f"cannot be checked here: {error}") from error
        yield
        detail = ", ".join([each() for each in outcomes])
    if session.largest_batch and compiled:
        largest = largest_batch(
            lambda batch: session.workload.lower(session.cores, global_batch=batch * session.cores),
            session.topology,
            known=compiled[0],
        )
        session.result.figures.append(
            Figure("largest batch a core that fits", float(largest), "examples", Kind.COMPILER)
        )
    return detail


def _taken(session: Session, compiled: Compiled) -> str:
    """Adds what the compiler said of a step to the session; returns it in words."""
    program = compiled.program
    session.result.findings = merged([*session.result.findings, *compiled.findings])
    session.compiled.append(compiled.step)
    session.result.figures += of_collectives(compiled)
    if program.left_out:
        session.not_checked.append(program.left_out)
    return f"{compiled.step.name} {compiled.outcome}{_shared(program)}"


def _shared(program: Program) -> str:
    """Over which mesh the cores share the step, where they do."""
    if program.partition is None:
        return ""
    mesh = ", ".join(f"{axis}={size}" for axis, size in program.partition.mesh.items())
    return f" for the mesh {mesh}" if mesh else " for one core"


def compile_program(program: Program, topology: str) -> Compiled:
    """Compiles a program for all cores of `topology`.

    Too little memory, or an op that the compiler refuses, is a finding of the result.

    Raises:
        CompilerMissing: jax or libtpu is not installed here.
        BadTopology: libtpu does not know the topology, or it has not the program's number of cores.
        ChildFailed: the compiler's process ended without an answer.
    """
    with compiling(program, topology) as finish:
        return finish(None)


@contextmanager
def compiling(program: Program, topology: str) -> Iterator[Callable[[Progress | None], Compiled]]:
    """Context manager: the compiler works on a program; yields what waits for it.

    As compile_program, with which errors are raised by the one or the other.
    """
    chip, cores = chips.parse(topology)
    if cores != program.cores:
        raise BadTopology(
            f"{topology} has {counted(cores, 'core')}, and the program was lowered for {program.cores}"
        )
    with asked(program, topology, cores) as answer:
        yield lambda progress: _judged(program, topology, chip, answer(progress))


@contextmanager
def asked(
    program: Program, topology: str, cores: int
) -> Iterator[Callable[[Progress | None], dict[str, Any]]]:
    """Context manager: the compiler works on a program for `cores` cores of `topology`.

    Yields:
        what waits for the answer: "memory", "cost" and "hlo", the optimised text, of a program that was
        compiled; else "refused" ("topology" or "program") and "message". "cached" where it is an earlier one.

    Raises:
        CompilerMissing: jax or libtpu is not installed here.
        ChildFailed: the process ended without an answer (what waits raises it).
    """
    parts = program.partition.cores if program.partition else 0
    name = cache.key(program.hlo, parts, topology, process.versions())
    if (entry := cache.read(name)) is not None:
        yield lambda progress: entry | {"cached": True}
        return
    process.require("jax", "libtpu")
    request = {"topology": topology, "cores": cores, "partitions": parts}

    def wait(progress: Progress | None) -> dict[str, Any]:
        answer, files = running.result(progress)
        if "refused" not in answer:
            answer["hlo"] = (files / "optimised.txt").read_text(encoding="utf-8")
        if answer.get("refused") != "topology":
            cache.write(name, answer)
        return answer

    with process.started("compile", request, {"program.hlo": program.hlo}) as running:
        yield wait


def _judged(program: Program, topology: str, chip: chips.Chip, answer: dict[str, Any]) -> Compiled:
    if answer.get("refused") == "topology":
        raise BadTopology(f"{topology}: {answer['message']}. Accepted: {chips.ACCEPTED}")
    compiled = Compiled(
        topology,
        chip,
        program,
        CompiledStep(f"{program.mode} step", mode=Mode(program.mode)),
        cached="cached" in answer,
    )
    compiled.step.memory.available = Figure(
        "memory that a program may use", chip.limit, "bytes", Kind.QUOTED, chips.LIBTPU
    )
    if answer.get("refused") == "program":
        _explain_refusal(compiled, answer["message"])
        return compiled
    compiled.summary = summarise(answer["hlo"])
    add_figures(compiled, answer)
    compiled.findings = findings_of(compiled)
    compiled.step.lines = by_line(placed(compiled.summary.spans, program.origin.place_of))
    return compiled


def largest_batch(lower: Callable[[int], Program], topology: str, *, known: Compiled) -> int:
    """The largest batch a core that fits, a multiple of 8; 0 if none does.

    Batches up to 16 times that of `known` are tried.

    Args:
        lower: gives the program for a batch a core.
        known: the step as it was compiled for some batch.

    Raises:
        as compile_program.
    """
    batch = known.program.per_core_batch
    eighths = range(batch // 8 + 1, 2 * batch + 1) if known.step.fits else range(1, -(-batch // 8))

    def too_large(eighth: int) -> bool:
        return not compile_program(lower(8 * eighth), topology).step.fits

    return 8 * (eighths.start - 1 + bisect_left(eighths, True, key=too_large))


def _explain_refusal(compiled: Compiled, message: str) -> None:
    """Out of memory with the largest tensors, or the compiler's own words."""
    program = compiled.program
    sizes = next((match for p in _OUT_OF_MEMORY if (match := p.search(message))), None)
    if sizes is None:
        facts = {"step": program.mode, "topology": compiled.topology}
        compiled.findings.append(finding("TPU309", program.where, message=message, **facts))
        return
    # The message speaks of temporaries, and its figure holds the arguments too.
    needed = float(sizes[1]) * _UNITS[sizes[2]]
    arguments = float(sum(each.bytes for each in program.inputs))
    limit = float(sizes[3]) * _UNITS[sizes[4]]
    others = max(0.0, needed - arguments)
    compiled.step.memory = Memory(
        arguments=Figure("arguments, unpadded", arguments, "bytes", Kind.DERIVED),
        temporaries=Figure("temporaries, and padding", others, "bytes", Kind.DERIVED),
        available=Figure("memory that a program may use", limit, "bytes", Kind.COMPILER),
        needed=Figure("memory needed", needed, "bytes", Kind.COMPILER),
    )
    compiled.findings.append(out_of_memory(compiled, _roomy(compiled), message))


def _roomy(compiled: Compiled) -> Summary | None:
    """The same program compiled for the chip with the most memory, to see its largest tensors."""
    chip, cores = chips.roomiest(), compiled.program.cores
    count, spare = divmod(cores, chip.cores)
    if spare or count & (count - 1) or count < 4:
        return None
    topology = f"{chip.name}:{chips.even_shape(count, chip.axes)}"
    with asked(compiled.program, topology, cores) as wait:
        answer = wait(None)
    return summarise(answer["hlo"]) if "hlo" in answer else None
