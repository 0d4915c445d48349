"""The collectives of an optimised HLO module: how many bytes each moves, over which axes, of what."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab_utils.dry_run.compile.hlo.parse import Instruction

KINDS = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute")
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
    """

    kind: str
    bytes: int
    groups: str


def collective(
    each: Instruction, times: int, body: str, known: Mapping[str, Instruction]
) -> Collective | None:
    """What `each`, an instruction of the computation `body`, moves; None where it is another op."""
    kind = each.opcode.removesuffix("-start")
    if kind not in KINDS:
        return None
    result = each.shapes[: len(each.operands)] if each.opcode.endswith("-start") else each.shapes
    taken = sum(s.bytes for name in each.operands if name in known for s in known[name].shapes)
    if kind == "all-gather" and each.opcode.endswith("-start"):
        result = each.shapes[len(each.operands) :][: len(each.operands)]
    size = max(taken, sum(shape.bytes for shape in result))
    if "all-reduce-scatter" in body:  # the compiler's fusion of an all-reduce and a slice of it
        kind = "reduce-scatter"
    groups = re.search(r"(?:replica_groups|source_target_pairs)=(.*?), [a-z_]+=", each.text)
    shown = groups[0].rpartition(", ")[0] if groups else ""
    return Collective(kind, times * size, shown)


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
