"""How many bytes an instruction of an optimised HLO module moves between a core and its HBM."""

from lab_utils.dry_run.compile.hlo.parse import Instruction, Module


def traffic(op: Instruction, module: Module) -> int:
    """Bytes of HBM that an instruction reads and writes, padding included, as the compiler counts.

    A slice takes no more than its own size. What lies in a memory on the chip is left out, though the
    compiler counts it in its own figure.
    """
    if op.opcode in ("parameter", "constant", "iota") or op.opcode.endswith("-done"):
        return 0  # what a -done gives, its -start has moved
    if op.opcode == "copy-start":  # its shapes: where to, where from, a context
        return sum(shape.padded_bytes for shape in op.shapes[:2] if not shape.memory_space)
    if op.opcode == "slice-start":  # where from, where to, a context
        return op.shapes[1].padded_bytes * (1 if op.shapes[1].memory_space else 2)
    reads = module.operands(op)
    if op.opcode in ("dynamic-slice", "slice", "gather"):
        return _in_hbm(op) + min(_in_hbm(op), _in_hbm(reads[0]) if reads else 0)
    if op.opcode == "dynamic-update-slice":
        return (bool(_in_hbm(op)) + 1) * _in_hbm(reads[1]) if len(reads) > 1 else 0
    callee = dict(op.calls()).get("calls") if op.opcode == "fusion" else None
    if callee is None:
        return _in_hbm(op) + sum(map(_in_hbm, reads))
    body = module.computations.get(callee, [])
    return _bytes_written(op, body) + _bytes_read(reads, body)


def _in_hbm(op: Instruction) -> int:
    return sum(shape.padded_bytes for shape in op.shapes if not shape.memory_space)


def _size(op: Instruction) -> int:
    return sum(shape.padded_bytes for shape in op.shapes)


def _bytes_read(operands: list[Instruction], body: list[Instruction]) -> int:
    """Bytes that a fusion reads: of a tensor that it only slices, the slices; where it writes, none."""
    total = 0
    for number, operand in enumerate(operands):
        whole = _in_hbm(operand)
        name = next((i.name for i in body if f" parameter({number})" in i.text), "")
        users = [user for user in body if name in user.operands]
        kinds = {user.opcode for user in users}
        if kinds and kinds <= {"dynamic-slice", "slice"}:
            whole = min(whole, sum(map(_size, users)))
        elif kinds == {"dynamic-update-slice"} and all(u.operands[0] == name for u in users):
            whole = 0
        total += whole
    return total


def _bytes_written(fusion: Instruction, body: list[Instruction]) -> int:
    """Bytes that a fusion writes: of a tensor that it updates in place, the update."""
    inner = {op.name: op for op in body}
    root = body[-1] if body else fusion
    makers = [inner.get(name) for name in root.operands] if root.opcode == "tuple" else [root]
    if len(makers) != len(fusion.shapes):
        return _in_hbm(fusion)
    total = 0
    for shape, maker in zip(fusion.shapes, makers, strict=True):
        while maker is not None and maker.opcode in ("bitcast", "copy", "convert"):
            maker = inner.get(maker.operands[0])
        if maker is not None and maker.opcode == "dynamic-update-slice":
            update = inner.get(maker.operands[1])
            total += 0 if shape.memory_space or update is None else _size(update)
        else:
            total += 0 if shape.memory_space else shape.padded_bytes
    return total
