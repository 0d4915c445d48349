"""The collectives of an optimised HLO module: how many bytes each moves, over which axes, of what."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lab_utils.dry_run.compile.hlo.parse import Module, Visit

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


def collective(visit: Visit, module: Module) -> Collective | None:
    """What an instruction moves; None where it is another op."""
    each = visit.instruction
    kind = each.opcode.removesuffix("-start")
    if kind not in KINDS:
        return None
    result = each.shapes[: len(each.operands)] if each.opcode.endswith("-start") else each.shapes
    taken = sum(shape.bytes for operand in module.operands(each) for shape in operand.shapes)
    if kind == "all-gather" and each.opcode.endswith("-start"):
        result = each.shapes[len(each.operands) :][: len(each.operands)]
    size = max(taken, sum(shape.bytes for shape in result))
    if "all-reduce-scatter" in visit.body:  # the compiler's fusion of an all-reduce and a slice
        kind = "reduce-scatter"
    groups = re.search(r"(?:replica_groups|source_target_pairs)=(.*?), [a-z_]+=", each.text)
    shown = groups[0].rpartition(", ")[0] if groups else ""
    return Collective(kind, visit.times * size, shown)


def axes(groups: str, mesh: Mapping[str, int]) -> tuple[str, ...] | None:
    """The mesh axes over which a collective works; None where its groups are no axes of the mesh."""
    rows = _groups(groups)
    if rows is None:
        return None
    wanted, names = {frozenset(row) for row in rows}, [name for name in mesh if mesh[name] > 1]
    for count in range(1, len(names) + 1):
        for chosen in combinations(names, count):
            if {frozenset(row) for row in _along(mesh, chosen)} == wanted:
                return chosen
    return None


def _along(mesh: Mapping[str, int], chosen: tuple[str, ...]) -> list[list[int]]:
    """The cores that lie together along the `chosen` axes of a mesh, in each of its other places."""
    sizes, last = list(mesh.values()), [list(mesh).index(name) for name in chosen]
    order = [n for n in range(len(sizes)) if n not in last] + last
    count = math.prod(mesh[name] for name in chosen)
    ids = np.arange(math.prod(sizes)).reshape(sizes)
    return ids.transpose(order).reshape(-1, count).tolist()


def _groups(text: str) -> list[list[int]] | None:
    if named := _OF_MESH.search(text):
        if "(" in named[0].split("]")[1] or ":" in named[2]:
            return None  # devices in an order of their own, or a part of an axis
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", named[1])}
        return _along(sizes, tuple(re.findall(r"'(\w+)'", named[2])))
    if iota := _IOTA.search(text):
        shape, dims = (tuple(map(int, iota[n].split(","))) for n in (1, 2))
        ids = np.arange(math.prod(dims)).reshape(dims)
        if iota[3]:
            ids = ids.transpose(tuple(map(int, iota[3].split(","))))
        return ids.reshape(shape).tolist()
    rows = re.findall(r"\{([\d,]+)\}", text)
    return [[int(number) for number in row.split(",")] for row in rows] or None
