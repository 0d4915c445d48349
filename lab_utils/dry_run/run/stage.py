"""Stage 4: the same N-replica program, executed on N virtual cores of this machine's CPU.

What it shows is how the cores work together: whether they still agree after a step, whether the loss
is what one core with the whole batch would get, whether the input feeds each core its own examples.
It says nothing of a TPU's numerics: here matmuls are done in float32.
"""

from collections.abc import Generator

from lab_utils.common.figures import Figure, Kind, counted
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private.process import CompilerMissing
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.run.budget import Plan, affordable
from lab_utils.dry_run.run.virtual import running
from lab_utils.dry_run.session import Session, Skip, first_line, leaves_room


def carry_out(session: Session) -> Generator[None, None, str]:
    """Stage "run"; returns its detail. Raises Skip where JAX is not installed, or nothing can be run.

    They are lowered beside the compiler, and run beside it where it leaves room, else when it is done.
    """
    workload, program = session.workload, session.program()
    if program.partition is not None:
        raise Skip(
            "a JAX step runs on virtual devices as it is: with "
            f'jax.config.update("jax_num_cpu_devices", {session.cores}) before JAX starts'
        )
    beside, steps = leaves_room(program), workload.most_steps or session.steps
    plan = affordable(program, steps)
    if plan is None:
        raise Skip(
            "two virtual cores with one example each would take more than this machine should give"
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
    try:
        with running(many, steps=plan.steps, one_core=one_core) as finish:
            if beside:
                yield
            ran = finish(session.say)
    except CompilerMissing as error:
        raise Skip(f"cannot be checked here: {error}") from error
    session.found(ran.findings)
    if not ran.steps and not ran.findings:
        raise Skip("; ".join(ran.not_compared))
    losses = [sum(step) / len(step) for step in ran.losses]
    session.result.figures += [
        Figure(f"mean loss of the cores, step {number}", loss, "", Kind.MEASURED)
        for number, loss in enumerate(losses, 1)
    ]
    session.not_checked += ran.not_compared
    before = " (from the cache: the same program, values and batches)" if ran.cached else ""
    summary = f"{counted(ran.steps, 'step')} on {counted(plan.cores, 'virtual core')}{before}."
    return " ".join([summary, *ran.notes])


def _programs(session: Session, program: Program, plan: Plan) -> tuple[Program, Program | None]:
    """The step as `plan` has it; that of one core with the whole batch, None where it cannot be lowered.

    Raises:
        Skip: the step cannot be lowered for so few examples, or its groups need all of the port's cores.
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
            many = many or workload.lower(plan.cores, global_batch=batch)
            one = workload.lower(1, global_batch=batch)
    except (CannotLower, InputUnfit) as error:
        session.not_checked.append(f"The loss against one core's: {first_line(error)}.")
    try:
        many = many or workload.lower(plan.cores, global_batch=batch)
    except (CannotLower, InputUnfit) as error:
        reason = f"a step of {counted(batch, 'example')} cannot be lowered: {first_line(error)}"
        raise Skip(f"cannot be checked here: {reason}" if fewer else reason) from error
    groups = max(many.named_cores, program.named_cores)
    # Fewer cores may stand for more where groups name all cores of a program, or none.
    alike = all(step.named_cores in (0, step.cores) for step in (many, program))
    if fewer and not alike and groups <= program.cores:
        raise Skip(
            f"cannot be checked here: its groups name {counted(groups, 'core')} of {program.cores}, and this "
            f"machine can run {plan.cores}"
        )
    return many, one
