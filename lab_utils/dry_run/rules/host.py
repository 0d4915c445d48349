"""What goes to the TPU's host with a graph, or cannot: large constants (TPU222), calls of Python (TPU228)."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.figures import memory
from lab_utils.common.source import place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.graphs import everywhere
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.remote import is_elsewhere
from lab_utils.dry_run.rules import finding
from lab_utils.estimator import tf

_LARGE = 256 * 2**20  # bytes of one constant; the whole graph may have 2 GiB


@rule("TPU228", needs=("functions_of_input", "cores", "address"))
def python(graphs: list[Any], cores: int, address: str) -> Iterator[Finding]:
    """A finding for each call of Python in the graphs of an input pipeline.

    It is a note where `cores` are those of one host and the program has not named an `address` of its TPU.
    """
    hosts = cores // _tpu_estimator.CORES_PER_HOST
    where = "If the TPU has one host, and your program runs on that host, this works."
    if hosts > 1:
        where = f"A TPU with {cores} cores has {hosts} hosts."
    elif address:
        where = (
            "Your program connects to its TPU at a grpc:// address, so the TPU's host runs the "
            "input pipeline in a different process."
        )
    for op in (op for graph in graphs for op in everywhere(graph)):
        if "PyFunc" in op.type:
            is_note = not address and hosts <= 1
            yield finding("TPU228", place(op), note=is_note, op=op.type, hosts=where, case="input")


@rule("TPU228", needs=("host_ops", "address"))
def python_of_host(ops: list[tf.Operation], address: str) -> Iterator[Finding]:
    """A finding for each call of Python in metric_fn or host_call, which the TPU's own host runs."""
    for op in ops if is_elsewhere(address) else ():
        if "PyFunc" in op.type:
            yield finding("TPU228", place(op), op=op.type, case="host")


@rule("TPU222", needs=("functions_of_input",))
def constants_of_input(graphs: list[Any]) -> Iterator[Finding]:
    """A finding for each large constant of an input pipeline."""
    for graph in graphs:
        yield from constants(graph)


@rule("TPU222", needs=("graph",))
def constants(graph: Any) -> Iterator[Finding]:
    """A finding for each large constant of a graph."""
    for op in everywhere(graph):
        if op.type == "Const":
            value = op.outputs[0]
            size = (value.shape.num_elements() or 0) * value.dtype.size
            # One value repeated, as the zeros of a gradient, is stored once.
            if size >= _LARGE and (size := op.get_attr("value").ByteSize()) >= _LARGE:
                yield finding("TPU222", place(op), size=memory(size))
