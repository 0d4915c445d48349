"""Stage 3: the step, compiled by libtpu for a topology that need not be here.

The compiler works in a process of its own; its answers are cached.
"""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from lab_utils.common.figures import Figure, Kind, counted
from lab_utils.dry_run.compile.figures import Compiled, add_figures, by_line, of_collectives
from lab_utils.dry_run.compile.findings import findings_of, out_of_memory
from lab_utils.dry_run.compile.hlo.summary import Summary, summarise
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import Progress
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import CompiledStep, Memory, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.session import Session, leaves_room
from lab_utils.runtime import chips
from lab_utils.runtime.chips import BadTopology

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"([\d.]+)([KMGT]?)"
_OUT_OF_MEMORY = (
    re.compile(rf"total memory required for [\w ]+ \({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    re.compile(rf"Used {_SIZE} of {_SIZE} hbm"),  # of older runtimes
)


def carry_out(session: Session) -> Generator[None, None, str]:
    """Stage "compile"; returns its detail. Raises Unavailable where the compiler is not installed.

    Beside the compiler the next step is lowered, and the next stage begins. Steps are compiled side by side
    where they leave room, else each when the one before it is done.
    """
    outcomes: list[Callable[[], str]] = []
    with ExitStack() as compilers:

        def start(program: Program) -> Callable[[Progress | None], Compiled]:
            session.say(f"{program.name} for {session.topology}")
            return compilers.enter_context(compiling(program, session.topology))

        def outcome(program: Program, finish: Callable[[Progress | None], Compiled] | None) -> str:
            return _record(session, (finish or start(program))(session.say))

        for mode in session.modes_to_compile():
            try:
                program = session.program(mode)
            except CannotLower as error:
                if mode is session.mode:
                    raise
                outcomes.append(partial(str, session.cannot_lower(mode, error)[1]))
                continue
            together = not outcomes or leaves_room(program)
            outcomes.append(partial(outcome, program, start(program) if together else None))
        yield
        return ", ".join([finish_step() for finish_step in outcomes])


def _record(session: Session, compiled: Compiled) -> str:
    """Adds what the compiler said of a step to the session; returns it in words."""
    program = compiled.program
    # What the train step has shown the eval step does not say again.
    earlier = {(old.rule, old.place, old.fix) for old in session.result.findings}
    new = [new for new in compiled.findings if (new.rule, new.place, new.fix) not in earlier]
    session.add(new)
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
        Unavailable: jax or libtpu is not installed here.
        BadTopology: libtpu does not know the topology, or it has not the program's number of cores.
        ChildFailed: the compiler's process ended without an answer.
    """
    with compiling(program, topology) as finish:
        return finish(None)


@contextmanager
def compiling(
    program: Program, topology: str, *, judged: bool = True
) -> Iterator[Callable[[Progress | None], Compiled]]:
    """Context manager: the compiler works on a program; yields what waits for it.

    As compile_program, with which errors are raised by the one or the other. Without `judged` the result has
    figures only, no findings and no lines.
    """
    chip, cores = chips.parse(topology)
    if cores != program.cores:
        raise BadTopology(
            f"{topology} has {counted(cores, 'core')}, but the program was lowered for "
            f"{program.cores}"
        )
    with compiler_answer(program, topology) as answer:

        def wait(progress: Progress | None) -> Compiled:
            compiled = _result(program, topology, chip, *answer(progress))
            if judged:
                _judge(compiled)
            return compiled

        yield wait


def compiler_answer(program: Program, topology: str) -> AbstractContextManager[process.Answer]:
    """Context manager: what the compiler says of a program for all cores of `topology`.

    The answer is that of private.jax.answer where it was compiled, else it has "refused" ("topology" or
    "program") and "message". Errors are those of process.answering.
    """
    partitions = program.partition.cores if program.partition else 0
    request = {"topology": topology, "partitions": partitions}
    return process.answering("compile", request, {"program.hlo": program.hlo}, "jax", "libtpu")


def compile_stablehlo(stablehlo: str, topology: str, cores: int | None = None) -> dict[str, Any]:
    """Compiles a program of JAX, split as its shardings say over all cores of `topology`, or so many.

    That is done in this process, which imports JAX.

    Args:
        stablehlo: as `jax.jit(...).trace(...).lower(lowering_platforms=("tpu",)).as_text()` gives it,
            lowered for as many devices of any kind.

    Returns:
        as private.jax.answer: "cost" and "memory" of a core, and "hlo"; with all rounds of loops counted.

    Raises:
        Exception: whatever libtpu says of a topology or a program that it refuses.
    """
    from lab_utils.dry_run.private import jax as _jax

    devices = _jax.tpu_devices(topology)[:cores]
    answer = _jax.answer(_jax.compile_partitioned(stablehlo, devices))
    return answer | {"cost": summarise(answer["hlo"]).cost(answer["cost"])}


def _result(
    program: Program, topology: str, chip: chips.Chip, answer: dict[str, Any], cached: bool
) -> Compiled:
    if answer.get("refused") == "topology":
        raise BadTopology(f"{topology}: {answer['message']}. Accepted: {chips.ACCEPTED}")
    compiled = Compiled(
        topology,
        chip,
        program,
        CompiledStep(
            f"{program.mode} step",
            mode=Mode(program.mode),
            cores=program.partition.cores if program.partition else None,
        ),
        cached=cached,
    )
    compiled.step.memory.available = Figure(
        "memory that a program may use", chip.limit, "bytes", Kind.QUOTED, chips.LIBTPU
    )
    if answer.get("refused") == "program":
        compiled.refusal = answer["message"]
        _add_memory_of_refusal(compiled)
        return compiled
    compiled.summary = summarise(answer["hlo"])
    add_figures(compiled, answer)
    return compiled


def _judge(compiled: Compiled) -> None:
    """Adds the findings and the lines of a compiled step."""
    program = compiled.program
    if not compiled.refusal:
        compiled.findings = findings_of(compiled)
        compiled.step.lines = by_line(compiled.summary.costs, program.origin.place_of)
    elif compiled.step.memory.needed is not None:
        compiled.findings = [out_of_memory(compiled, _roomy(compiled), compiled.refusal)]
    else:
        # Of several kernels the message does not name one.
        is_of_kernel = bool(program.kernels) and "memory space vmem" in compiled.refusal
        is_known = is_of_kernel and len(program.kernels) == 1
        where = program.kernels[0] if is_known else program.where
        facts = {"step": program.mode, "topology": compiled.topology}
        facts |= {"case": "kernel" if is_of_kernel else "op"}
        compiled.findings = [finding("TPU309", where, message=compiled.refusal, **facts)]


def _add_memory_of_refusal(compiled: Compiled) -> None:
    """Adds the memory that the compiler's message names, where it says that there is too little."""
    program, message = compiled.program, compiled.refusal
    sizes = next((match for p in _OUT_OF_MEMORY if (match := p.search(message))), None)
    if sizes is None:
        return
    # The message speaks of temporaries, and its figure holds the arguments too.
    total, limit = (float(sizes[n]) * _UNITS[sizes[n + 1]] for n in (1, 3))
    arguments = float(sum(array.bytes for array in program.inputs))
    others = max(0.0, total - arguments)
    compiled.step.memory = Memory(
        arguments=Figure("arguments, unpadded", arguments, "bytes", Kind.DERIVED),
        temporaries=Figure("temporaries, and padding", others, "bytes", Kind.DERIVED),
        available=Figure("memory that a program may use", limit, "bytes", Kind.COMPILER),
        needed=Figure("memory needed", total, "bytes", Kind.COMPILER),
    )


def _roomy(compiled: Compiled) -> Summary | None:
    """The same program compiled for the chip with the most memory, to see its largest tensors."""
    chip, cores = chips.roomiest(), compiled.program.cores
    count, spare = divmod(cores, chip.cores)
    if spare or count & (count - 1) or count < 4:
        return None
    topology = f"{chip.name}:{chips.even_shape(count, chip.axes)}"
    with compiler_answer(compiled.program, topology) as wait:
        answer, _ = wait(None)
    return summarise(answer["hlo"]) if "hlo" in answer else None
