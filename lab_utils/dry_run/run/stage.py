"""Stage 4: the same N-replica program, executed on N virtual cores of this machine's CPU.

What it shows is how the cores work together: whether they still agree after a step, whether the loss
is what one core with the whole batch would get, whether the input feeds each core its own examples.
Matmuls are done in float32 here. With `session.on_tpu` the steps are run also as a TPU computes them.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace

from lab_utils.common.figures import Figure, Kind, counted
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.lower.instructions import bytes_written
from lab_utils.dry_run.private import hlo as _hlo
from lab_utils.dry_run.program import Comparison, Program, Role
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.run import numerics, virtual_jax
from lab_utils.dry_run.run.findings import VirtualRun
from lab_utils.dry_run.run.virtual import running
from lab_utils.dry_run.run.written import Reading, readings
from lab_utils.dry_run.session import Session, Skip, leaves_room
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import first_line
from lab_utils.runtime import places

# A pod's program is compiled for all its cores; so many of them are run here.
MOST_VIRTUAL_CORES = 8
# Of all steps on all cores and of one core with the whole batch: some 10 s on two cores.
MOST_FLOP = 4e11
MOST_BYTES = 2.5e9
_FEWEST_STEPS = 2  # the second shows what the first did to the variables
# Of the bytes that all instructions write, the share that a CPU holds at a time.
_HELD_SHARE = 0.5


@dataclass(frozen=True)
class Plan:
    """What to run: `cores` virtual cores with `batch` examples each, for `steps` steps."""

    cores: int
    batch: int
    steps: int


def carry_out(session: Session) -> Generator[None, None, str]:
    """Stage "run"; returns its detail.

    The steps are lowered beside the compiler, and run beside it where it leaves room, else when it is done.

    Raises:
        Unavailable, Skip: JAX is not installed, or nothing can be run.
    """
    program, steps = _train_program(session), session.steps
    if program.partition is not None:
        if not leaves_room(program):
            yield
        return virtual_jax.carry_out(session, program, _comparison(session, program))
    beside, plan = leaves_room(program), affordable(program, steps)
    if plan is None:
        raise Skip(
            "two virtual cores with one example each would take more memory than this machine can "
            "spare"
        )
    many, one_core = _programs(session, program, plan)
    if plan != Plan(program.cores, program.per_core_batch, steps):
        session.not_checked.append(
            f"{counted(steps, 'step')} of {counted(program.cores, 'core')} with "
            f"{counted(program.per_core_batch, 'example')} each: to spare this machine, "
            f"{counted(plan.cores, 'virtual core')} ran {plan.steps} with {plan.batch} each."
        )
    if not beside:
        yield  # the compiler takes most at its end
    options = {"steps": plan.steps, "one_core": one_core, "on_tpu": session.on_tpu}
    with running(many, **options) as finish:
        if beside:
            yield
        ran = finish(session.say)
    if one_core is not None and _depends_on_cores(ran):
        meanings = readings(program, many, one_core)
        _take_back(ran, meanings, steps=plan.steps, say=session.say)
    session.add(ran.findings)
    if not ran.steps and not ran.findings:
        raise Skip("; ".join(ran.not_compared))
    return _told(session, ran, plan)


def _told(session: Session, ran: VirtualRun, plan: Plan) -> str:
    """The stage's detail; its figures, and what was not compared, go into the session."""
    losses = [sum(step) / len(step) for step in ran.losses]
    session.result.figures += [
        Figure(f"mean loss of the cores, step {number}", loss, "", Kind.MEASURED)
        for number, loss in enumerate(losses, 1)
    ]
    session.not_checked += ran.not_compared
    if session.on_tpu and ran.numerics:
        ran.notes.append(numerics.tell(session, ran.numerics))
    before = " (from the cache: the same program, values and batches)" if ran.cached else ""
    summary = f"{counted(ran.steps, 'step')} on {counted(plan.cores, 'virtual core')}{before}."
    return " ".join(filter(None, [summary, *ran.notes, ran.doubt]))


def _comparison(session: Session, program: Program) -> Comparison:
    """The JAX step to run, with as large a part of its batch as this machine should give.

    Raises:
        Unavailable, Skip: it cannot be run.
    """
    cores = program.partition.cores
    if cores > MOST_VIRTUAL_CORES:
        raise Unavailable(
            f"{counted(cores, 'core')} are more than the {MOST_VIRTUAL_CORES} that this machine "
            "can run. A smaller --topology shows how the cores work together"
        )
    state = sum(array.bytes for array in program.inputs if array.role == Role.VARIABLE)
    flops = sum(matmul.flops for matmul in program.matmuls) * cores * session.steps * 2
    if 3 * state * cores > min(MOST_BYTES, places.free_memory() / 3):
        raise Skip("its state would take more memory than this machine can spare")
    share = 1
    while flops / share > MOST_FLOP:
        share *= 2
    try:
        comparison = session.workload.comparison(share)
    except CannotLower as error:
        raise Unavailable(first_line(error)) from error
    if share > 1:
        session.not_checked.append(
            f"The whole batch: to save memory and time, the virtual cores used only 1/{share} of "
            "it."
        )
    return comparison


def _train_program(session: Session) -> Program:
    """The train step. Raises Skip where a program was seen to train nothing."""
    if session.mode is not Mode.TRAIN:
        raise Skip(
            f"the program trains nothing, and in {session.mode.activity}, the cores exchange "
            "nothing"
        )
    return session.program()


def _depends_on_cores(ran: VirtualRun) -> bool:
    return any(found.rule == "TPU403" for found in ran.findings)


def _take_back(
    ran: VirtualRun, readings: Iterable[Reading], steps: int, say: Callable[[str], None]
) -> None:
    """Takes TPU403 back where cores and one core agree, if a number of the program is read otherwise."""
    for reading in readings:
        many = replace(reading.many, may_add_up=True)
        with running(many, steps=steps, one_core=reading.one) as finish:
            again = finish(say)
        if not _depends_on_cores(again):
            ran.findings[:] = [found for found in ran.findings if found.rule != "TPU403"]
            ran.not_compared.append(
                f"TPU403, under the assumption that {reading.what}: the step then agrees with that "
                "of one core, so the program is right for this number only."
            )
            return


def _programs(session: Session, program: Program, plan: Plan) -> tuple[Program, Program | None]:
    """The step as `plan` has it; that of one core with the whole batch, None where it cannot be lowered.

    Raises:
        Unavailable, Skip: the step cannot be lowered for so few examples, or its groups need all of the
            port's cores.
    """
    workload, batch = session.workload, plan.batch * plan.cores
    fewer = plan.cores < program.cores
    many, one = None, None
    if (plan.cores, plan.batch) == (program.cores, program.per_core_batch):
        many = program
    session.say("lowering for one core with the whole batch, to compare")
    try:
        if program.random:
            many, one = workload.lower_alike(plan.cores, batch)
        else:
            many = many or workload.lower(plan.cores, batch=batch)
            one = workload.lower(1, batch=batch)
    except CannotLower as error:
        session.not_checked.append(
            f"How the loss compares with that of one core: {first_line(error)}."
        )
    try:
        many = many or workload.lower(plan.cores, batch=batch)
    except CannotLower as error:
        reason = f"a step of {counted(batch, 'example')} cannot be lowered: {first_line(error)}"
        raise (Unavailable if fewer else Skip)(reason) from error
    groups = max(many.named_cores, program.named_cores)
    # Fewer cores may stand for more where groups name all cores of a program, or none.
    alike = all(step.named_cores in (0, step.cores) for step in (many, program))
    if fewer and not alike and groups <= program.cores:
        raise Unavailable(
            f"its groups name {counted(groups, 'core')} of {program.cores}, and this "
            f"machine can run {plan.cores}"
        )
    return many, one


def affordable(program: Program, steps: int) -> Plan | None:
    """The port's own cores, batch, steps, or as much of them as fits; None if not even two cores do.

    The estimate is made of the program itself, so that it holds also where the TPU compiler gave no figures.
    """
    flops, writes = cost(program)
    variables = sum(array.bytes for array in program.inputs if array.role == Role.VARIABLE)
    room = min(MOST_BYTES, places.free_memory() / 3)
    most = min(program.cores, MOST_VIRTUAL_CORES)
    for cores in dict.fromkeys(number for number in (most, 4, 2) if number <= most):
        for count in dict.fromkeys((steps, min(steps, _FEWEST_STEPS))):
            batch = program.per_core_batch
            while batch:
                share = batch / program.per_core_batch * cores
                activations = writes * _HELD_SHARE * share
                memory = 2 * variables * cores + activations
                if 2 * flops * share * count <= MOST_FLOP and memory <= room:
                    return Plan(cores, batch, count)
                batch = 0 if batch % 2 else batch // 2
    return None


def cost(program: Program) -> tuple[float, float]:
    """FLOP of the matmuls and convolutions of a program, and bytes that it writes."""
    flops = sum(matmul.flops for matmul in program.matmuls)
    return flops, bytes_written(_hlo.module(program.hlo))
