"""What a compiled step says of the port (rules TPU3xx)."""

import heapq

from lab_utils.common.figures import memory, scaled
from lab_utils.dry_run.compile.figures import Compiled
from lab_utils.dry_run.compile.hlo.summary import Buffer, Summary
from lab_utils.dry_run.program import Api, Program, Role
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding, some

# A tensor's padding is worth a warning from this part of the program's memory on, and this size.
PADDING_SHARE, PADDING_BYTES = 0.25, 32 * 2**20
TABLE_SHARE = 0.25  # of a core's memory, for one variable with its optimizer slots
NOTEWORTHY = 0.5  # of the matmuls
_MOST = 4  # arrays, by name
TOY_SECONDS = 10e-6  # of a step at its bound: what no bound counts takes longer
_BLOCK = 128  # the edge of what the matrix unit multiplies at a time
_BFLOAT16 = {
    Api.ESTIMATOR: (
        "Build the model under tf.compat.v1.tpu.bfloat16_scope(), and cast the logits back to float32 for "
        "the loss. The scope covers only variables of get_variable and tf.compat.v1.layers: cast a plain "
        "tf.Variable where it is used, and give Keras layers a mixed_bfloat16 policy."
    ),
    Api.STRATEGY: (
        "Call tf.keras.mixed_precision.set_global_policy('mixed_bfloat16') before the model is made, and "
        "give the last layer dtype='float32'. Without Keras, keep the variables in float32, and cast them "
        "and the activations to tf.bfloat16 where they are multiplied."
    ),
    Api.JAX: (
        "Keep the parameters in float32, and cast them and the activations to bfloat16 where they are "
        "multiplied (in Flax, pass dtype=jnp.bfloat16 to the layer); cast the logits back to float32 for the "
        "loss."
    ),
    Api.KERAS_JAX: (
        'Call keras.config.set_dtype_policy("mixed_bfloat16") before the model is made, and give the last '
        'layer dtype="float32".'
    ),
}
_SHARD = {
    Api.JAX: (
        "Shard the batch over a mesh of all cores: give the arguments of jax.jit a NamedSharding(mesh, "
        "P(axis)), or put the batch on the mesh with jax.device_put."
    ),
    Api.KERAS_JAX: (
        "Call keras.distribution.set_distribution(keras.distribution.DataParallel()) before the model is "
        "made: each core then takes its share of every batch."
    ),
}


def findings_of(compiled: Compiled) -> list[Finding]:
    """The findings of a step that the compiler took."""
    findings = []
    if compiled.step.memory.needed is not None:
        findings.append(out_of_memory(compiled, compiled.summary, ""))
    findings += _padding(compiled) + _tables(compiled) + _what_pays_most(compiled)
    return findings + _of_partition(compiled)


def _of_partition(compiled: Compiled) -> list[Finding]:
    """TPU341: donated memory that no result takes; TPU342: cores that do nothing."""
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
    if partition.cores == 1 and program.cores > 1:
        idle = program.cores - 1
        facts = {"topology": compiled.topology, "idle": idle, "hint": _SHARD[program.api]}
        findings.append(finding("TPU342", program.where, **facts))
    return findings


def _what_pays_most(compiled: Compiled) -> list[Finding]:
    """At most one of TPU305 to TPU307, by the compiler's figures; none for a toy, and none for evaluation."""
    program, summary, bound = compiled.program, compiled.summary, compiled.step.cost.roofline
    if bound is None or bound.seconds < TOY_SECONDS or program.mode == Mode.EVAL:
        return []
    is_complete = not (program.partition and program.partition.has_silent_kernels)
    by_traffic = bound.bound_by == "HBM traffic" and is_complete
    narrow = summary.small_edge_share > NOTEWORTHY
    in_float32 = _share_in_float32(program)
    if in_float32 > NOTEWORTHY and (by_traffic or not narrow):  # half the bytes between the layers
        facts = {"share": f"{in_float32:.0%}", "hint": _BFLOAT16[program.api]}
        return [finding("TPU306", program.where, step=program.mode, **facts)]
    if narrow and not (by_traffic and program.per_core_batch < _BLOCK):
        share = f"{summary.small_edge_share:.0%}"
        return [finding("TPU305", program.where, step=program.mode, share=share)]
    if not by_traffic:
        return []
    hint = "Make fewer passes over large tensors, or make those smaller."
    if program.per_core_batch < _BLOCK:
        hint = "Take a larger batch per core, up to 128, and make fewer passes over large tensors."
    return [
        finding(
            "TPU307",
            program.where,
            step=program.mode,
            bytes=scaled(bound.bytes, "B"),
            memory_time=scaled(bound.memory_seconds, "s"),
            chip=f"a core of {compiled.chip.name}",
            compute_time=scaled(bound.compute_seconds, "s"),
            hint=hint,
        )
    ]


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
    batch = program.per_core_batch
    hint = "Build the model under tf.compat.v1.tpu.bfloat16_scope(), or make the largest tensors smaller."
    if program.api is Api.STRATEGY:
        hint = 'Give the layers the policy "mixed_bfloat16", or make the largest tensors smaller.'
    if program.api is Api.KERAS_JAX:
        hint = (
            "Lower the batch, or give the layers the policy mixed_bfloat16. Where the variables are the "
            "largest, split them by keras.distribution.ModelParallel."
        )
    elif program.api is Api.JAX:
        hint = (
            "Split the largest arrays over more of the mesh, wrap layers in jax.checkpoint, or lower the "
            "batch."
        )
    elif batch > 8:
        hint = f"Lower the batch of {batch} a core ({program.global_batch} in all). {hint}"
    return finding(
        "TPU303",
        program.where,
        message=message,
        step=program.mode,
        topology=compiled.topology,
        limit=memory(compiled.step.memory.available.value),
        needed=memory(compiled.step.memory.needed.value),
        largest=", ".join(largest),
        hint=hint,
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
    shape, batch = worst.shape, compiled.program.per_core_batch
    axis = shape.worst_axis
    size = shape.dims[axis]
    hint = f"Make that axis a multiple of {shape.padded_dims[axis]}, or fold it into another axis."
    if size == batch:
        hint = "That axis is the batch: take a multiple of 8 a core, best of 128."
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
            hint=hint,
        )
    ]


def _tables(compiled: Compiled) -> list[Finding]:
    """TPU308 for each matrix that takes much of a core's memory with its optimizer slots."""
    variables = [array for array in compiled.program.inputs if array.role == Role.VARIABLE]
    limit = compiled.step.memory.available.value
    facts = {"step": compiled.program.mode, "limit": memory(limit)}
    findings = []
    for table in variables:
        slots = f"{table.name}/"
        arrays = [array for array in variables if array is table or array.name.startswith(slots)]
        size = sum(array.bytes for array in arrays)
        if table.trainable and len(table.shape) == 2 and size > TABLE_SHARE * limit:
            facts |= {"variable": table.name, "size": memory(size)}
            findings.append(finding("TPU308", compiled.program.where, **facts))
    return findings
