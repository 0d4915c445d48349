"""Walks over TensorFlow's graphs: over a Graph's ops, and over the nodes of a GraphDef."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf


def moves_to_host(graph: Any) -> bool:
    """Whether ops that a TPU lacks go to the host: the program calls tf.config.set_soft_device_placement."""
    with graph.as_default():  # eagerly it is True by default, and tracing asks otherwise
        return tf.config.get_soft_device_placement()


def attribute(op: tf.Operation, name: str) -> Any:
    """The op's attribute, or None where it has none of that name."""
    try:
        return op.get_attr(name)
    except ValueError:
        return None


def called_functions(op: tf.Operation) -> list[Any]:
    """The functions (FuncGraphs) that the op calls: a loop's condition and body, branches, ...

    Of the branches only the one taken, where the condition is a constant: the TPU's compiler has no other.
    None of an op that calls one whose graph is not known.
    """
    functions = _functions(op)
    return [] if None in functions.values() else list(functions.values())


def unknown_functions(ops: Iterable[tf.Operation]) -> list[str]:
    """The names of the functions that ops call and whose graphs are not known."""
    found = {name for op in ops for name, graph in _functions(op).items() if graph is None}
    return sorted(found)


def _functions(op: tf.Operation) -> dict[str, Any]:
    """The functions that the op calls, by their names; None for a graph that is not known."""
    names = []
    for attr in op.op_def.attr:
        if attr.type in ("func", "list(func)"):
            value = attribute(op, attr.name) or []
            names += [f.name for f in (value if isinstance(value, list) else [value])]
    if op.type in ("If", "StatelessIf") and (taken := _constant(op.inputs[0])) is not None:
        names = names[:1] if taken else names[1:]
    return {name: _tensorflow.graph_of_function(name, op.graph) for name in names}


def _constant(tensor: tf.Tensor) -> Any:
    """The value of a constant, also of one that a function captures; None for other tensors."""
    value = tf.get_static_value(tensor)
    captures = () if value is not None else getattr(tensor.graph, "captures", ())
    outer = next((outer for outer, inner in captures if inner is tensor), None)
    return value if outer is None else _constant(outer)


def arguments(op: tf.Operation, function: Any) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Pairs (tensor outside, parameter inside) for a function that the op calls."""
    outer = op.inputs[len(op.inputs) - len(function.inputs) :] if function.inputs else []
    return list(zip(outer, function.inputs, strict=True))


def everywhere(graph: Any, keep: Callable[..., bool] = lambda op: True) -> Iterator[tf.Operation]:
    """The ops of `graph` for which `keep` holds, and those of the functions that they call.

    What a function computes for a result that nobody takes is left out: the gradient of the labels, where
    a loss is a function of its own.
    """
    yielded, known, waiting = set(), set(), [(graph, None)]
    while waiting:
        current, taken = waiting.pop()
        if (id(current), taken) in known:
            continue
        known.add((id(current), taken))
        needed = None if taken is None else ancestors([current.outputs[n].op for n in taken])
        for op in current.get_operations():
            wanted = keep(op) if current is graph else needed is None or op in needed
            if wanted and op not in yielded:
                yielded.add(op)
                yield op
                known_functions = filter(None, _functions(op).values())
                waiting += [(function, results_taken(op)) for function in known_functions]


def results_taken(op: tf.Operation) -> frozenset[int] | None:
    """The numbers of the results of a call without effects that something takes; None for other ops.

    Of a plain graph nobody knows what is fetched.
    """
    if op.type != "PartitionedCall" or not hasattr(op.graph, "outputs"):
        return None
    returned = {id(tensor) for tensor in op.graph.outputs}
    results = enumerate(op.outputs)
    return frozenset(n for n, each in results if each.consumers() or id(each) in returned)


def bodies(graph: Any) -> dict[str, Any]:
    """The functions (FuncGraphs) that a graph's ops call, and those that these call, by their names."""
    functions: dict[str, Any] = {}
    graphs = [graph]
    while graphs:
        for op in graphs.pop().get_operations():
            for name in called_names(op.node_def):
                body = None if name in functions else _tensorflow.graph_of_function(name, op.graph)
                if body is not None:
                    functions[name] = body
                    graphs.append(body)
    return functions


def ancestors(ops: list[tf.Operation]) -> set[tf.Operation]:
    """The ops themselves and all of their graph that they need, by data or by control."""
    result, waiting = set(ops), list(ops)
    while waiting:
        op = waiting.pop()
        for before in [*(tensor.op for tensor in op.inputs), *op.control_inputs]:
            if before not in result:
                result.add(before)
                waiting.append(before)
    return result


def called_names(node: Any) -> Iterator[str]:
    """The names of the functions that a node may call, its own op among them."""
    yield node.op
    for _, value in sorted(node.attr.items()):
        if value.HasField("func"):
            yield value.func.name
        yield from (function.name for function in value.list.func)


def all_nodes(graph_def: Any) -> Iterator[Any]:
    """The nodes of a GraphDef and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def
