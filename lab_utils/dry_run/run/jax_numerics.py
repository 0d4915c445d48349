"""A step of JAX with matmuls as a TPU computes them: on one virtual core, beside the same steps in float32.

The number of cores makes no difference to the rounding, so that one core shows it for all. All steps take the
batch that the step was handed, and for the noise to compare with, examples drawn from it with replacement.
"""

from dataclasses import replace

import numpy as np

from lab_utils.dry_run.private import hlo as _hlo
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import ChildFailed, NoRoom
from lab_utils.dry_run.program import Comparison, Input, Origin, Output, Program, Role
from lab_utils.dry_run.run import numerics
from lab_utils.dry_run.run.numerics import DRAWN, Batch
from lab_utils.dry_run.run.precision import as_on_tpu, without_a_seed
from lab_utils.dry_run.run.virtual import culprit, executing
from lab_utils.dry_run.session import Session
from lab_utils.dry_run.unavailable import Unavailable


def carry_out(session: Session, program: Program, comparison: Comparison, steps: int) -> list[str]:
    """Runs `steps` steps both ways, and judges them; returns what stage "run" says of them, if anything."""
    if not comparison.has_values:
        session.not_checked.append(
            "A TPU's rounding: the step has no examples of its own here, only shapes or equal numbers."
        )
        return []
    try:
        one = _one_core(program, comparison)
        if op := without_a_seed(one.hlo):
            session.not_checked.append(
                f"A TPU's rounding: each run of the step draws other random numbers ({op})."
            )
            return []
        batches, drawn = _batches(one, comparison, steps)
        programs = [
            (one, batches),
            (replace(one, hlo=as_on_tpu(one.hlo)), batches),
            (one, drawn),
        ]
        with executing(programs) as wait:
            found = numerics.compared(*wait(session.say)[0]["runs"])
        if what := numerics.hurt(found):
            session.say("looking for the line whose rounding does it")
            line = culprit(one, batches, found)
            session.add([numerics.finding_of(what, program, line, DRAWN)])
    except (Unavailable, NoRoom) as error:
        session.not_checked.append(f"A TPU's rounding: {error}")
        return []
    except ChildFailed as error:
        session.not_checked.append(f"A TPU's rounding: {process.exception_line(error)}")
        return []
    return [numerics.tell(session, found, DRAWN)]


def _one_core(program: Program, comparison: Comparison) -> Program:
    """The step as one core runs it with the whole batch. Of its losses only the first is there."""
    from lab_utils.dry_run.private import jax as _jax

    step = comparison.one or comparison.many
    module = _jax.module_of(step.blob)
    slots = {slot.argument: slot for slot in comparison.slots}

    def input_(number: int) -> Input:
        array, slot = step.values[number], slots.get(number)
        role = Role.FEATURE if number in comparison.examples else Role.CONSTANT
        return Input(
            _name(number),
            Role.VARIABLE if slot else role,
            array.shape,
            str(array.dtype),
            trainable=slot is not None and slot.is_trained,
        )

    outputs = [Output("", Role.HOST) for _ in range(module.results)]
    for number, name in comparison.losses[:1]:
        outputs[number] = Output(name, Role.LOSS)
    for slot in comparison.slots:
        if slot.argument in module.kept:
            place = module.kept.index(slot.argument)
            outputs[slot.result] = Output(_name(slot.argument), Role.VARIABLE, place)
    values = {_name(number): step.values[number] for number in module.kept}
    return replace(
        program,
        cores=1,
        hlo=_without_sums_over_cores(module.hlo),
        inputs=[input_(number) for number in module.kept],
        outputs=outputs,
        partition=None,
        origin=Origin(start=lambda: values),
    )


def _without_sums_over_cores(hlo: bytes) -> bytes:
    """The module of one core without its all-reduces, each of which is its own operand there.

    XLA for CPUs joins those of several shapes, and then refuses its own layout (seen in jaxlib 0.10.2).
    """
    module = _hlo.module(hlo)
    for computation in module.computations:
        stands_for: dict[int, int] = {}
        left = []
        for op in computation.instructions:  # each after its operands
            op.operand_ids[:] = [stands_for.get(number, number) for number in op.operand_ids]
            if op.opcode == "all-reduce" and len(op.operand_ids) == 1:
                stands_for[op.id] = op.operand_ids[0]
            else:
                left.append(type(op).FromString(op.SerializeToString()))
        computation.root_id = stands_for.get(computation.root_id, computation.root_id)
        del computation.instructions[:]
        computation.instructions.extend(left)
    return module.SerializeToString(deterministic=True)


def _name(number: int) -> str:
    return f"argument {number}"


def _batches(
    program: Program, comparison: Comparison, steps: int
) -> tuple[list[Batch], list[Batch]]:
    """For each step the batch; and for each step as many examples drawn from it."""
    random = np.random.default_rng(0)
    whole = program.origin.values
    names = [program.inputs[number].name for number in program.feeds]
    axes = {_name(number): axis for number, axis in comparison.examples.items()}
    drawn = []
    for _ in range(steps):
        sizes = [whole[name].shape[axes[name]] for name in names]
        chosen = random.integers(0, sizes[0], sizes[0]) if sizes else []
        drawn.append([np.take(whole[name], chosen, axes[name])[None] for name in names])
    return [[whole[name][None] for name in names]] * steps, drawn
