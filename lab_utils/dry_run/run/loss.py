"""The part of a step that its loss comes from."""

from dataclasses import replace

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Program, Role


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
