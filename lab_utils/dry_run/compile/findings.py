"""What a compiled step says of the port (rules TPU3xx)."""

import heapq
import math
from collections.abc import Iterator

from lab_utils.common.figures import memory, scaled
from lab_utils.dry_run.compile.figures import Compiled
from lab_utils.dry_run.compile.forecast import axes_of, seconds_of
from lab_utils.dry_run.compile.hlo.summary import Buffer, Summary
from lab_utils.dry_run.program import Api, Program, Role, Split
from lab_utils.dry_run.records import LEAST_STEP_SECONDS, Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.wording import some

# A tensor's padding is worth a warning from this part of the program's memory on, and this size.
PADDING_SHARE, PADDING_BYTES = 0.25, 32 * 2**20
NOTEWORTHY = 0.5  # of the matmuls
_MOST = 4  # arrays, by name
# What is whole on every core is worth a warning from this part of the state that a core holds on, and size.
WHOLE_SHARE, WHOLE_BYTES = 0.1, 2**20
GATHERED_SHARE = 0.05  # of the time of a step, for an array that is gathered for a part of it
TOY_SECONDS = 10e-6  # of a step at its bound: what no bound counts takes longer
_BLOCK = 128  # the edge of what the matrix unit multiplies at a time


_TOO_FEW = (
    "First, make the batch a multiple of {cores}: a step has fewer examples than there are cores. "
)
_ALONE = "The step has no sharding, so it runs on one core of {topology}, while {idle} stay idle."
_WHOLE = (
    "No array of the step is split over its mesh, so each of the {cores} cores of {topology} "
    "computes the same from the whole batch, and the step takes as long as on one core."
)


def findings_of(compiled: Compiled) -> list[Finding]:
    """The findings of a step that the compiler took."""
    findings = []
    if compiled.step.memory.needed is not None:
        findings.append(out_of_memory(compiled, compiled.summary, ""))
    findings += _padding(compiled) + _of_partition(compiled)
    pays_most = _gathered_for_a_part(compiled) or _waits_for_links(compiled)
    return findings + (pays_most or _what_pays_most(compiled))


def _waits_for_links(compiled: Compiled) -> list[Finding]:
    """TPU344: a step that waits for other chips longer than it computes; none for a toy, or evaluation."""
    program, time = compiled.program, compiled.time
    if time is None or program.mode == Mode.EVAL or time.seconds < LEAST_STEP_SECONDS:
        return []
    if time.exchanges <= time.computing:
        return []
    exchanges = compiled.summary.exchanges
    longest = max(exchanges, key=lambda each: seconds_of(each, compiled.topology))
    facts = {
        "step": program.mode,
        "waits": scaled(time.exchanges, "s"),
        "computes": scaled(time.computing, "s"),
        "exchanges": "; ".join(str(axis) for axis in time.by_axis if axis.seconds),
    }
    return [finding("TPU344", longest.place or program.where, case=program.api, **facts)]


def _of_partition(compiled: Compiled) -> list[Finding]:
    """TPU341: donated memory that no result takes; TPU342: cores that do nothing; TPU345: what is whole."""
    program, partition = compiled.program, compiled.program.partition
    if partition is None:
        return []
    findings = []
    aliased = set(compiled.summary.aliased)
    unused = [program.inputs[n] for n in partition.donated if n not in aliased]
    if unused:
        names = [f"{array.name} {array.dtype}{list(array.shape)}" for array in unused]
        size = memory(sum(array.bytes for array in unused))
        lost = [array for array in unused if array.role == Role.VARIABLE]
        note = program.mode == Mode.TRAIN and not lost  # a batch, which nobody needs after the step
        facts = {"note": note, "arrays": some(names), "size": size}
        findings.append(finding("TPU341", program.where, **facts))
    cores, topology = program.cores, compiled.topology
    if cores > 1 and (partition.cores == 1 or partition.is_whole):
        what = _WHOLE if partition.is_whole else _ALONE
        facts = {
            "what": what.format(topology=topology, cores=cores, idle=cores - 1),
            "first": _TOO_FEW.format(cores=cores) if program.per_core_batch < cores else "",
        }
        findings.append(finding("TPU342", program.where, case=program.api, **facts))
    return [*findings, *_whole_results(compiled), *_whole_state(compiled)]


def _whole_results(compiled: Compiled) -> Iterator[Finding]:
    """TPU345 for results that a constraint would split, and whose size does not divide (jax issue 26946)."""
    partition, results = compiled.program.partition, compiled.summary.results
    for split in partition.splits:
        if split.name or split.bytes < WHOLE_BYTES:
            continue
        parts = zip(split.shape, split.parts(partition.mesh), strict=True)
        uneven = next(
            ((axis, size, n) for axis, (size, n) in enumerate(parts) if n > 1 and size % n), None
        )
        if uneven and any(each.dims == split.shape for each in results):
            axis, size, count = uneven
            reason = f"axis {axis}, of size {size:,}, cannot be split evenly into {count}"
            yield _whole(split, reason, size, count)


def _whole_state(compiled: Compiled) -> Iterator[Finding]:
    """TPU345 for state that is not split as the rest of it is, and has no axis that could be."""
    partition = compiled.program.partition
    mesh = partition.mesh
    state = [split for split in partition.splits if split.is_state]
    counts = {n for split in state for n in split.parts(mesh) if n > 1}
    held = {id(split): split.bytes / math.prod(split.parts(mesh)) for split in state}
    least = max(WHOLE_BYTES, WHOLE_SHARE * sum(held.values()))
    for split in state:
        is_whole = held[id(split)] == split.bytes >= least
        if is_whole and counts and all(size % n for size in split.shape for n in counts):
            count = max(counts)
            reason = (
                f"none of its sizes is a multiple of {count}, which is the number of parts into "
                "which the other arrays are split"
            )
            yield _whole(split, reason, max(split.shape), count)


def _whole(split: Split, reason: str, size: int, count: int) -> Finding:
    filled = f"{math.ceil(size / count) * count:,}"
    facts = {"array": str(split), "reason": reason, "size": f"{size:,}", "filled": filled}
    return finding("TPU345", split.place, **facts)


def _gathered_for_a_part(compiled: Compiled) -> list[Finding]:
    """TPU346 for arrays that every core gathers whole, and of which it keeps its own part."""
    program, time = compiled.program, compiled.time
    if time is None or program.partition is None:
        return []
    findings = []
    for exchange in compiled.summary.exchanges:
        took = seconds_of(exchange, compiled.topology)
        if exchange.kept_in_part and took > GATHERED_SHARE * time.seconds:
            facts = {
                "size": scaled(exchange.bytes, "B"),
                "axes": axes_of(exchange.members, program.partition.mesh),
                "took": scaled(took, "s"),
                "total": scaled(time.seconds, "s"),
            }
            findings.append(finding("TPU346", exchange.place or program.where, **facts))
    return findings


def _what_pays_most(compiled: Compiled) -> list[Finding]:
    """One of TPU305 and TPU306 at most, by the compiler's figures; none for a toy or an evaluation."""
    program, summary, bound = compiled.program, compiled.summary, compiled.step.cost.roofline
    if bound is None or bound.seconds < TOY_SECONDS or program.mode == Mode.EVAL:
        return []
    is_complete = not (program.partition and program.partition.has_silent_kernels)
    by_traffic = bound.bound_by == "HBM traffic" and is_complete
    narrow = summary.small_edge_share > NOTEWORTHY
    in_float32 = _share_in_float32(program)
    if in_float32 > NOTEWORTHY and (by_traffic or not narrow):  # half the bytes between the layers
        facts = {"step": program.mode, "share": f"{in_float32:.0%}"}
        return [finding("TPU306", program.where, case=program.api, **facts)]
    if narrow and not (by_traffic and program.per_core_batch < _BLOCK):
        share = f"{summary.small_edge_share:.0%}"
        return [finding("TPU305", program.where, step=program.mode, share=share)]
    return []


def _share_in_float32(program: Program) -> float:
    """The part of the matmul FLOP with a float32 operand that the program lets the TPU round to bfloat16."""
    total = sum(matmul.flops for matmul in program.matmuls)
    wide = (m.flops for m in program.matmuls if "f32" in m.dtypes and not m.precise)
    return sum(wide) / total if total else 0.0


def out_of_memory(compiled: Compiled, summary: Summary | None, message: str) -> Finding:
    """TPU303, naming the largest tensors: as stored where `summary` says, else the arguments."""
    program = compiled.program
    if summary is None:
        inputs = heapq.nlargest(_MOST, program.inputs, key=lambda array: array.bytes)
        largest = [f"{array.name} {list(array.shape)} ({memory(array.bytes)})" for array in inputs]
    else:
        names = dict.fromkeys(_description(buffer, program) for buffer in summary.buffers)
        largest = list(names)[:_MOST]
    batch, more = program.per_core_batch, {}
    if program.api in (Api.ESTIMATOR, Api.STRATEGY):
        lower = f"Use a smaller batch than {batch} per core ({program.global_batch} in all). "
        more["lower"] = lower if batch > 8 else ""
    return finding(
        "TPU303",
        program.where,
        message=message,
        step=program.mode,
        topology=compiled.topology,
        limit=memory(compiled.step.memory.available.value),
        needed=memory(compiled.step.memory.needed.value),
        largest=", ".join(largest),
        case=program.api,
        **more,
    )


def _description(buffer: Buffer, program: Program) -> str:
    size = memory(buffer.shape.padded_bytes)
    padding = f", {memory(buffer.waste)} of it padding" if buffer.waste else ""
    return f"{_name(buffer, program)} {buffer.shape} ({size}{padding})"


def _name(buffer: Buffer, program: Program) -> str:
    return buffer.name if buffer.parameter is None else program.inputs[buffer.parameter].name


def _padding(compiled: Compiled) -> list[Finding]:
    """TPU304 for the tensor with the most padding, where that is much of the program's memory."""
    used = compiled.step.memory.arguments.value + compiled.step.memory.temporaries.value
    buffers = [buffer for buffer in compiled.summary.buffers if buffer.shape.worst_axis is not None]
    worst = max(buffers, key=lambda buffer: buffer.waste, default=None)
    if worst is None or worst.waste < max(PADDING_BYTES, PADDING_SHARE * used):
        return []
    shape, axis = worst.shape, worst.shape.worst_axis
    size = shape.dims[axis]
    case, more = "other", {"multiple": shape.padded_dims[axis]}
    if size == compiled.program.per_core_batch:
        case, more = "batch", {}
    return [
        finding(
            "TPU304",
            compiled.program.where,
            step=compiled.program.mode,
            tensor=f"{_name(worst, compiled.program)} {shape}",
            padded=memory(shape.padded_bytes),
            true=memory(shape.bytes),
            axis=f"axis {axis} of size {size}",
            tile=" by ".join(map(str, shape.tile)),
            case=case,
            **more,
        )
    ]
