"""From a TensorFlow graph of one core's step to a program for XLA.

Three frontends build such a graph: for TPUEstimator, Keras and functions. What they share
is here: the graph is pruned to what the step computes, sums over cores become XLA's all-reduce, work
that the host does is cut out, and TensorFlow's own bridge turns the rest into HLO. The bridge is that
of the CPU build: the TPU's is not in any wheel that installs beside a working TensorFlow.
"""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.graphs import all_nodes
from lab_utils.dry_run.lower import graph_def as graph_defs
from lab_utils.dry_run.lower import written
from lab_utils.dry_run.lower.draws import Draws, draw_alike
from lab_utils.dry_run.lower.explain import explain
from lab_utils.dry_run.lower.instructions import matmuls
from lab_utils.dry_run.lower.variables import Variable
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private.hlo import module as hlo_module
from lab_utils.dry_run.program import Input, Origin, Output, Program, Role
from lab_utils.estimator import tf, v1

_STATISTICS = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "Mean"}


@dataclass
class Step:
    """One core's step in a graph.

    `feeds` pairs each placeholder with its Input (features, labels and constants); `updates` are the
    ops that must run; `host` are tensors that leave the core, by name. `start` gives the values that
    variables of these names start with: gigabytes, for a large model, which only a run needs.
    """

    graph: Any
    feeds: list[tuple[tf.Tensor, Input]]
    variables: list[Variable]
    loss: tf.Tensor | None
    host: dict[str, tf.Tensor]
    updates: list[tf.Operation]
    start: Callable[[list[str]], dict[str, np.ndarray]]


def to_program(
    step: Step,
    name: str,
    mode: str,
    cores: int,
    per_core_batch: int,
    draws: Draws | None = None,
    numbers: Mapping[str, float] | None = None,
) -> Program:
    """Lowers a step; with `draws` its random numbers are those that draws.py says.

    With `numbers` the constants of these names have other numbers (written.py).

    Raises:
        CannotLower: an op has no XLA kernel here, a shape depends on data, and the like.
    """
    lowered_with = functools.partial(to_program, step, name, mode, cores, per_core_batch, draws)
    results = ({} if step.loss is None else {"loss": step.loss}) | step.host
    graph_def = graph_defs.prune(step.graph, [t.op for t in results.values()] + step.updates)
    graph_defs.cut_host_work(graph_def)
    written.replace(graph_def, numbers or {})
    graph_defs.sum_resizes(graph_def, step.graph)
    named_cores = graph_defs.use_xla_collectives(graph_def, step.graph, cores)
    sums = graph_defs.nodes_of(graph_def, step.graph, _STATISTICS)
    statistics = [op for _, op, _ in sums if _is_batch_statistic(op)]
    own = [op for op in statistics if _reaches(op, step.loss)]
    random = [node.name for node in all_nodes(graph_def) if op_table.is_random(node.op)]
    if draws:
        draw_alike(graph_def, draws, cores)
        random = [name for name in random if name not in draws]
    graph_defs.rename_functions(graph_def)
    ends = [tensor.op.name for tensor in results.values()]
    tensors = [tensor for tensor, _ in step.feeds]
    variables = graph_defs.without(graph_def, tensors, step.variables, ends)
    names = [item.name for item in results.values()]
    hlo, order = _hlo(step, graph_def, tensors, variables, names)
    inputs = [item for _, item in step.feeds]
    inputs += [
        Input(item.name, Role.VARIABLE, item.shape, item.dtype.name, item.trainable)
        for item in (variables[number] for number in order)
    ]
    module = hlo_module(hlo)
    outputs = [Output(key, Role.LOSS if key == "loss" else Role.HOST) for key in results]
    outputs += [
        Output(inputs[alias.parameter_number].name, Role.VARIABLE, alias.parameter_number)
        for alias in module.input_output_alias.entries
    ]
    return Program(
        name=name,
        mode=mode,
        cores=cores,
        per_core_batch=per_core_batch,
        hlo=module.SerializeToString(deterministic=True),
        inputs=inputs,
        outputs=outputs,
        matmuls=matmuls(module),
        named_cores=named_cores,
        random=random,
        batch_statistics=[op.name for op in own],
        joined_statistics=[place(op) for op in statistics if op not in own and _is_averaged(op)],
        origin=_origin(step, [item.name for item in variables], lowered_with),
    )


def _origin(
    step: Step, variables: list[str], lowered_with: Callable[[Mapping[str, float]], Program]
) -> Origin:
    """What the step's graph answers."""
    loss = None if step.loss is None else step.loss.op
    if loss is not None and loss.type == "Identity":  # a frontend's own, around the program's
        loss = loss.inputs[0].op
    handles = {variable.name: variable.handle for variable in step.variables}
    return Origin(
        start=functools.partial(step.start, variables),
        place_of=functools.partial(_place_of, step.graph),
        loss=NOWHERE if loss is None else place(loss),
        place_of_write=lambda name: _place_of_write(handles[name]),
        factors=functools.partial(written.factors, step.graph),
        with_numbers=lowered_with,
    )


def _place_of(graph: Any, name: str) -> Place:
    """The learner's line that made the op `name`; NOWHERE where the graph has none of that name."""
    operation = _tensorflow.find_operation(graph, name)
    return NOWHERE if operation is None else place(operation)


def _place_of_write(handle: tf.Tensor) -> Place:
    """Where the variable of this handle gets a new value, after its initial one; NOWHERE if it does not."""
    writes = [op for op in handle.consumers() if op_table.writes_variable(op.type)]
    initial = f"{handle.op.name}/Assign"
    return next((place(op) for op in writes if op.name != initial), NOWHERE)


def placeholders(structure: Any, role: str) -> tuple[Any, list[tuple[tf.Tensor, Input]]]:
    """Placeholders for a nest of tf.TensorSpec, as that nest and as a Step's `feeds`."""
    pairs = []
    for name, spec in zip(leaf_names(role, structure), tf.nest.flatten(structure), strict=True):
        tensor = v1.placeholder(spec.dtype, spec.shape, name=re.sub(r"[^\w./-]", "_", name))
        pairs.append((tensor, graph_defs.input_of(name, role, tensor)))
    return tf.nest.pack_sequence_as(structure, [tensor for tensor, _ in pairs]), pairs


def leaf_names(prefix: str, structure: Any) -> list[str]:
    """A name for each leaf of a nest, in tf.nest's order: "feature/image", or the prefix alone."""
    paths = _tensorflow.leaf_paths(structure)
    return [f"{prefix}/{path}" if path else prefix for path in paths]


def _is_batch_statistic(op: tf.Operation) -> bool:
    """Whether an op computes statistics over its core's own batch."""
    if op.type.startswith("FusedBatchNorm"):
        # Keras computes layer normalisation so: of one example, with those of the batch as its channels.
        data, channels_first = op.inputs[0], op.get_attr("data_format") == b"NCHW"
        is_layer = channels_first and data.op.type == "Reshape" and data.shape[0] == 1
        return op.get_attr("is_training") and not is_layer
    # Layer normalisation leaves the batch's axis.
    return _is_over_batch(op) and (op.name.endswith("moments/variance") or _is_variance(op))


def _is_over_batch(op: tf.Operation) -> bool:
    """Whether a mean is one over the examples, as far as its axes are constant."""
    axes = tf.get_static_value(op.inputs[1])
    return axes is None or 0 in np.ravel(axes)


def _is_variance(op: tf.Operation) -> bool:
    """Whether a mean is one of squared distances from a mean of the core's own examples."""
    squares = _source(op.inputs[0])
    if squares.type == "Square":
        squares = _source(squares.inputs[0])
    if squares.type not in ("SquaredDifference", "Sub"):
        return False
    centres = map(_source, squares.inputs)
    return any(centre.type == "Mean" and _is_over_batch(centre) for centre in centres)


def _source(tensor: tf.Tensor) -> tf.Operation:
    """The op that computes a tensor, before ops that only hand it on."""
    op = tensor.op
    while op_table.is_kind(op.type, "pass_values"):
        op = op.inputs[0].op
    return op


def _reaches(op: tf.Operation, loss: tf.Tensor | None) -> bool:
    """Whether what an op computes goes into the loss by a way without a sum over the cores."""
    if loss is None or op.graph is not loss.graph:
        return True
    waiting, known = [op], {op}
    while waiting:
        current = waiting.pop()
        if current is loss.op:
            return True
        users = {user for tensor in current.outputs for user in tensor.consumers()} - known
        users = {
            user
            for user in users
            if user.type != op_table.CROSS_REPLICA_SUM and not op_table.of_gradient(user.name)
        }
        known |= users
        waiting += users
    return False


def _is_averaged(op: tf.Operation) -> bool:
    """Whether a variance, as it is or scaled, goes into an all-reduce: nothing is added to it before."""
    users = [user for user in op.outputs[0].consumers() if not op_table.of_gradient(user.name)]
    return any(
        user.type == op_table.CROSS_REPLICA_SUM
        or (op_table.is_kind(user.type, "scale") and _is_averaged(user))
        for user in users
    )


def _hlo(
    step: Step, graph_def: Any, feeds: list[tf.Tensor], variables: list[Variable], names: list[str]
) -> tuple[bytes, list[int]]:
    """The HLO of a graph that returns the tensors `names`, and the order in which it takes the variables."""
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in feeds]
    with _tensorflow.eager(), _tensorflow.silent_log(), tf.device("/device:CPU:0"):
        # They hold no values: the machine gives no memory for what nobody writes.
        empty = [tf.raw_ops.Empty(shape=v.shape, dtype=v.dtype) for v in variables]
        values = [tf.Variable(value, trainable=False) for value in empty]

        def run(*arguments: tf.Tensor) -> list[tf.Tensor]:
            updates = [op.name for op in step.updates]
            results = graph_defs.compute(
                graph_def, names + updates, feeds, arguments, variables, values
            )
            with tf.control_dependencies(results[len(names) :]):
                return [tf.identity(value) for value in results[: len(names)]]

        try:
            wrapper = v1.wrap_function(run, specs)
            function = tf.function(lambda *args: wrapper(*args), jit_compile=True, autograph=False)
            captured = function.get_concrete_function(*specs).captured_inputs
            make = function.experimental_get_compiler_ir(*specs)
            hlo = make(stage="hlo_serialized", platform_name="CPU")
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as error:
            raise explain(error, step.graph) from error
        handles = [value.handle for value in values]
        return hlo, [
            next(n for n, candidate in enumerate(handles) if candidate is handle)
            for handle in captured
        ]
