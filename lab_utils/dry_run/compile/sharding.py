"""What a compiled step with shardings says: what its cores send each other, and what they hold twice."""

import math

from lab_utils.common.figures import Figure, Kind, memory, scaled
from lab_utils.common.source import Place, place_of_line
from lab_utils.dry_run.compile.hlo.collectives import Collective, axes
from lab_utils.dry_run.compile.record import Compiled
from lab_utils.dry_run.program import Partition, Program, Role
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding

_MOST = 0.5  # of the bytes of the state: when so many are split like the batch, that is how the program works
_SMALL = 64 * 2**10  # bytes of an array that is not worth a word
_SHOWN = 4


def figures_of(compiled: Compiled) -> list[Figure]:
    """Bytes a step of each kind of collective, by the axes of the mesh that it works over."""
    partition = compiled.program.partition
    if partition is None:
        return []
    sums: dict[str, int] = {}
    for each in compiled.summary.collectives:
        name = f"{each.kind} over {_over(each, partition)}, a step"
        sums[name] = sums.get(name, 0) + each.bytes
    return [Figure(name, float(size), "B", Kind.COMPILER) for name, size in sorted(sums.items())]


def findings_of(compiled: Compiled) -> list[Finding]:
    """Parameters that are gathered, donated memory that is not taken, cores that do nothing."""
    program = compiled.program
    if program.partition is None:
        return []
    found = [*_gathered(compiled), *_not_reused(compiled)]
    if program.partition.cores == 1 and program.cores > 1:
        idle = program.cores - 1
        found.append(finding("TPU342", program.where, topology=compiled.topology, idle=idle))
    return found


def _over(each: Collective, partition: Partition) -> str:
    if each.kind == "collective-permute":
        return "neighbours"
    found = axes(each.groups, partition.mesh)
    return " and ".join(found) if found else "groups of their own"


def _gathered(compiled: Compiled) -> list[Finding]:
    """TPU340 for each line at which every core gathers parameters whole.

    Where the batch is split over the same axes and most of the state is split so too (an optimizer's moments
    with it, which nobody gathers), the program shards it to save memory (ZeRO, FSDP): a note.
    """
    program, partition = compiled.program, compiled.program.partition
    weights = [n for n, each in enumerate(program.inputs) if each.role == Role.VARIABLE]
    like_batch = [n for n in weights if _split_over(program, n) & set(partition.batch_axes)]
    total = max(1, sum(_whole(program, n) for n in weights))
    by_design = sum(_whole(program, n) for n in like_batch) >= _MOST * total

    gathers: dict[int, list[Collective]] = {}
    for each in compiled.summary.collectives:
        if each.kind == "all-gather" and each.parameter in weights and each.bytes >= _SMALL:
            over = set(axes(each.groups, partition.mesh) or partition.mesh)
            # Of an array that is whole on each core the compiler itself had split something.
            if over & _split_over(program, each.parameter):
                gathers.setdefault(each.parameter, []).append(each)
    lines: dict[tuple[Place, tuple[str, ...]], list[int]] = {}
    for number, several in gathers.items():
        over = {axis for each in several for axis in axes(each.groups, partition.mesh) or ()}
        place = place_of_line(several[0].file, several[0].line) or program.where
        lines.setdefault((place, tuple(sorted(over))), []).append(number)
    return [
        finding(
            "TPU340",
            place,
            note=by_design and bool(over) and set(over) <= set(partition.batch_axes),
            parameters=_listed([program.inputs[number].name for number in numbers]),
            size=scaled(sum(each.bytes for number in numbers for each in gathers[number]), "B"),
            axes=" and ".join(over) or "the mesh",
        )
        for (place, over), numbers in lines.items()
    ]


def _not_reused(compiled: Compiled) -> list[Finding]:
    """TPU341 for donated arrays whose memory no result takes."""
    program, taken = compiled.program, set(compiled.summary.aliased)
    inputs = [program.inputs[n] for n in program.partition.donated if n not in taken]
    if not inputs:
        return []
    arrays = _listed([f"{each.name} {each.dtype}{list(each.shape)}" for each in inputs])
    size = memory(sum(each.bytes for each in inputs))
    return [finding("TPU341", program.where, arrays=arrays, size=size)]


def _split_over(program: Program, number: int) -> set[str]:
    """The axes of the mesh over which an argument is split."""
    return {axis for parts in program.partition.split[number] for axis in parts}


def _whole(program: Program, number: int) -> int:
    """Bytes of an argument on all cores together, each part counted once."""
    mesh = program.partition.mesh
    parts = math.prod(mesh.get(axis, 1) for axis in _split_over(program, number))
    return program.inputs[number].bytes * parts


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
