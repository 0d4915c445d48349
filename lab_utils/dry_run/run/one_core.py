"""The step of one core with the whole batch, to whose loss the cores' losses are compared."""

from dataclasses import replace

import numpy as np

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Input, Program, Role
from lab_utils.dry_run.run.record import VirtualRun


def joined_batches(
    program: Program, one_core: Program | None, batches: list[list[np.ndarray]], result: VirtualRun
) -> list[list[np.ndarray]]:
    """The batches for one core, joined; none where its loss is expected to differ, with a note."""
    if program.random:
        result.not_compared.append(
            f"Not compared with one core: the step draws random numbers ({program.random[0]})."
        )
        return []
    if program.batch_statistics:
        result.not_compared.append(
            "The loss was compared with one core's roughly, for a sum where a mean belongs: each core "
            f"takes statistics over its own share of the batch ({program.batch_statistics[0]})."
        )
    if one_core is None:
        return []
    own, whole = ([each.inputs[n] for n in each.fed] for each in (program, one_core))
    joined = [
        [_join(array, a, b) for array, a, b in zip(batch, own, whole, strict=True)]
        for batch in batches
    ]
    if any(array is None for batch in joined for array in batch):
        result.not_compared.append("Not compared with one core: its input has other shapes.")
        return []
    return joined


def _join(array: np.ndarray, own: Input, whole: Input) -> np.ndarray | None:
    """The cores' parts [cores, ...] as the one core's input [1, ...]; None where they do not fit."""
    if own.shape == whole.shape:
        return array[:1]
    grown = [n for n, (a, b) in enumerate(zip(own.shape, whole.shape, strict=True)) if a != b]
    if len(grown) != 1 or own.shape[grown[0]] * len(array) != whole.shape[grown[0]]:
        return None
    return np.concatenate(list(array), axis=grown[0])[None]


def loss_alone(program: Program) -> Program:
    """The step without what it does to its variables: XLA drops what the loss does not need.

    That is the larger part of a step, and so of the seconds that its compilation takes. A step that returns
    no loss, or nothing else, stays as it is.
    """
    module = _tensorflow.hlo_module(program.hlo)
    entry = next(each for each in module.computations if each.id == module.entry_computation_id)
    root = next(each for each in entry.instructions if each.id == entry.root_id)
    number = next((n for n, each in enumerate(program.outputs) if each.role == Role.LOSS), None)
    if number is None or root.opcode != "tuple":
        return program
    root.operand_ids[:] = [root.operand_ids[number]]
    for shape in (root.shape, entry.program_shape.result, module.host_program_shape.result):
        kept = type(shape).FromString(shape.tuple_shapes[number].SerializeToString())
        del shape.tuple_shapes[:]
        shape.tuple_shapes.append(kept)
    module.input_output_alias.Clear()
    hlo = module.SerializeToString(deterministic=True)
    return replace(program, hlo=hlo, outputs=[program.outputs[number]])
