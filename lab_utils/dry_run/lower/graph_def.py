"""The part of a graph that one step computes, as the GraphDef that XLA's bridge of a CPU build takes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run.graphs import all_nodes, bodies, called_names
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.lower.variables import Variable
from lab_utils.dry_run.ops import CROSS_REPLICA_SUM
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Input, Role
from lab_utils.estimator import tf, v1

_SUFFIX = "_xla"  # ends the names of functions that are not as TensorFlow knows them


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


def nodes_of(graph_def: Any, graph: Any, types: set[str]) -> Iterator[tuple[Any, Any, Nodes]]:
    """The nodes of these types in a pruned `graph` and in its functions: (node, its op, Nodes beside it).

    In functions only Const, Reshape and Sum may be added.
    """
    for node in [node for node in graph_def.node if node.op in types]:
        yield node, graph.get_operation_by_name(node.name), Nodes(graph_def, node.name)
    library = graph_def.library.function
    inner = [(f, node) for f in library for node in f.node_def if node.op in types]
    graphs = bodies(graph) if inner else {}
    for function, node in inner:
        body = graphs.get(function.signature.name)
        try:
            op = body and body.get_operation_by_name(node.name)
        except KeyError:
            op = None
        if op is not None:
            yield node, op, Nodes(function, node.name)


def prune(graph: Any, operations: Iterable[tf.Operation]) -> Any:
    """The part of a graph that `operations` depend on, and the functions it calls, free of devices.

    Its functions are no longer as TensorFlow knows them by their names: `rename_functions` comes last.
    """
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
    for node in all_nodes(graph_def):
        node.device = ""
        for name in (_tensorflow.REPLICATE_ATTRIBUTE, "_class"):
            node.attr.pop(name, None)
    return graph_def


def without(
    graph_def: Any, feeds: Iterable[tf.Tensor], variables: list[Variable], ends: Iterable[str] = ()
) -> list[Variable]:
    """Takes what is fed and the variables out; returns those variables that the rest, or a result, reads."""
    inputs = {name.split(":")[0] for node in graph_def.node for name in node.input} | {*ends}
    handles = {variable.handle.op.name for variable in variables}
    _drop(graph_def, handles | {tensor.op.name for tensor in feeds})
    return [variable for variable in variables if variable.handle.op.name in inputs]


def _drop(graph_def: Any, names: set[str]) -> None:
    remaining = [node for node in graph_def.node if node.name not in names]
    del graph_def.node[:]
    graph_def.node.extend(remaining)


def cut_host_work(graph_def: Any) -> None:
    """Takes out the ops that are marked for the host (outside compilation), such as prints.

    Raises:
        CannotLower: what they compute comes back to the core, or one stands in a loop or a branch.
    """
    marker = _tensorflow.OUTSIDE_COMPILATION_ATTRIBUTE
    host = {node.name for node in graph_def.node if marker in node.attr}
    unfit = any(marker in node.attr for f in graph_def.library.function for node in f.node_def)
    _drop(graph_def, host)
    for node in graph_def.node:
        node.input[:] = [name for name in node.input if name[0] != "^" or name[1:] not in host]
        unfit |= any(name.split(":")[0] in host for name in node.input)
    if unfit:
        raise CannotLower(
            "the dry run cannot lower outside_compilation in a loop or a branch, or if its "
            "results come back to the TPU",
            only_here=True,
        )


def input_of(name: str, role: Role, tensor: Any) -> Input:
    """The Input of a tensor of a graph."""
    return Input(name, role, tuple(tensor.shape.as_list()), tensor.dtype.as_numpy_dtype.__name__)


def use_xla_collectives(graph_def: Any, graph: Any, cores: int) -> int:
    """Turns CrossReplicaSum, which CPU builds do not have, into XlaAllReduce.

    Returns:
        how many cores their groups name, 0 where none does. An optimizer's sums name all there are: where
        others name more or fewer, it is their number.

    Raises:
        CannotLower: a group names several cores in a program of one.
    """
    counts = set()
    for _, op, _ in list(nodes_of(graph_def, graph, {CROSS_REPLICA_SUM})):
        groups = tf.get_static_value(op.inputs[1])
        size = 0 if groups is None or not groups.size else int(groups.max()) + 1
        if cores == 1 < size:  # of many cores XLA says it; a single one is only lowered to compare
            raise CannotLower(
                f"the dry run cannot lower {op.type} here: it names the cores 0 to {size - 1}, but "
                "this step has only 1",
                op_type=op.type,
                where=place(op),
                only_here=True,
            )
        counts.add(size)
    for node in all_nodes(graph_def):
        if node.op == CROSS_REPLICA_SUM:
            node.op = "XlaAllReduce"
            node.attr["reduce_op"].s = b"Add"
            node.attr["mode"].s = b"CrossReplica"
    counts -= {0}
    return max(counts - {cores} or counts, default=0)


def sum_resizes(graph_def: Any, graph: Any) -> None:
    """Turns gradients of nearest-neighbour resizing, which CPU builds do not have, into sums over copies.

    One whose sizes are not fixed, or no whole multiples, stays.
    """
    for node, op, new in nodes_of(graph_def, graph, {"ResizeNearestNeighborGrad"}):
        shapes = op.inputs[0].shape, op.outputs[0].shape
        if op.get_attr("align_corners") or not all(shape.is_fully_defined() for shape in shapes):
            continue
        # Lists, as version 1's shapes hold no ints: [batch, height, width, channels].
        (count, *large, channels), (_, *small, _) = (shape.as_list() for shape in shapes)
        if any(a % b for a, b in zip(large, small, strict=True)):
            continue
        (height, width), dtype = small, op.inputs[0].dtype
        blocks = [count, height, large[0] // height, width, large[1] // width, channels]
        inputs = [node.input[0], new.numbers(blocks)]
        value = new.add("Reshape", inputs, T=dtype, Tshape=tf.int32)
        value = new.add("Sum", [value, new.numbers([2, 4])], T=dtype, Tidx=tf.int32)
        new.replace(node, value, dtype)


def compute(
    graph_def: Any,
    names: list[str],
    feeds: list[tf.Tensor],
    arguments: Iterable[tf.Tensor],
    variables: list[Variable],
    values: list[tf.Variable],
) -> list[Any]:
    """The tensors and ops of these names, of a GraphDef that is imported into the default graph.

    `arguments` stand in place of the tensors `feeds`, and `values` of the `variables`.
    """
    scope = v1.get_default_graph()
    values_of = {tensor.name: argument for tensor, argument in zip(feeds, arguments, strict=True)}
    for variable, value in zip(variables, values, strict=True):
        values_of[variable.handle.name] = scope.capture(value.handle)
    # A result may be an input itself, such as labels that only a metric takes: no node makes it, and
    # import_graph_def refuses an input that no node consumes.
    used = {name.split(":")[0] for node in graph_def.node for name in node.input}
    inputs = {name: it for name, it in values_of.items() if name.split(":")[0] in used}
    others = [name for name in names if name not in values_of]
    results = tf.graph_util.import_graph_def(graph_def, inputs, others, name="")
    values_of |= zip(others, results, strict=True)
    return [values_of[name] for name in names]


def rename_functions(graph_def: Any) -> None:
    """Gives the functions new names, as they have changed: TensorFlow knows the old ones as they were."""
    functions = graph_def.library.function
    names = {item.signature.name: item.signature.name + _SUFFIX for item in functions}
    for node in all_nodes(graph_def):
        node.op = names.get(node.op, node.op)
        for value in node.attr.values():
            for function in [*([value.func] if value.HasField("func") else []), *value.list.func]:
                function.name = names.get(function.name, function.name)
    for function in functions:
        function.signature.name = names[function.signature.name]
    for item in graph_def.library.gradient:
        item.function_name = names.get(item.function_name, item.function_name)
        item.gradient_func = names.get(item.gradient_func, item.gradient_func)
