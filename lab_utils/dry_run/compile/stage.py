"""Stage 3: the step, compiled by libtpu for a topology that need not be here."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from lab_utils.common.figures import Figure, Kind, counted
from lab_utils.dry_run.compile import sharding
from lab_utils.dry_run.compile.ask import asked
from lab_utils.dry_run.compile.findings import findings_of, merged, out_of_memory, refused
from lab_utils.dry_run.compile.hlo import summary as hlo
from lab_utils.dry_run.compile.lines import by_line, spans
from lab_utils.dry_run.compile.record import Compiled
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private.process import CompilerMissing, Progress
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import MEMORY_PARTS, CompiledStep, Cost, Memory, Mode
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
    begun: list[str | Program | Callable[[], Compiled]] = []
    with ExitStack() as compilers:

        def start(program: Program) -> Callable[[], Compiled]:
            session.say(f"{program.name} for {session.topology}")
            finish = compilers.enter_context(compiling(program, session.topology))
            return lambda: finish(session.say)

        try:
            for mode in session.modes_to_compile():
                try:
                    program = session.program(mode)
                except (CannotLower, InputUnfit) as error:
                    if mode is Mode.TRAIN:
                        raise
                    begun.append(session.cannot_lower(mode, error)[1])
                    continue
                later = begun and not leaves_room(program)
                begun.append(program if later else start(program))
        except CompilerMissing as error:
            raise Skip(f"cannot be checked here: {error}") from error
        yield
        said, train = [], None
        for each in begun:
            if isinstance(each, str):
                said.append(each)
                continue
            compiled = (start(each) if isinstance(each, Program) else each)()
            train = train or compiled
            said.append(_taken(session, compiled))
    if session.largest_batch and train:
        largest = largest_batch(
            lambda batch: session.workload.lower(session.cores, global_batch=batch * session.cores),
            session.topology,
            known=train,
            progress=session.say,
        )
        session.result.figures.append(
            Figure("largest batch a core that fits", float(largest), "examples", Kind.COMPILER)
        )
    return ", ".join(said)


def _taken(session: Session, compiled: Compiled) -> str:
    """Adds what the compiler said of a step to the session; returns it in words."""
    program = compiled.program
    session.spans = session.spans or spans(compiled.summary, program)
    session.result.findings = merged([*session.result.findings, *compiled.findings])
    session.compiled.append(compiled.step)
    session.result.figures += compiled.figures
    if program.left_out:
        session.not_checked.append(program.left_out)
    return f"{compiled.step.name} {compiled.outcome}{_shared(program)}"


def _shared(program: Program) -> str:
    """Over which mesh the cores share the step, where they do."""
    if program.partition is None:
        return ""
    mesh = ", ".join(f"{axis}={size}" for axis, size in program.partition.mesh.items())
    return f" for the mesh {mesh}" if mesh else " for one core"


def compile_program(
    program: Program, topology: str, *, progress: Progress | None = None
) -> Compiled:
    """Compiles a program for all cores of `topology`.

    Too little memory, or an op that the compiler refuses, is a finding of the result.

    Raises:
        CompilerMissing: jax or libtpu is not installed here.
        BadTopology: libtpu does not know the topology, or it has not the program's number of cores.
        ChildFailed: the compiler's process ended without an answer.
    """
    with compiling(program, topology) as finish:
        return finish(progress)


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
        yield lambda progress: _judged(program, topology, chip, *answer(progress), progress)


def _judged(
    program: Program,
    topology: str,
    chip: chips.Chip,
    answer: dict[str, Any],
    cached: bool,
    progress: Progress | None,
) -> Compiled:
    if answer.get("refused") == "topology":
        raise BadTopology(f"{topology}: {answer['message']}. Accepted: {chips.ACCEPTED}")
    compiled = Compiled(
        topology,
        chip,
        program,
        CompiledStep(f"{program.mode} step", mode=Mode(program.mode)),
        cached=cached,
    )
    compiled.step.memory.available = Figure(
        "memory that a program may use", chip.limit, "bytes", Kind.QUOTED, chips.LIBTPU
    )
    if answer.get("refused") == "program":
        _explain_refusal(compiled, answer["message"], progress)
        return compiled
    compiled.summary = hlo.Summary.from_dict(answer["summary"])
    _take_figures(compiled, answer)
    compiled.findings = [*findings_of(compiled), *sharding.findings_of(compiled)]
    compiled.figures = sharding.figures_of(compiled)
    compiled.step.lines = by_line(compiled.summary.work, program.origin.place_of)
    return compiled


def largest_batch(
    lower: Callable[[int], Program],
    topology: str,
    *,
    known: Compiled,
    progress: Progress | None = None,
) -> int:
    """The largest batch a core that fits, a multiple of 8; 0 if none does.

    Batches up to 16 times that of `known` are tried.

    Args:
        lower: gives the program for a batch a core.
        known: the step as it was compiled for some batch.

    Raises:
        as compile_program.
    """
    batch = known.program.per_core_batch
    fits, too_large = (batch // 8, 2 * batch + 1) if known.step.fits else (0, -(-batch // 8))
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        if compile_program(lower(8 * middle), topology, progress=progress).step.fits:
            fits = middle
        else:
            too_large = middle
    return 8 * fits


def _take_figures(compiled: Compiled, answer: dict[str, Any]) -> None:
    """Memory and cost from the compiler's answer, and the roofline that follows."""
    memory, summary, chip = answer["memory"], compiled.summary, compiled.chip
    parts = memory | {"outputs": memory["outputs"] - memory["alias"]}
    for name in MEMORY_PARTS:
        figure = Figure(name, float(parts[name]), "bytes", Kind.COMPILER)
        setattr(compiled.step.memory, name, figure)
    total = sum(compiled.step.memory.parts.values())
    if total > chip.limit:
        compiled.step.memory.needed = Figure("memory needed", total, "bytes", Kind.COMPILER)
    cost = summary.cost(answer["cost"])
    flops, bytes_ = cost["flops"], cost["bytes"]
    kind = Kind.DERIVED if summary.loop_bytes else Kind.COMPILER
    bound = chip.roofline(flops, bytes_)
    rate = bound.examples_per_second(compiled.program.per_core_batch)
    compiled.step.cost = Cost(
        flops=Figure("FLOPs a step", flops, "FLOP", kind),
        bytes=Figure("HBM traffic a step", bytes_, "B", kind),
        peak_flops=Figure(
            "peak of a core, bfloat16", bound.peak_flops, "FLOP/s", Kind.QUOTED, chip.source
        ),
        peak_bandwidth=Figure(
            "HBM bandwidth of a core", bound.peak_bandwidth, "B/s", Kind.QUOTED, chip.source
        ),
        step_seconds=Figure("roofline bound on a step", bound.seconds, "s", Kind.DERIVED),
        examples_per_second=Figure("examples a core, at most", rate, "examples/s", Kind.DERIVED),
        bf16_share=Figure(
            "matmul FLOPs done in bfloat16", summary.bfloat16_share, "share", Kind.DERIVED
        ),
        bf16_operand_share=Figure(
            "matmul FLOPs with bfloat16 operands",
            summary.bfloat16_operand_share,
            "share",
            Kind.DERIVED,
        ),
        all_reduce_bytes=Figure(
            "all-reduce a step", float(summary.collective_bytes), "B", Kind.COMPILER
        ),
    )


def _explain_refusal(compiled: Compiled, message: str, progress: Progress | None) -> None:
    """Out of memory with the largest tensors, or the compiler's own words."""
    found = next((match for p in _OUT_OF_MEMORY if (match := p.search(message))), None)
    if found is None:
        compiled.findings.append(refused(compiled, message))
        return
    # The message speaks of temporaries, and its figure holds the arguments too.
    needed = float(found[1]) * _UNITS[found[2]]
    arguments = float(sum(each.bytes for each in compiled.program.inputs))
    limit = float(found[3]) * _UNITS[found[4]]
    others = max(0.0, needed - arguments)
    compiled.step.memory = Memory(
        arguments=Figure("arguments, unpadded", arguments, "bytes", Kind.DERIVED),
        temporaries=Figure("temporaries, and padding", others, "bytes", Kind.DERIVED),
        available=Figure("memory that a program may use", limit, "bytes", Kind.COMPILER),
        needed=Figure("memory needed", needed, "bytes", Kind.COMPILER),
    )
    compiled.findings.append(out_of_memory(compiled, _roomy(compiled, progress), message))


def _roomy(compiled: Compiled, progress: Progress | None) -> hlo.Summary | None:
    """The same program compiled for the chip with the most memory, to see its largest tensors."""
    chip, cores = chips.roomiest(), compiled.program.cores
    count, spare = divmod(cores, chip.cores)
    if spare or count & (count - 1) or count < 4:
        return None
    topology = f"{chip.name}:{chips.even_shape(count, chip.axes)}"
    with asked(compiled.program, topology, cores) as wait:
        answer, _ = wait(progress)
    return hlo.Summary.from_dict(answer["summary"]) if "summary" in answer else None
