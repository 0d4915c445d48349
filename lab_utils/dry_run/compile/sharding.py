"""What a compiled step with shardings says: what its cores send each other, and what is not taken."""

from lab_utils.common.figures import Figure, Kind, memory
from lab_utils.dry_run.compile.hlo.collectives import Collective, axes
from lab_utils.dry_run.compile.record import Compiled
from lab_utils.dry_run.program import Partition
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding

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
    """TPU341: donated memory that no result takes; TPU342: cores that do nothing."""
    program, partition = compiled.program, compiled.program.partition
    if partition is None:
        return []
    findings = []
    taken = set(compiled.summary.aliased)
    unused = [program.inputs[n] for n in partition.donated if n not in taken]
    if unused:
        names = [f"{each.name} {each.dtype}{list(each.shape)}" for each in unused]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        size = memory(sum(each.bytes for each in unused))
        arrays = ", ".join(names[:_SHOWN]) + more
        findings.append(finding("TPU341", program.where, arrays=arrays, size=size))
    if partition.cores == 1 and program.cores > 1:
        idle = program.cores - 1
        findings.append(finding("TPU342", program.where, topology=compiled.topology, idle=idle))
    return findings


def _over(each: Collective, partition: Partition) -> str:
    if each.kind == "collective-permute":
        return "neighbours"
    found = axes(each.groups, partition.mesh)
    return " and ".join(found) if found else "groups of their own"
