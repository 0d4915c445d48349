"""New nodes in a GraphDef, or in a function of its library."""

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from lab_utils.dry_run.graphs import bodies
from lab_utils.estimator import tf


class Nodes:
    """Adds nodes to a GraphDef or a FunctionDef, under the name of the one that they stand for.

    Attributes:
        inner: they are a function's.
        last: the node that was added last.
    """

    def __init__(self, owner: Any, prefix: str) -> None:
        self.inner = hasattr(owner, "node_def")
        self._nodes = owner.node_def if self.inner else owner.node
        self._prefix, self._count, self.last = prefix, 0, None

    def add(self, op: str, inputs: list[str], **types: tf.DType) -> str:
        """A node with attributes that are types; the name of its result."""
        self._count += 1
        name = f"{self._prefix}/lowered_{self._count}"
        self.last = self._nodes.add(name=name, op=op, input=inputs)
        for key, dtype in types.items():
            self.last.attr[key].type = dtype.as_datatype_enum
        # In a function a result goes by its name in the op's definition, too.
        return f"{name}:{'y' if op == 'Transpose' else 'output'}:0" if self.inner else name

    def binary(self, op: str, first: str, second: str, dtype: tf.DType) -> str:
        """An op of two tensors of one type."""
        return self.add(op, [first, second], T=dtype)

    def cast(self, name: str, source: tf.DType, target: tf.DType) -> str:
        """A cast, where one is needed."""
        return name if source == target else self.add("Cast", [name], SrcT=source, DstT=target)

    def replace(self, node: Any, value: str, dtype: tf.DType) -> None:
        """Has a node, of whatever op, give `value`; it still waits for what it waited for."""
        control = [name for name in node.input if name[0] == "^"]
        node.op = "Identity"
        node.attr.clear()
        node.attr["T"].type = dtype.as_datatype_enum
        node.input[:] = [value, *control]

    def constant(self, value: np.ndarray) -> str:
        """A constant."""
        name = self.add("Const", [], dtype=tf.as_dtype(value.dtype))
        self.last.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        return name

    def numbers(self, values: list[int]) -> str:
        """A constant list, of int32."""
        return self.constant(np.array(values, np.int32))


def nodes_of(
    graph_def: Any, graph: Any, types: Container[str]
) -> Iterator[tuple[Any, tf.Operation, Nodes]]:
    """The nodes of these types in a pruned `graph` and in its functions: (node, its op, Nodes beside it).

    In functions only Const, Reshape, Sum, Transpose and UnsortedSegmentSum may be added.
    """
    for node in [node for node in graph_def.node if node.op in types]:
        yield node, graph.get_operation_by_name(node.name), Nodes(graph_def, node.name)
    functions = graph_def.library.function
    inner = [(each, node) for each in functions for node in each.node_def if node.op in types]
    known = bodies(graph) if inner else {}
    for function, node in inner:
        body = known.get(function.signature.name)
        try:
            op = body and body.get_operation_by_name(node.name)
        except KeyError:
            op = None
        if op is not None:
            yield node, op, Nodes(function, node.name)
