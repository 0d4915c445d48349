"""Stage 4: the same N-replica program, executed on N virtual cores of this machine's CPU.

What it shows is how the cores work together: whether they still agree after a step, whether the loss
is what one core with the whole batch would get, whether the input feeds each core its own examples.
It says nothing of a TPU's numerics: here matmuls are done in float32.
"""

from collections.abc import Generator

from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private.process import CompilerMissing
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.run.budget import Plan, affordable
from lab_utils.dry_run.run.virtual import running
from lab_utils.dry_run.session import Session, Skip, first_line
from lab_utils.figures import Figure, Kind


def carry_out(session: Session) -> Generator[None, None, str]:
    """Stage "run"; returns its detail. Raises Skip where JAX is not installed, or nothing can be run.

    The steps run beside the compiler, which works on one core for the most part.
    """
    workload, program = session.workload, session.program()
    if program.partition is not None:
        raise Skip(
            "a JAX step runs on virtual devices as it is: with "
            f'jax.config.update("jax_num_cpu_devices", {session.cores}) before JAX starts'
        )
    steps = workload.most_steps or session.steps
    plan = affordable(program, steps)
    if plan is None:
        raise Skip(
            "two virtual cores with one example each would take more than this machine should give"
        )
    if plan != Plan(program.cores, program.per_core_batch, steps):
        session.not_checked.append(
            f"{steps} steps of {program.cores} cores with {program.per_core_batch} examples each: to spare "
            f"this machine, {plan.cores} virtual cores ran {plan.steps} with {plan.batch} each."
        )
    program, one_core = _programs(session, program, plan)
    try:
        with running(program, steps=plan.steps, one_core=one_core) as finish:
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
    return " ".join([f"{ran.steps} steps on {plan.cores} virtual cores{before}.", *ran.notes])


def _programs(session: Session, program: Program, plan: Plan) -> tuple[Program, Program | None]:
    """The step as `plan` has it, and that of one core with the whole batch; None where there is none."""
    workload, batch = session.workload, plan.batch * plan.cores
    same = (plan.cores, plan.batch) == (program.cores, program.per_core_batch)
    session.say("lowering for one core with the whole batch, to compare")
    try:
        if program.random:
            return workload.lower_alike(plan.cores, batch)
        if not same:
            program = workload.lower(plan.cores, global_batch=batch)
            same = True
        return program, workload.lower(1, global_batch=batch)
    except (CannotLower, InputUnfit) as error:
        if not same:
            raise Skip(
                f"a step of {batch} examples cannot be lowered: {first_line(error)}"
            ) from error
        session.not_checked.append(f"The loss against one core's: {first_line(error)}.")
        return program, None
