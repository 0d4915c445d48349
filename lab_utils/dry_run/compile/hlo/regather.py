"""Arrays that every core gathers whole, only to keep its own part of them.

The compiler does so where it knows no shorter way from one sharding to another; XLA's own logs call it an
"involuntary full rematerialization" (jax-ml/jax issue 18591, openxla/xla issue 15207).
"""

from lab_utils.dry_run.compile.hlo.parse import Instruction, Module

# What only lays the same numbers out in another way.
_SAME_NUMBERS = {
    "bitcast",
    "copy",
    "copy-start",
    "copy-done",
    "reshape",
    "transpose",
    "convert",
    "get-tuple-element",
    "optimization-barrier",
    "all-gather-done",
}
_ONE_CORE = {"partition-id", "replica-id"}
_DEPTH = 12  # steps on the way from an array to what takes it, or to what an index follows from


def keeps_own_part(gather: Instruction, module: Module) -> bool:
    """Whether a core takes of a gathered array only slices whose place follows from its own number."""
    return _only_sliced(gather.name, module, (), _DEPTH)


def _only_sliced(name: str, module: Module, fusions: tuple[Instruction, ...], depth: int) -> bool:
    """The same of an array by its name, within `fusions`, from the outermost to the innermost."""
    users = module.users.get(name, [])
    return bool(users and depth) and all(
        _takes_own_part(user, name, module, fusions, depth - 1) for user in users
    )


def _takes_own_part(
    user: Instruction, name: str, module: Module, fusions: tuple[Instruction, ...], depth: int
) -> bool:
    if user.opcode in _SAME_NUMBERS:
        return _only_sliced(user.name, module, fusions, depth)
    if user.opcode == "dynamic-slice":
        return user.operands[0] == name and any(
            _is_of_one_core(index, module, fusions, _DEPTH) for index in user.operands[1:]
        )
    if user.opcode != "fusion":
        return False
    body = module.computations.get(dict(user.calls()).get("calls", ""), [])
    numbers = (number for number, operand in enumerate(user.operands) if operand == name)
    inside = [op.name for n in numbers for op in body if f" parameter({n})" in op.text]
    return bool(inside) and all(
        _only_sliced(parameter, module, (*fusions, user), depth) for parameter in inside
    )


def _is_of_one_core(
    name: str, module: Module, fusions: tuple[Instruction, ...], depth: int
) -> bool:
    """Whether a number follows from the core's own."""
    op = module.instructions.get(name)
    if op is None or not depth:
        return False
    if op.opcode in _ONE_CORE:
        return True
    if op.opcode == "parameter" and fusions:
        number = int(op.text.partition(" parameter(")[2].partition(")")[0])
        return _is_of_one_core(fusions[-1].operands[number], module, fusions[:-1], depth - 1)
    return any(_is_of_one_core(each, module, fusions, depth - 1) for each in op.operands)
