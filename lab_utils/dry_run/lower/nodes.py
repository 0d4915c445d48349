"""New nodes in a GraphDef."""

from typing import Any

import numpy as np

from lab_utils.estimator import tf


class Nodes:
    """Adds nodes to a GraphDef, under the name of the one that they stand for."""

    def __init__(self, graph_def: Any, prefix: str) -> None:
        self._graph_def, self._prefix, self._count = graph_def, prefix, 0

    def add(self, op: str, inputs: list[str], **types: tf.DType) -> str:
        """A node with attributes that are types; its name."""
        self._count += 1
        name = f"{self._prefix}/lowered_{self._count}"
        node = self._graph_def.node.add(name=name, op=op, input=inputs)
        for key, dtype in types.items():
            node.attr[key].type = dtype.as_datatype_enum
        return name

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
        self._graph_def.node[-1].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        return name

    def numbers(self, values: list[int]) -> str:
        """A constant list, of int32."""
        return self.constant(np.array(values, np.int32))
