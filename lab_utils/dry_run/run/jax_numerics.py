"""A step of JAX with matmuls as a TPU computes them: on one virtual core, beside the same steps in float32.

The number of cores makes no difference to the rounding, so that one core shows it for all. All steps take the
batch that the step was handed, and for the noise to compare with, examples drawn from it with replacement.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lab_utils.dry_run.private import hlo as _hlo
from lab_utils.dry_run.program import Comparison, Input, Origin, Output, Program, Role
from lab_utils.dry_run.run import numerics
from lab_utils.dry_run.run.numerics import DRAWN, Batch
from lab_utils.dry_run.run.virtual import look_at_rounding, requested
from lab_utils.dry_run.session import Session


@dataclass(frozen=True)
class Rounding:
    """The step on one core, and its batches."""

    one: Program
    batches: list[Batch]
    drawn: list[Batch]

    def requested(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """What the child is asked for, and its files: float32, as on a TPU, and other examples."""
        others = numerics.variants(self.one, self.batches, self.drawn)
        return requested([(self.one, self.batches), *others])


def rounding(
    session: Session, program: Program, comparison: Comparison, steps: int
) -> Rounding | None:
    """What is to be run; None, with the reason under NOT CHECKED, where nothing can be."""
    if not comparison.has_values:
        return _not_checked(
            session, "the dry run got no real examples for the step, only shapes or equal numbers."
        )
    one = _one_core(program, comparison)
    if refusal := numerics.refusal(one):
        session.not_checked.append(refusal)
        return None
    return Rounding(one, *_batches(one, comparison, steps))


def judged(session: Session, asked: Rounding, answer: dict[str, Any]) -> list[str]:
    """Judges what the child says of the steps; returns what stage "run" says of them, if anything."""
    if failed := answer.get("failed"):
        _not_checked(session, failed.partition("\n")[0])
        return []
    found = numerics.compared(*answer["runs"])
    batches = asked.batches[: len(answer["runs"][0]["steps"])]
    not_checked, say = session.not_checked, session.say
    session.add(look_at_rounding(asked.one, batches, found, DRAWN, say, not_checked))
    return [numerics.tell(session, found, DRAWN)]


def _not_checked(session: Session, why: str) -> None:
    session.not_checked.append(f"A TPU's rounding: {why}")


def _one_core(program: Program, comparison: Comparison) -> Program:
    """The step as one core runs it with the whole batch.

    Of its losses only the first is there.
    """
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
