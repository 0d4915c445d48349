"""Lines that no traceback holds: what brings in what the infeed refuses, and an argument of a constructor."""

import ast
import functools
import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lab_utils.common.source import NOWHERE, Place, own_frame, place_of_line
from lab_utils.dry_run.graphs import attribute, called_functions
from lab_utils.estimator import tf

# Ops that give their batches a first dimension; one that pads settles the others as well.
BATCHES = ("BatchDatasetV2", "ParallelBatchDataset", "MapAndBatchDataset", "PaddedBatchDatasetV2")
_OF_TENSORS = ("TensorSliceDataset", "TensorDataset")
# The ops whose elements have the fault whatever those of their input are like.
_SETTLED_BY = {"TPU101": BATCHES, "TPU102": ("PaddedBatchDatasetV2",)}


def culprit(graph: tf.Graph, rule: str, fact: str = "") -> tf.Operation | None:
    """The op of `graph` to which a finding of `rule` points, or None where none is to blame.

    It is the first on the way from the sources whose elements have the fault: a dataset op, or one in the
    function that it maps. `fact` is the type's name, for TPU120, or the shape, for TPU131.
    """
    bad = _fault(rule, fact)
    op = next((op for op in _ends(graph) if _is_faulty(op, bad)), None)
    # From the last dataset op back to the first that has the fault, or that settles it.
    while op is not None and op.type not in _SETTLED_BY.get(rule, ()):
        before = [t.op for t in op.inputs if t.dtype == tf.variant and _is_dataset(t.op)]
        # Records are strings by right, before they are parsed. TPUEstimator maps over the dataset itself.
        if rule not in _SETTLED_BY and own_frame(op.traceback):
            before = [earlier for earlier in before if _types(earlier) == _types(op)]
        earlier = next((earlier for earlier in before if _is_faulty(earlier, bad)), None)
        if earlier is None:
            break
        op = earlier
    functions = called_functions(op) if op is not None else []
    inner = within(functions[0], rule, fact) if len(functions) == 1 else None
    if inner is None or inner.type == "Identity":  # the function only hands on what it was given
        inner = _computing_op(op, bad) or inner
    return inner or op


def _computing_op(op: tf.Operation | None, bad: Callable) -> tf.Operation | None:
    """The op of the program that computes the faulty tensors of which the datasets up to `op` are made.

    None where they are constants: names of files are strings by right, until a map hands them on.
    """
    chain = [op] if op is not None else []
    for dataset in chain:
        for tensor in dataset.inputs:
            if tensor.dtype == tf.variant and _is_dataset(tensor.op) and _is_faulty(tensor.op, bad):
                chain.append(tensor.op)
            elif dataset.type in _OF_TENSORS and bad(tensor.dtype, tensor.shape):
                return tensor.op if tensor.op.type != "Const" else None
    return None


def _fault(rule: str, fact: str) -> Callable[[Any, tf.TensorShape], bool]:
    """Whether a tensor of that type and shape has the fault that `rule` is about."""
    if rule in ("TPU101", "TPU102"):
        return lambda dtype, shape: dtype != tf.variant and not shape.is_fully_defined()
    if rule == "TPU131":
        return lambda dtype, shape: shape.is_fully_defined() and str(shape.as_list()) == fact
    fault = {"TPU119": "string", "TPU120": fact, "TPU128": "variant"}[rule]
    return lambda dtype, shape: dtype.name == fault


def within(function: Any, rule: str, fact: str = "") -> tf.Operation | None:
    """The op in a dataset's function (a FuncGraph) that brings in the fault; None where none does."""
    if rule not in ("TPU102", "TPU119", "TPU120"):
        return None
    bad = _fault(rule, fact)
    outside = {tensor.op for tensor in function.inputs}
    op = next((t.op for t in function.outputs if bad(t.dtype, t.shape)), None)
    while op is not None and op.type == "Identity" and op.inputs[0].op not in outside:
        op = op.inputs[0].op  # tf.data puts one around each result of the function
    while op is not None and rule != "TPU119":
        before = [t.op for t in op.inputs if bad(t.dtype, t.shape) and t.op not in outside]
        if len(before) != 1:
            break
        op = before[0]
    return op if op is not None and op not in outside and own_frame(op.traceback) else None


def unknown_sizes(shapes: Iterable[tf.TensorShape]) -> str:
    """TPU102 where a size of an example is unknown, TPU101 where only batches are, else ""."""
    unknown = [shape for shape in shapes if not shape.is_fully_defined()]
    if any(shape.rank is None or not shape[1:].is_fully_defined() for shape in unknown):
        return "TPU102"
    return "TPU101" if unknown else ""


def last_shapes(graph: tf.Graph) -> list[tf.TensorShape]:
    """The shapes of what the datasets of `graph` end in."""
    return [shape for op in _ends(graph) for shape in _shapes(op)]


def _ends(graph: tf.Graph) -> Iterator[tf.Operation]:
    """The dataset ops of `graph` whose elements no other op takes."""
    datasets = [op for op in graph.get_operations() if attribute(op, "output_shapes") is not None]
    used = {tensor.name for op in datasets for tensor in op.inputs}
    return (op for op in datasets if _is_dataset(op) and op.outputs[0].name not in used)


def _is_dataset(op: tf.Operation) -> bool:
    return bool(re.search(r"Dataset(V\d+)?$", op.type)) and bool(op.outputs)


def _is_faulty(op: tf.Operation, bad: Callable) -> bool:
    return any(map(bad, _types(op), _shapes(op)))


def _types(op: tf.Operation) -> list[Any]:
    return attribute(op, "output_types") or attribute(op, "Toutput_types") or []


def _shapes(op: tf.Operation) -> list[tf.TensorShape]:
    return list(map(tf.TensorShape, attribute(op, "output_shapes") or []))


def argument(function: Callable, constructor: str, keyword: str) -> Place:
    """Where the file of `function` calls `constructor`: the line of `keyword=`, else of the call.

    With `keyword` "" it is the call that matters. NOWHERE where it is called in no place or in several,
    or where the call does not give that argument.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    file = code.co_filename if code else ""
    calls = [
        node
        for node in _nodes(file)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == constructor
    ]
    if len(calls) != 1:
        return NOWHERE
    call = calls[0]
    for word in call.keywords:
        if word.arg == keyword:
            return place_of_line(file, word.value.lineno)
    elsewhere = keyword and not call.args and all(word.arg for word in call.keywords)
    return NOWHERE if elsewhere else place_of_line(file, call.lineno)


def computed_size(where: Place) -> Place:
    """The line that computes the size of the batches made at `where`: `size = params["batch_size"] // 8`.

    `where` itself if no single assignment of its function does.
    """
    around = [n for n in _nodes(where.file) if _holds(n, where.line)]
    names = {
        argument.id
        for call in around
        if isinstance(call, ast.Call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        if isinstance(argument, ast.Name)
    }
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    sizes = [
        node.value
        for node in (ast.walk(functions[-1]) if functions else ())
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in names
        if any(isinstance(part, ast.BinOp) for part in ast.walk(node.value))
    ]
    return place_of_line(where.file, sizes[0].lineno) if len(sizes) == 1 else where


def _nodes(file: str) -> list[ast.AST]:
    """The nodes of a file's syntax tree, from the outside in; none of what cannot be read."""
    try:
        return list(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except SyntaxError:  # a notebook's cell with magics
        return []


def _holds(node: ast.AST, line: int | None) -> bool:
    return bool(line) and getattr(node, "lineno", line + 1) <= line <= node.end_lineno
