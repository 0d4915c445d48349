"""What a compiled step with shardings says: what its cores send each other, and what they hold twice."""

import itertools
import math
import re
from collections import defaultdict

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
_OF_OPTIMIZER = re.compile(
    r"(opt|optim\w*|mu|nu|m|v|trace|moment\w*|slots?|ema)(_\w+)?", re.IGNORECASE
)
_REPEATED = 1.5  # times the FLOPs of the step: what rematerialisation adds by itself stays below


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
    found = [*_gathered(compiled), *_repeated(compiled), *_not_reused(compiled)]
    found += whole_moments(program)
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
    """TPU340 for each parameter that every core gathers whole.

    Where the batch is split over the same axis and most of the state is split so too (an optimizer's moments
    with it, which nobody gathers), the program shards it to save memory (ZeRO, FSDP): a note.
    """
    program, partition = compiled.program, compiled.program.partition
    weights = [n for n, each in enumerate(program.inputs) if each.role == Role.VARIABLE]
    gathers: dict[int, list[Collective]] = {}
    for each in compiled.summary.collectives:
        if each.kind == "all-gather" and each.parameter in weights and each.bytes >= _SMALL:
            over = set(axes(each.groups, partition.mesh) or partition.mesh)
            # Of an array that is whole on each core the compiler itself had split something.
            if over & {axis for split in partition.split[each.parameter] for axis in split}:
                gathers.setdefault(each.parameter, []).append(each)
    trained = sum(_whole(program, n) for n in weights)
    like_batch = [
        n
        for n in weights
        if set(partition.batch_axes) & {axis for split in partition.split[n] for axis in split}
    ]
    share = sum(_whole(program, n) for n in like_batch) / max(1, trained)
    places: dict[tuple, list[tuple[int, int]]] = {}
    for number, several in gathers.items():
        over = sorted(
            {axis for each in several for axis in axes(each.groups, partition.mesh) or ()}
        )
        first = several[0]
        size = sum(each.bytes for each in several)
        places.setdefault((first.file, first.line, tuple(over)), []).append((number, size))
    found = []
    for (file, line, over), held in places.items():
        by_design = bool(over) and set(over) <= set(partition.batch_axes) and share >= _MOST
        names = [program.inputs[number].name for number, _ in held]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        found.append(
            finding(
                "TPU340",
                place_of_line(file, line) or program.where,
                note=by_design,
                parameters=", ".join(names[:_SHOWN]) + more,
                size=scaled(sum(size for _, size in held), "B"),
                axes=" and ".join(over) or "the mesh",
            )
        )
    return found


def _repeated(compiled: Compiled) -> list[Finding]:
    """TPU344 where the cores together do clearly more matmul FLOPs than the step is written with."""
    program, partition = compiled.program, compiled.program.partition
    done = partition.cores * sum(each.flops for each in compiled.summary.products)
    if not partition.flops or partition.cores == 1 or done < _REPEATED * partition.flops:
        return []
    # Where an activation that was split is made whole, each core goes on with all of it.
    gathers = [
        each
        for each in compiled.summary.collectives
        if each.kind == "all-gather" and each.parameter is None and each.bytes >= _SMALL
    ]
    place, what = program.where, "No array is gathered on the way: something is not split at all."
    asked = {line: each for each in gathers if (line := _asked_for(each, partition))}
    if len(asked) == 1:
        ((place, first),) = asked.items()
        what = f"This line asks for an activation that is whole over {_over(first, partition)}."
    elif gathers:
        first = max(gathers, key=lambda each: each.bytes)
        place = place_of_line(first.file, first.line)
        size, over = scaled(first.bytes, "B"), _over(first, partition)
        what = f"This line gathers an activation over {over}: {size} a step."
    times = f"{done / partition.flops:.1f}"
    return [finding("TPU344", place or program.where, times=times, what=what)]


def _asked_for(gather: Collective, partition: Partition) -> Place | None:
    """The one line that lays out an array as this gather leaves it.

    The compiler itself names the line of an op beside it.
    """
    over = set(axes(gather.groups, partition.mesh) or ())
    lines = {
        each.where
        for each in partition.constrained
        if over.isdisjoint(each.axes)
        and gather.bytes * math.prod(partition.mesh[axis] for axis in each.axes) == each.bytes
    }
    return lines.pop() if over and len(lines) == 1 else None


def whole_moments(program: Program) -> list[Finding]:
    """TPU345 where parameters are split, and a copy of their tree that an optimizer keeps is not."""
    split = program.partition.split
    held = {
        tuple(re.findall(r"\w+", each.name)): number
        for number, each in enumerate(program.inputs)
        if each.trainable
    }
    parameters = {path: number for path, number in held.items() if any(split[number])}
    copies: dict[tuple, list[tuple[int, int]]] = defaultdict(list)
    for path, number in parameters.items():
        for other, copy in held.items():
            alike = _alike(path, other)
            kept = any(map(_OF_OPTIMIZER.fullmatch, other[: len(other) - alike]))
            same = _whole_shape(program, number) == program.inputs[copy].shape
            if alike and kept and same and not any(split[copy]):
                copies[path[: len(path) - alike]].append((number, copy))
    found = []
    for pairs in copies.values():
        covered = sum(_whole(program, number) for number in {number for number, _ in pairs})
        inputs = [program.inputs[copy] for copy in sorted({copy for _, copy in pairs})]
        size = sum(each.bytes for each in inputs)
        if size >= _SMALL and covered > _MOST * sum(
            _whole(program, n) for n in parameters.values()
        ):
            more = f" and {len(inputs) - _SHOWN} more" if len(inputs) > _SHOWN else ""
            arrays = ", ".join(each.name for each in inputs[:_SHOWN]) + more
            found.append(finding("TPU345", program.where, arrays=arrays, size=memory(size)))
    return found


def _alike(one: tuple, other: tuple) -> int:
    """How many parts two paths have in common at their ends."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _parts(program: Program, number: int) -> list[int]:
    """Into how many parts each axis of an argument is split."""
    partition = program.partition
    return [
        math.prod(partition.mesh.get(axis, 1) for axis in split)
        for split in partition.split[number]
    ]


def _whole_shape(program: Program, number: int) -> tuple[int, ...]:
    parts = itertools.chain(_parts(program, number), itertools.repeat(1))
    return tuple(
        size * part for size, part in zip(program.inputs[number].shape, parts, strict=False)
    )


def _whole(program: Program, number: int) -> int:
    """Bytes of an argument on all cores together, each part counted once."""
    return program.inputs[number].bytes * math.prod(_parts(program, number))


def _not_reused(compiled: Compiled) -> list[Finding]:
    """TPU341 for donated arrays whose memory no result takes."""
    program, taken = compiled.program, set(compiled.summary.aliased)
    kept = [n for n in program.partition.donated if n not in taken]
    inputs = [program.inputs[number] for number in kept]
    if not inputs:
        return []
    shown = [f"{each.name} {each.dtype}{list(each.shape)}" for each in inputs]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    size = memory(sum(each.bytes for each in inputs))
    arrays = ", ".join(shown[:_SHOWN]) + more
    return [finding("TPU341", program.where, arrays=arrays, size=size)]
