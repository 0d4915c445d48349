"""New nodes in a GraphDef, or in a function of its library."""

from collections.abc import Container, Iterator, Sequence
from typing import Any

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
        return f"{name}:output:0" if self.inner else name

    def replace(self, node: Any, value: str, dtype: tf.DType) -> None:
        """Has a node, of whatever op, give `value`; it still waits for what it waited for."""
        control = [name for name in node.input if name[0] == "^"]
        node.op = "Identity"
        node.attr.clear()
        node.attr["T"].type = dtype.as_datatype_enum
        node.input[:] = [value, *control]

    def numbers(self, values: int | Sequence[int]) -> str:
        """A constant, or a list of them, of int32."""
        name = self.add("Const", [], dtype=tf.int32)
        self.last.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values, tf.int32))
        return name


def nodes_of(
    graph_def: Any, graph: Any, types: Container[str]
) -> Iterator[tuple[Any, tf.Operation, Nodes]]:
    """The nodes of these types in a pruned `graph` and in its functions: (node, its op, Nodes beside it).

    In functions only Const, Reshape and Sum may be added.
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
