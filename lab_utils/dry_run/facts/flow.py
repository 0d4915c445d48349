"""One replica's program: its live ops, its functions, and how values flow to variables."""

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.graphs import ancestors, arguments, attribute, called_functions, everywhere
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf

# What is known of a value, as bits: it depends on the features or labels, and so differs from core
# to core; on a variable; on a random op.
DATA, VARIABLE, RANDOM = 1, 2, 4

# Random ops that take the values themselves; all others take shapes, seeds and bounds.
_REARRANGES = {"RandomShuffle", "RandomCrop", "Multinomial", "StatelessMultinomial"}
_SHAPES_ONLY = {"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"}
_LOOP = {"Exit", "NextIteration", "LoopCond", "Enter"}  # a condition that nothing uses is dropped


@dataclass
class CoreProgram:
    """The ops that one core runs.

    Attributes:
        graph: the graph of one step, a loop's body or (under version 1 control flow) the whole graph.
        handles: name of a resource tensor in `graph` -> name of the variable.
        trainable: names of the trainable variables.
        off_device: the graph is not of a core at all (serving on a CPU): every op counts.
    """

    graph: Any
    handles: dict[str, str] = field(default_factory=dict)
    trainable: set[str] = field(default_factory=set)
    off_device: bool = False

    @classmethod
    def of(cls, graph: Any) -> "CoreProgram":
        """Reads the graph in which model_fn ran."""
        names = {}
        for collection in ("variables", "local_variables", "trainable_variables"):
            for variable in graph.get_collection(collection):
                if hasattr(variable, "handle"):
                    names[variable.handle.name] = variable.name
        trainable = {v.name for v in graph.get_collection("trainable_variables")}
        if not hasattr(graph, "captures"):
            return cls(graph, names, trainable)
        handles = {inner.name: names.get(outer.name, outer.name) for outer, inner in graph.captures}
        return cls(graph, handles, trainable)

    def every_op(self) -> list[tf.Operation]:
        """All ops of the replica's program, also those that the compiler would drop."""
        return list(everywhere(self.graph, self.on_device))

    def ops(self, needed_by: list[tf.Operation] = ()) -> list[tf.Operation]:
        """What the compiler keeps: all that outputs, ops with an effect or `needed_by` need.

        Ops given to the host by outside compilation, and in a plain graph those outside the core's
        program, are left out; so are random ops whose numbers nothing uses.
        """
        ops = [op for op in self.graph.get_operations() if self.on_device(op)]
        outputs = [tensor.op for tensor in getattr(self.graph, "outputs", ())]
        outputs += getattr(self.graph, "control_outputs", ())
        roots = [op for op in ops if _has_effect(op) or op.type in _LOOP]
        live = ancestors([*roots, *outputs, *needed_by])
        return list(everywhere(self.graph, lambda op: op in live and self.on_device(op)))

    def on_device(self, op: tf.Operation) -> bool:
        """Whether the op of `graph` is part of the replica's program."""
        if self.off_device:
            return True
        if attribute(op, _tensorflow.OUTSIDE_COMPILATION_ATTRIBUTE) is not None:
            return False
        in_function = hasattr(self.graph, "captures")
        return in_function or attribute(op, _tensorflow.REPLICATE_ATTRIBUTE) is not None


@dataclass(frozen=True)
class Seen:
    """An op of the program, or of a function that it calls, with the bits of its inputs and its result."""

    op: tf.Operation
    inputs: tuple[int, ...]
    result: int


@dataclass(frozen=True)
class Flow:
    """How features, variables and random numbers reach the variables' updates.

    Attributes:
        bits: name of a tensor of the step -> what is known of its value.
        variables: variable -> what is known of its value after some steps (bits).
        writers: variable -> the ops of the step (not of the functions they call) that write it.
        writes: variable -> the first op that writes a value which differs from core to core.
        seen: the ops that compute something, in their order.
    """

    bits: Mapping[str, int]
    variables: Mapping[str, int]
    writers: Mapping[str, frozenset[tf.Operation]]
    writes: Mapping[str, tf.Operation]
    seen: tuple[Seen, ...]


def analyse(program: CoreProgram, data: Iterable[str] = ()) -> Flow:
    """The flow of a program. Its features come out of the infeed, or are the tensors named in `data`."""
    passes = _Passes(program)
    bits, handles = dict.fromkeys(data, DATA), dict(program.handles)
    before = None
    # What one step writes, the next one reads; and version 1 loops lead back to earlier ops.
    while before != (after := (dict(passes.variables), dict(bits), dict(handles))):
        before = after
        passes.writes.clear()
        passes.seen.clear()
        passes.run(program.graph, bits, handles, 0)
    writers = {variable: frozenset(ops) for variable, ops in passes.writers.items()}
    return Flow(bits, passes.variables, writers, dict(passes.writes), tuple(passes.seen))


class _Passes:
    """What passes over a program have found so far."""

    def __init__(self, program: CoreProgram) -> None:
        self._step, self._on_device = program.graph, program.on_device
        self._op_of_step: tf.Operation | None = None
        self.variables: dict[str, int] = {}
        self.writers: dict[str, set[tf.Operation]] = {}
        self.writes: dict[str, tf.Operation] = {}
        self.seen: list[Seen] = []

    def run(self, graph: Any, bits: dict[str, int], handles: dict[str, str], branch: int) -> None:
        """One pass over `graph`: fills `bits` (tensor name -> bits); `branch` are those of its condition."""
        for op in graph.get_operations():
            if op_table.is_kind(op.type, "pass_handles") and op.inputs[0].name in handles:
                handles |= {tensor.name: handles[op.inputs[0].name] for tensor in op.outputs}
            if graph is self._step:
                if not self._on_device(op):
                    continue
                self._op_of_step = op
            # What a dataset's function returns is not what the op returns: a dataset.
            functions = [] if "Dataset" in op.type else called_functions(op)
            if functions:
                out = self._call(op, functions, bits, handles, branch)
            else:
                out = [self._op(op, bits, handles, branch)] * len(op.outputs)
            for tensor, bits_of_output in zip(op.outputs, out, strict=True):
                bits[tensor.name] = bits.get(tensor.name, 0) | bits_of_output

    def _op(self, op: tf.Operation, bits: dict, handles: dict, branch: int) -> int:
        """The bits of the results of an op that calls no function."""
        if op_table.is_kind(op.type, "infeed"):
            return DATA
        inputs = tuple(bits.get(tensor.name, 0) for tensor in op.inputs)
        used = [handles[t.name] for t in op.inputs if t.name in handles]
        if used and op_table.writes_variable(op.type):
            self._write(op, used, _joined(inputs), branch)
            return 0
        if op.type in _SHAPES_ONLY:
            return 0
        held = [VARIABLE | self.variables.get(variable, 0) for variable in used]
        result = _result(op, _joined((*inputs, *held)))
        if op.type in _TRANSFER:
            result = _TRANSFER[op.type](op, inputs, result)
        self.seen.append(Seen(op, inputs, result))
        return result

    def _write(self, op: tf.Operation, used: list[str], value: int, branch: int) -> None:
        """Notes that `op` writes a value of bits `value` to the first of the variables that it uses."""
        for slot in used[1:]:
            value |= self.variables.get(slot, 0)
        value |= branch
        for variable in used:
            self.variables[variable] = self.variables.get(variable, 0) | value
        self.writers.setdefault(used[0], set()).add(self._op_of_step)
        if value & DATA:
            self.writes.setdefault(used[0], op)

    def _call(
        self, op: tf.Operation, functions: list, bits: dict, handles: dict, branch: int
    ) -> list[int]:
        """A branch or a function call: the bits of the op's outputs."""
        incoming = [bits.get(tensor.name, 0) for tensor in op.inputs]
        if op.type in ("While", "StatelessWhile"):
            return self._loop(op, functions, incoming, handles, branch)
        if len(functions) > 1:
            branch |= incoming[0]
        out = [branch] * len(op.outputs)
        for function in functions:
            results = self._function(op, function, incoming, handles, branch)
            out = [old | new for old, new in zip(out, results, strict=True)]
        return out

    def _loop(
        self, op: tf.Operation, functions: list, incoming: list[int], handles: dict, branch: int
    ) -> list[int]:
        """Goes round the loop until nothing more becomes known of its values."""
        condition, body = functions
        while True:
            branch |= self._function(op, condition, incoming, handles, branch)[0]
            results = self._function(op, body, incoming, handles, branch)
            after = [old | new | branch for old, new in zip(incoming, results, strict=True)]
            if after == incoming:
                return after
            incoming = after

    def _function(
        self, op: tf.Operation, function: Any, incoming: list[int], handles: dict, branch: int
    ) -> list[int]:
        """One pass over a function that `op` calls with inputs of bits `incoming`."""
        bits = dict(zip((tensor.name for tensor in op.inputs), incoming, strict=True))
        pairs = arguments(op, function)
        inner = {parameter.name: bits[tensor.name] for tensor, parameter in pairs}
        inner_handles = {p.name: handles[t.name] for t, p in pairs if t.name in handles}
        self.run(function, inner, inner_handles, branch)
        return [inner.get(tensor.name, 0) for tensor in function.outputs]


def _joined(bits: Iterable[int]) -> int:
    return functools.reduce(operator.or_, bits, 0)


def _result(op: tf.Operation, bits: int) -> int:
    """What is known of an op's result, where its inputs and variables have `bits` together."""
    if _sums_over_all_cores(op):
        return bits & ~DATA
    if op_table.is_random(op.type):
        return RANDOM | (bits if op.type in _REARRANGES else 0)
    return bits


def _has_effect(op: tf.Operation) -> bool:
    """Whether the op does something beside computing its outputs; drawing numbers does not count."""
    if not op.op_def.is_stateful or op_table.is_random(op.type):
        return False
    functions = called_functions(op)
    return not functions or any(_has_effect(o) for f in functions for o in f.get_operations())


def _sums_over_all_cores(op: tf.Operation) -> bool:
    if op.type == op_table.CROSS_REPLICA_SUM:  # group_assignment: [groups, cores of a group]
        return op.inputs[1].shape.rank != 2 or op.inputs[1].shape.as_list()[0] in (0, 1)
    return op_table.is_kind(op.type, "all_reduces")


def _beside_data(op: tf.Operation, inputs: tuple[int, ...], result: int) -> int:
    """The bits of a concatenation: no random ones where it sets noise beside the data.

    A generator of given classes takes them so. It changes no example: each part holds one or the other.
    """
    parts = [bits & (DATA | RANDOM) for bits in inputs[:-1]]
    batches = all(part.shape.rank is not None and part.shape.rank > 1 for part in op.inputs[:-1])
    is_beside = batches and RANDOM in parts and DATA | RANDOM not in parts
    return result & ~RANDOM if is_beside else result


# Type of op -> the bits of its result, where more is known than that each result depends on all inputs.
_TRANSFER = {"ConcatV2": _beside_data}
