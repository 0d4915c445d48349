"""Lines that no traceback holds: what brings in what the infeed refuses, and an argument of a constructor."""

import ast
import functools
import inspect
import linecache
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import NOWHERE, Place, own_frame, place_of_line
from lab_utils.dry_run.graphs import attribute, called_functions
from lab_utils.dry_run.lower.bridge import leaf_names
from lab_utils.dry_run.wording import some
from lab_utils.estimator import tf

# Ops that give their batches a first dimension; one that pads settles the others as well.
BATCHES = ("BatchDatasetV2", "ParallelBatchDataset", "MapAndBatchDataset", "PaddedBatchDatasetV2")
ARGUMENTS = ("feature", "label", "label/weight")  # the parts of an element, in their order
_OF_TENSORS = ("TensorSliceDataset", "TensorDataset")


@dataclass(frozen=True)
class Fault:
    """What the infeed refuses of the elements of a dataset.

    Attributes:
        is_bad: whether a tensor of that type and shape has the fault.
        settled_by: the ops whose elements have or lack it whatever those of their input are like.
        in_functions: a function that a dataset maps may bring it in.
        passes_on: there, what is computed from a tensor that has it may have it for that reason.
    """

    is_bad: Callable[[Any, tf.TensorShape], bool]
    settled_by: tuple[str, ...] = ()
    in_functions: bool = False
    passes_on: bool = True


def _is_unknown(dtype: Any, shape: tf.TensorShape) -> bool:
    return dtype != tf.variant and not shape.is_fully_defined()


def of_type(name: str, in_functions: bool = True, passes_on: bool = True) -> Fault:
    """The elements are of the type of that name."""
    return Fault(lambda dtype, shape: dtype.name == name, (), in_functions, passes_on)


def of_shape(text: str) -> Fault:
    """The elements have the shape of that text: "[8, 3]"."""
    return Fault(lambda dtype, shape: shape.is_fully_defined() and str(shape.as_list()) == text)


UNKNOWN_BATCH = Fault(_is_unknown, settled_by=BATCHES)
UNKNOWN_SIZES = Fault(_is_unknown, settled_by=("PaddedBatchDatasetV2",), in_functions=True)
STRINGS = of_type("string", passes_on=False)
SPARSE = of_type("variant", in_functions=False)


def culprit(graph: tf.Graph, fault: Fault) -> tf.Operation | None:
    """The op of `graph` to which a finding of that fault points, or None where none is to blame.

    It is the first on the way from the sources whose elements have the fault: a dataset op, or one in the
    function that it maps.
    """
    op = next((op for op in _ends(graph) if _is_faulty(op, fault)), None)
    # From the last dataset op back to the first that has the fault, or that settles it.
    while op is not None and op.type not in fault.settled_by:
        before = [t.op for t in op.inputs if t.dtype == tf.variant and _is_dataset(t.op)]
        # Records are strings by right, before they are parsed. TPUEstimator maps over the dataset itself.
        if not fault.settled_by and own_frame(op.traceback):
            before = [earlier for earlier in before if _types(earlier) == _types(op)]
        earlier = next((earlier for earlier in before if _is_faulty(earlier, fault)), None)
        if earlier is None:
            break
        op = earlier
    functions = called_functions(op) if op is not None else []
    inner = within(functions[0], fault) if len(functions) == 1 else None
    if inner is None or inner.type == "Identity":  # the function only hands on what it was given
        inner = _computing_op(op, fault) or inner
    return inner or op


def _computing_op(op: tf.Operation | None, fault: Fault) -> tf.Operation | None:
    """The op of the program that computes the faulty tensors of which the datasets up to `op` are made.

    None where they are constants: names of files are strings by right, until a map hands them on.
    """
    chain = [op] if op is not None else []
    for dataset in chain:
        for tensor in dataset.inputs:
            if tensor.dtype == tf.variant and _is_dataset(tensor.op):
                chain += [tensor.op] if _is_faulty(tensor.op, fault) else []
            elif dataset.type in _OF_TENSORS and fault.is_bad(tensor.dtype, tensor.shape):
                return tensor.op if tensor.op.type != "Const" else None
    return None


def within(function: Any, fault: Fault) -> tf.Operation | None:
    """The op in a dataset's function (a FuncGraph) that brings in the fault; None where none does."""
    if not fault.in_functions:
        return None
    outside = {tensor.op for tensor in function.inputs}
    op = next((t.op for t in function.outputs if fault.is_bad(t.dtype, t.shape)), None)
    while op is not None and op.type == "Identity" and op.inputs[0].op not in outside:
        op = op.inputs[0].op  # tf.data puts one around each result of the function
    while op is not None and fault.passes_on:
        inputs = [tensor for tensor in op.inputs if tensor.op not in outside]
        before = [tensor.op for tensor in inputs if fault.is_bad(tensor.dtype, tensor.shape)]
        if len(before) != 1:
            break
        op = before[0]
    return op if op is not None and op not in outside and own_frame(op.traceback) else None


def names_of_strings(structure: Any) -> str:
    """The names of the strings that data hold: "feature/text" of a dict, else their place."""
    return _names(structure, lambda leaf: getattr(leaf, "dtype", None) == tf.string)


def names_of_values(structure: Any) -> str:
    """The names of the values in data that are not tensors, such as a Python number."""
    return _names(structure, lambda leaf: leaf is not None and not hasattr(leaf, "dtype"))


def _names(structure: Any, is_meant: Callable[[Any], bool]) -> str:
    """The names of the leaves that are meant; "" for none."""
    parts = structure if isinstance(structure, tuple) else (structure,)
    names = [
        name
        for role, part in zip(ARGUMENTS, parts, strict=False)
        for name, leaf in zip(leaf_names(role, part), tf.nest.flatten(part), strict=True)
        if is_meant(leaf)
    ]
    return some(names)


def unknown_batch(shapes: list[tf.TensorShape]) -> bool:
    """Whether a first dimension is unknown, and no size of an example."""
    return bool(_unknown(shapes)) and not unknown_sizes(shapes)


def unknown_sizes(shapes: list[tf.TensorShape]) -> bool:
    """Whether a size of an example is unknown."""
    unknown = _unknown(shapes)
    return any(shape.rank is None or not shape[1:].is_fully_defined() for shape in unknown)


def _unknown(shapes: list[tf.TensorShape]) -> list[tf.TensorShape]:
    return [shape for shape in shapes if not shape.is_fully_defined()]


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


def _is_faulty(op: tf.Operation, fault: Fault) -> bool:
    return any(map(fault.is_bad, _types(op), _shapes(op)))


def _types(op: tf.Operation) -> list[Any]:
    return attribute(op, "output_types") or attribute(op, "Toutput_types") or []


def _shapes(op: tf.Operation) -> list[tf.TensorShape]:
    return list(map(tf.TensorShape, attribute(op, "output_shapes") or []))


def argument(function: Callable, constructor: str, keyword: str, made_at: Place = NOWHERE) -> Place:
    """Where the file of `function` calls `constructor`: the line of `keyword=`, else of the call.

    With `keyword` "" it is the call that matters. NOWHERE where it is called in no place or in several,
    or where the call does not give that argument. Where the call is known, by a line `made_at` of any file,
    it is that one.
    """
    file = made_at.file or _file_of(function)
    calls = [
        node
        for node in _nodes(file)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == constructor
        if not made_at or _holds(node, made_at.line)
    ]
    if len(calls) != 1:
        return made_at
    call = calls[0]
    for word in call.keywords:
        if word.arg == keyword:
            return place_of_line(file, word.value.lineno)
    elsewhere = keyword and not call.args and all(word.arg for word in call.keywords)
    return NOWHERE if elsewhere else place_of_line(file, call.lineno)


def _file_of(function: Callable) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code.co_filename if code else ""


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
