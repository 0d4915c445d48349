"""What each instruction of an optimised HLO module costs, and which line of the learner's it comes from."""

import re
from dataclasses import dataclass

from lab_utils.dry_run.compile.hlo import frames
from lab_utils.dry_run.compile.hlo.parse import Instruction, visits
from lab_utils.dry_run.compile.hlo.traffic import traffic

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_ABSURD = 10**15  # the compiler's word for "not known"
_CALLERS = ("while", "call", "conditional")


@dataclass(frozen=True)
class Work:
    """One instruction of a core's step, all rounds of its loops together.

    Attributes:
        name, opcode: of the instruction.
        op: the framework's op that it stems from.
        file, line: the learner's line, "" and 0 where the module names none.
        cycles: as the compiler estimated them; 0 where it did not.
        bytes: read from HBM and written to it.
        flops: of its matmuls and convolutions.
        rounds: how often it is done; 1 outside of loops.
    """

    name: str
    opcode: str
    op: str
    file: str
    line: int
    cycles: float
    bytes: float
    flops: float
    rounds: int


def work(
    text: str,
    computations: dict[str, list[Instruction]],
    entry: str,
    flops: dict[str, float],
) -> list[Work]:
    """The instructions that cost anything, in the compiler's order; loops as what they hold.

    Args:
        flops: of each matmul and convolution in one round, by the name of its instruction.
    """
    known = {each.name: each for body in computations.values() for each in body}
    stacks, found = frames.stacks(text), []
    users: dict[str, list[Instruction]] = {}
    for each in known.values():
        for name in each.operands:
            users.setdefault(name, []).append(each)

    def origin(each: Instruction, depth: int = 5) -> tuple[str, int, str]:
        """File, line and op of an instruction; the compiler's own copies have those of what uses them."""
        file, line = frames.line_of(each.text, stacks)
        named = 'op_name="' in each.text
        if file or named or not depth:
            return file, line, each.op_name if named else ""
        tried = (origin(user, depth - 1) for user in users.get(each.name, ()))
        return next((found for found in tried if found[0] or found[2]), ("", 0, ""))

    def own(each: Instruction) -> float:
        called = (name for key, name in each.called() if key == "calls")
        inner = (own(part) for name in called for part in computations.get(name, ()))
        return flops.get(each.name, 0.0) + sum(inner)

    for visit in visits(computations, entry):
        each, times = visit.instruction, visit.times
        if visit.aside or each.opcode in _CALLERS:
            continue
        said = _CYCLES.search(each.text)
        cycles = int(said[1]) if said and int(said[1]) < _ABSURD else 0
        free = each.opcode in ("tuple", "get-tuple-element", "bitcast")
        moved = 0 if free else traffic(each, known, computations)
        arithmetic = own(each)
        if cycles or moved or arithmetic:
            file, line, op = origin(each)
            costs = (cycles * times, moved * times, arithmetic * times)
            found.append(Work(each.name, each.opcode, op, file, line, *costs, times))
    return found
