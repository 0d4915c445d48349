"""The variables of a version 1 graph, and the values that they start with."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.estimator import tf, v1


@dataclass(frozen=True)
class Variable:
    """A variable of a graph, with its handle there (a resource tensor)."""

    name: str
    handle: Any
    shape: tuple[int, ...]
    dtype: tf.DType
    trainable: bool


def variables_of(graph: tf.Graph) -> list[Variable]:
    """Every variable of a version 1 graph.

    Raises:
        CannotLower: the initializer of a variable without a fixed shape failed.
    """
    trainable = {id(v) for v in graph.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES)}
    resources = _resources(graph)
    unknown = [name for name, v in resources.items() if not v.shape.is_fully_defined()]
    by_value = initial_values(graph, unknown)
    return [
        Variable(
            name,
            v.handle,
            by_value[name].shape if name in by_value else tuple(v.shape.as_list()),
            v.dtype.base_dtype,
            id(v) in trainable,
        )
        for name, v in resources.items()
    ]


def initial_values(graph: tf.Graph, names: list[str]) -> dict[str, np.ndarray]:
    """What these variables of a version 1 graph start with, computed in a session of its own.

    Raises:
        CannotLower: an initializer failed.
    """
    if not names:
        return {}
    variables = [_resources(graph)[name] for name in names]
    # The whole graph cannot be opened in a session: it holds ops that no CPU has.
    initializers = [v.initializer.name for v in variables]
    part = v1.graph_util.extract_sub_graph(graph.as_graph_def(), initializers)
    with tf.Graph().as_default() as alone:
        tf.graph_util.import_graph_def(part, name="")
        reads = [
            tf.raw_ops.ReadVariableOp(
                resource=alone.get_tensor_by_name(v.handle.name), dtype=v.dtype.base_dtype
            )
            for v in variables
        ]
        try:
            with v1.Session(config=v1.ConfigProto(device_count={"GPU": 0})) as session:
                session.run(initializers)
                return dict(zip(names, map(np.asarray, session.run(reads)), strict=True))
        except tf.errors.OpError as error:
            raise CannotLower(f"the variables could not be initialised: {error.message}") from error


def _resources(graph: tf.Graph) -> dict[str, Any]:
    collections = (v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.LOCAL_VARIABLES)
    variables = [v for key in collections for v in graph.get_collection(key)]
    return {v.op.name: v for v in variables if getattr(v.handle, "dtype", None) == tf.resource}
