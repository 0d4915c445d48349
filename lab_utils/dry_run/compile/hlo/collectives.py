"""The collectives of an optimised HLO module: how many bytes each moves, over which axes, of what."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab_utils.dry_run.compile.hlo.parse import Instruction

KINDS = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute")
# What changes neither the values that an array holds nor whose they are.
_SAME = {
    "copy", "copy-start", "copy-done", "bitcast", "convert", "reshape", "transpose", "slice",
    "dynamic-slice", "optimization-barrier", "all-gather", "all-gather-start", "all-gather-done",
    "async-start", "async-done", "slice-start", "slice-done",
}  # fmt: skip
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_OF_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:\([^)]*\))? ?\{([^}]*)\}")


@dataclass(frozen=True)
class Collective:
    """One collective of a core's step.

    Attributes:
        kind: of KINDS.
        bytes: a step, of the whole array: what an all-gather gives, what a reduce-scatter takes. Rounds of
            loops are counted.
        groups: who takes part together, as the module writes it.
        file, line: the learner's line that it comes from; "" and 0 where the module names none.
        parameter: the number of the argument that is moved, where it is one.
    """

    kind: str
    bytes: int
    groups: str
    file: str
    line: int
    parameter: int | None


def collective(
    each: Instruction,
    times: int,
    body: str,
    sources: "Sources",
    line: tuple[str, int],
) -> Collective | None:
    """What `each`, an instruction of the computation `body`, moves; None where it is another op."""
    kind = each.opcode.removesuffix("-start")
    if kind not in KINDS:
        return None
    result = each.shapes[: len(each.operands)] if each.opcode.endswith("-start") else each.shapes
    known = sources.known
    taken = sum(s.bytes for name in each.operands if name in known for s in known[name].shapes)
    if kind == "all-gather" and each.opcode.endswith("-start"):
        result = each.shapes[len(each.operands) :][: len(each.operands)]
    size = max(taken, sum(shape.bytes for shape in result))
    if "all-reduce-scatter" in body:  # the compiler's fusion of an all-reduce and a slice of it
        kind = "reduce-scatter"
    groups = re.search(r"(?:replica_groups|source_target_pairs)=(.*?), [a-z_]+=", each.text)
    moved = sources.parameter(known.get(each.operands[0])) if each.operands else None
    shown = groups[0].rpartition(", ")[0] if groups else ""
    return Collective(kind, times * size, shown, *line, moved)


class Sources:
    """Which argument of the program an array is, through copies, slices, casts, loops and gathers."""

    def __init__(self, computations: dict[str, list[Instruction]], entry: str) -> None:
        self._computations, self._entry = computations, entry
        self.known = {each.name: each for body in computations.values() for each in body}
        self._home = {each.name: name for name, body in computations.items() for each in body}
        self._last = {name: body[-1] for name, body in computations.items() if body}
        self._callers = {
            called: each
            for body in computations.values()
            for each in body
            for key, called in each.called()
            if key in ("body", "calls") or (key == "to_apply" and each.opcode == "call")
        }

    def parameter(self, each: Instruction | None, depth: int = 200) -> int | None:
        """The number of the argument; None where the array is computed."""
        if each is None or not depth:
            return None
        if each.opcode == "parameter":
            number = int(re.search(r" parameter\((\d+)\)", each.text)[1])
            body = self._home[each.name]
            if body == self._entry:
                return number
            caller = self._callers.get(body)
            if caller is None or caller.opcode == "while" or number >= len(caller.operands):
                return None
            return self.parameter(self._operand(caller, number), depth - 1)
        if each.opcode == "get-tuple-element":
            index = int(re.search(r"index=(\d+)", each.text)[1])
            return self._element(self._operand(each, 0), index, depth - 1)
        if each.opcode == "fusion":
            called = dict(each.called()).get("calls", "")
            return self.parameter(self._last.get(called), depth - 1)
        joined = each.opcode == "custom-call" and '"ConcatBitcast"' in each.text
        if (each.opcode in _SAME or joined) and each.operands:
            return self.parameter(self._operand(each, 0), depth - 1)
        return None

    def _element(self, whole: Instruction | None, index: int, depth: int) -> int | None:
        """The argument that stands in one place of a tuple; a loop is taken to leave its places alone."""
        if whole is None or not depth:
            return None
        if whole.opcode == "tuple" and index < len(whole.operands):
            return self.parameter(self._operand(whole, index), depth - 1)
        if whole.opcode == "while":
            return self._element(self._operand(whole, 0), index, depth - 1)
        if whole.opcode == "parameter":
            caller = self._callers.get(self._home[whole.name])
            if caller is not None and caller.opcode == "while":
                body = self._last.get(dict(caller.called()).get("body", ""))
                if self._kept(body, index):
                    return self._element(self._operand(caller, 0), index, depth - 1)
            return None
        if whole.opcode == "fusion":
            return self._element(
                self._last.get(dict(whole.called()).get("calls", "")), index, depth - 1
            )
        return self.parameter(whole, depth - 1)

    def _kept(self, root: Instruction | None, index: int) -> bool:
        """Whether a loop's body gives its place `index` back as it was."""
        if root is None or root.opcode != "tuple" or index >= len(root.operands):
            return False
        given = self._operand(root, index)
        while given is not None and given.opcode in ("copy", "bitcast"):
            given = self._operand(given, 0)
        if given is None or given.opcode != "get-tuple-element":
            return False
        source = self._operand(given, 0)
        return (
            f"index={index}," in given.text + ","
            and source is not None
            and source.opcode == "parameter"
        )

    def _operand(self, each: Instruction, number: int) -> Instruction | None:
        return self.known.get(each.operands[number]) if number < len(each.operands) else None


def axes(groups: str, mesh: Mapping[str, int]) -> tuple[str, ...] | None:
    """The mesh axes over which a collective works; None where its groups are no axes of the mesh."""
    found = _groups(groups)
    if found is None:
        return None
    ids = np.arange(int(np.prod(list(mesh.values())))).reshape(list(mesh.values()))
    names = list(mesh)
    wanted = {frozenset(group) for group in found}
    for chosen in _subsets([name for name in names if mesh[name] > 1]):
        last = [names.index(name) for name in chosen]
        kept = [n for n in range(len(names)) if n not in last]
        size = int(np.prod([mesh[name] for name in chosen]))
        if {
            frozenset(row) for row in ids.transpose(kept + last).reshape(-1, size).tolist()
        } == wanted:
            return chosen
    return None


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    """All that are not empty, the smallest first."""
    found = [()]
    for name in names:
        found += [(*each, name) for each in found]
    return sorted((each for each in found if each), key=len)


def _groups(text: str) -> list[list[int]] | None:
    if named := _OF_MESH.search(text):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", named[1])}
        chosen = re.findall(r"'(\w+)'", named[2])
        if "(" in named[0].split("]")[1] or ":" in named[2]:
            return None  # devices in an order of their own, or a part of an axis
        ids = np.arange(int(np.prod(list(sizes.values())))).reshape(list(sizes.values()))
        last = [list(sizes).index(name) for name in chosen]
        kept = [n for n in range(len(sizes)) if n not in last]
        count = int(np.prod([sizes[name] for name in chosen]))
        return ids.transpose(kept + last).reshape(-1, count).tolist()
    if iota := _IOTA.search(text):
        shape, dims = (tuple(map(int, iota[n].split(","))) for n in (1, 2))
        ids = np.arange(int(np.prod(dims))).reshape(dims)
        if iota[3]:
            ids = ids.transpose(tuple(map(int, iota[3].split(","))))
        return ids.reshape(shape).tolist()
    rows = re.findall(r"\{([\d,]+)\}", text)
    return [[int(number) for number in row.split(",")] for row in rows] or None
