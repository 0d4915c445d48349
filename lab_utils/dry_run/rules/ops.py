"""Ops and types that a TPU lacks: TPU202 to TPU208."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.graphs import attribute, results_taken
from lab_utils.dry_run.program import Api
from lab_utils.dry_run.records import Finding, Mode, Severity
from lab_utils.dry_run.rules import finding
from lab_utils.estimator import tf

_NO_KERNEL = (
    "Detected unsupported operations when trying to compile graph on XLA_TPU_JIT: {op.type} "
    "(No registered '{op.type}' OpKernel for XLA_TPU_JIT devices compatible with node {op.name})"
)
_COMMON_TYPES = ("bfloat16", "bool", "complex64", "float32", "int32", "int64", "uint8")


# How a tensor reaches the host, in the words of each API.
_TO_HOST = {
    Api.ESTIMATOR: "send the tensor through host_call",
    Api.STRATEGY: "return the tensor from the step",
}


@rule("TPU202", "TPU203", "TPU204", "TPU205", "TPU207", needs=("ops", "api", "on_host"))
def unsupported(ops: list[tf.Operation], api: Api, on_host: bool) -> Iterator[Finding]:
    """A finding for each of a core's ops that the TPU's compiler has no kernel for.

    It is a note where the runtime moves such ops to the host, for which each step then waits.
    """
    findings: list[Finding] = []
    for op in ops:
        if not op_table.is_kind(op.type, "summaries"):
            findings += _wrong_type(op) if op_table.has_op(op.type) else [_no_kernel(op, api)]
    for item in _beginnings(findings):
        yield replace(item, severity=Severity.NOTE) if on_host else item


# What goes on from the line that begins it: all that is computed with the result.
_GOES_ON = ("TPU205", "TPU208")


def _beginnings(findings: list[Finding]) -> Iterator[Finding]:
    """The findings without those that only follow from another of the same rule.

    An op's gradient has the type of its op, and so has what is computed further on, where no line is known.
    """
    causes = [
        item for item in findings if item.place.file and not op_table.of_gradient(item.place.op)
    ]
    for item in findings:
        follows = op_table.of_gradient(item.place.op) or not item.place.file
        if not (follows and any(_leads_to(first, item) for first in causes)):
            if not item.place.file and item.rule in _GOES_ON:
                causes.append(item)  # no line is known of any
            yield item


def _leads_to(first: Finding, item: Finding) -> bool:
    if first.rule != item.rule:
        return False
    return item.rule in _GOES_ON or op_table.of_gradient(item.place.op).startswith(first.place.op)


@rule("TPU206", needs=("every_op", "summaries_of", "api"), modes=(Mode.TRAIN,))
def summaries(ops: list[tf.Operation], graph: Any, api: Api) -> Iterator[Finding]:
    """A finding for each summary among a core's ops of training: in other modes an Estimator writes none.

    Where a program has taken its summaries out of `graph`'s collections it knows that they are dropped:
    some collect them so, and send what they show through host_call.
    """
    collection_names = _collection_names(graph) if graph is not None else set()
    for op in ops:
        if not op_table.is_kind(op.type, "summaries") or op.type == "MergeSummary":
            continue
        if op.graph is graph and op.outputs[0].name not in collection_names:
            continue
        yield finding("TPU206", place(op), op=op.type, case=api)


def _collection_names(graph: Any) -> set[str]:
    """The names of the tensors in all collections of a graph."""
    keys = [key for key in graph.get_all_collection_keys() if isinstance(key, str)]
    return {item.name for key in keys for item in graph.get_collection(key) if tf.is_tensor(item)}


def _no_kernel(op: tf.Operation, api: Api) -> Finding:
    where, message = place(op), _NO_KERNEL.format(op=op)
    if op_table.is_kind(op.type, "python"):
        return finding("TPU205", where, message=message, op=op.type, to_host=_TO_HOST[api])
    if op_table.is_kind(op.type, "files"):
        return finding("TPU207", where, message=message, op=op.type)
    instead = op_table.instead(op.type)
    if instead is None and any(t.dtype == tf.string for t in [*op.inputs, *op.outputs]):
        return _strings(op, message)
    hint = (instead or "Do it in dataset.map, on the host.").replace("{to_host}", _TO_HOST[api])
    hint = hint[:1].upper() + hint[1:]
    return finding("TPU202", where, message=message, op=op.type, hint=hint)


def _strings(op: tf.Operation, message: str) -> Finding:
    """TPU204; the strings of a Saver, and of a checkpoint that variables begin with, are names of files."""
    saves = [other.name for other in op.graph.get_operations() if other.type == "SaveV2"]
    saver = any(op.name.startswith(f"{name.rpartition('/')[0]}/") for name in saves)
    subject, case = op.type, "names"
    if saver:
        subject, case = f"A tf.compat.v1.train.Saver ({op.type})", "saver"
    elif op.type == "RestoreV2":
        subject, case = f"tf.compat.v1.train.init_from_checkpoint ({op.type})", "checkpoint"
    return finding("TPU204", place(op), message=message, op=subject, case=case)


def _wrong_type(op: tf.Operation) -> Iterator[Finding]:
    bad_types = {}
    for attr, allowed in op_table.allowed_types(op.type).items():
        value = attribute(op, attr)
        types = value if isinstance(value, list) else [value]
        names = [t.base_dtype.name for t in types if t is not None]
        bad_types |= {name: (attr, allowed) for name in names if name not in allowed}
    if not bad_types:
        return
    attributes = ", ".join(f"{attr}=DT_{name.upper()}" for name, (attr, _) in bad_types.items())
    message = (
        f"{_NO_KERNEL.format(op=op)} (OpKernel was found, but attributes didn't match) "
        f"Requested Attributes: {attributes}"
    )
    if list(bad_types) == ["string"]:
        yield _strings(op, message)
        return
    _, allowed = next(iter(bad_types.values()))
    takes = ", ".join(name for name in allowed if name in _COMMON_TYPES)
    facts = {"op": op.type, "types": " and ".join(bad_types), "takes": takes}
    yield finding("TPU203", place(op), message=message, **facts)


@rule("TPU208", needs=("ops",))
def float64(ops: list[tf.Operation]) -> Iterator[Finding]:
    """A finding for each op that computes with more than a scalar of float64."""
    findings = []
    for op in ops:
        if op.type in ("Const", "Identity", "Placeholder", "ReadVariableOp"):
            continue
        if any(t.dtype == tf.complex128 for t in op.inputs):
            continue  # refused already (TPU203)
        results, taken = list(op.outputs), results_taken(op)
        results = results if taken is None else [results[number] for number in taken]
        if any(t.dtype == tf.float64 and t.shape.num_elements() != 1 for t in results):
            findings.append(finding("TPU208", place(op), op=op.type))
    yield from _beginnings(findings)
