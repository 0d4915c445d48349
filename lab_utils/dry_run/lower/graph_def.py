"""The part of a graph that one step computes, as the GraphDef that XLA's bridge of a CPU build takes."""

from collections.abc import Iterable
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run.graphs import all_nodes, called_names
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.lower.nodes import RENAMED
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Input, Role
from lab_utils.estimator import tf, v1


def pruned(graph: Any, operations: Iterable[tf.Operation]) -> Any:
    """The part of a graph that `operations` depend on, and the functions it calls, free of devices."""
    names = list(dict.fromkeys(op.name for op in operations))
    graph_def = v1.graph_util.extract_sub_graph(graph.as_graph_def(), names)
    functions = {function.signature.name: function for function in graph_def.library.function}
    reachable: dict[str, Any] = {}
    waiting = list(graph_def.node)
    while waiting:
        for name in called_names(waiting.pop()):
            if name in functions and name not in reachable:
                reachable[name] = functions[name]
                waiting += functions[name].node_def
    gradients = list(graph_def.library.gradient)
    graph_def.library.Clear()
    graph_def.library.function.extend(reachable.values())
    graph_def.library.gradient.extend(g for g in gradients if g.function_name in reachable)
    for node in graph_def.node:
        _stripped(node)
    if any([_stripped(node) for each in graph_def.library.function for node in each.node_def]):
        rename_functions(graph_def)
    return graph_def


def drop(graph_def: Any, names: set[str]) -> None:
    """Takes the nodes of these names out."""
    kept = [node for node in graph_def.node if node.name not in names]
    del graph_def.node[:]
    graph_def.node.extend(kept)


def cut_host_work(graph_def: Any, graph: Any) -> list[tuple[tf.Tensor, Input]]:
    """Takes out ops marked for the host (outside compilation); what they send back becomes inputs.

    Raises:
        CannotLower: an op within a loop or a branch is marked, or what it sends has no fixed shape.
    """
    marked = _tensorflow.OUTSIDE_COMPILATION_ATTRIBUTE
    host = {node.name for node in graph_def.node if marked in node.attr}
    if any(marked in node.attr for f in graph_def.library.function for node in f.node_def):
        raise CannotLower(
            "outside_compilation within a loop or a branch is not lowered here", only_here=True
        )
    crossing: dict[str, tuple[tf.Tensor, Input]] = {}
    for node in graph_def.node:
        if node.name in host:
            continue
        kept = [name for name in node.input if name.removeprefix("^") not in host or name[0] != "^"]
        node.input[:] = kept
        for name in kept:
            if name.split(":")[0] in host:
                tensor = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
                if not tensor.shape.is_fully_defined():
                    raise CannotLower(
                        f"{tensor.name} comes from the host without a fixed shape",
                        op_type=tensor.op.type,
                        where=place(tensor.op),
                    )
                crossing[tensor.name] = (tensor, input_of(tensor.name, Role.HOST, tensor))
    drop(graph_def, host)
    return list(crossing.values())


def input_of(name: str, role: Role, tensor: Any) -> Input:
    """The Input of a tensor of a graph."""
    return Input(name, role, tuple(tensor.shape.as_list()), tensor.dtype.as_numpy_dtype.__name__)


def use_xla_collectives(graph_def: Any) -> int:
    """Turns CrossReplicaSum, which CPU builds do not have, into XlaAllReduce; returns how many."""
    sums = [node for node in all_nodes(graph_def) if node.op == "CrossReplicaSum"]
    in_functions = len(sums) - sum(node.op == "CrossReplicaSum" for node in graph_def.node)
    for node in sums:
        node.op = "XlaAllReduce"
        node.attr["reduce_op"].s = b"Add"
        node.attr["mode"].s = b"CrossReplica"
    if in_functions:
        rename_functions(graph_def)
    return len(sums)


def _stripped(node: Any) -> bool:
    """Takes from a node where it is to run; whether it said anything of that."""
    said = [name for name in (_tensorflow.REPLICATE_ATTRIBUTE, "_class") if name in node.attr]
    for name in said:
        del node.attr[name]
    device, node.device = node.device, ""
    return bool(said or device)


def rename_functions(graph_def: Any) -> None:
    """Gives the functions new names, as one has changed: TensorFlow knows the old ones as they were."""
    names = {
        each.signature.name: each.signature.name + RENAMED for each in graph_def.library.function
    }
    for node in all_nodes(graph_def):
        node.op = names.get(node.op, node.op)
        for value in node.attr.values():
            for function in [*([value.func] if value.HasField("func") else []), *value.list.func]:
                function.name = names.get(function.name, function.name)
    for function in graph_def.library.function:
        function.signature.name = names[function.signature.name]
    for each in graph_def.library.gradient:
        each.function_name = names.get(each.function_name, each.function_name)
        each.gradient_func = names.get(each.gradient_func, each.gradient_func)
