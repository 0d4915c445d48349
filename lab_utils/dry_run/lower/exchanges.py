"""AllToAll and CollectivePermute, for which the bridge of a CPU build has no kernel.

In the graph each becomes a custom call, which the bridge passes on, and in the HLO that comes of it the call
becomes XLA's own collective.
"""

import json
from typing import Any

import numpy as np

from lab_utils.common.source import place
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.lower.graph_def import rename_functions
from lab_utils.dry_run.lower.nodes import Nodes, nodes_of
from lab_utils.estimator import tf, v1

_TARGETS = {"AllToAll": "all-to-all", "CollectivePermute": "collective-permute"}


def call_exchanges(graph_def: Any, graph: Any, cores: int) -> int:
    """Turns the exchanges of a pruned `graph` into custom calls.

    Returns:
        how many cores they and the sums name, 0 where none does. An optimizer's sums name all there are:
        where others name more or fewer, it is their number.

    Raises:
        CannotLower: one names other cores than there are, or a sum does in a program of one core; or an
            exchange's shape or cores are not fixed.
    """
    changed, counts = False, set()
    for node, op, new in nodes_of(graph_def, graph, {"CrossReplicaSum", *_TARGETS}):
        value, shape = _value(op.inputs[1]), op.inputs[0].shape
        named = [] if value is None else sorted(set(value.reshape(-1).tolist()))
        counts.update(core + 1 for core in named[-1:])
        other = named[-1:] >= [cores] or op.type == "AllToAll" and len(named) < cores
        # Of a sum for many cores XLA says it; a single core is only lowered to compare.
        if named and other and (cores == 1 or op.type in _TARGETS):
            shown = f"{named[0]} to {named[-1]}" if named[1:] else f"{named[0]} alone"
            raise _refused(op, f"it names the cores {shown}, and this step has {cores}")
        if op.type not in _TARGETS:
            continue
        if value is None or not shape.is_fully_defined():
            raise _refused(op, "its shape or its cores are not known before the step runs")
        config: dict[str, Any] = {"cores": value.tolist()}
        if op.type == "AllToAll":
            config["dimension"] = node.attr["split_dimension"].i
        dims = shape.as_list()
        call = new.add("XlaCustomCall", [node.input[0]], dtype=op.inputs[0].dtype)
        attributes = new.last.attr
        attributes["T"].list.type.append(op.inputs[0].dtype.as_datatype_enum)
        attributes["shape"].shape.CopyFrom(shape.as_proto())
        attributes["target_name"].s = _TARGETS[op.type].encode()
        attributes["backend_config"].s = json.dumps(config).encode()
        if op.type == "AllToAll":
            call = _concatenated(new, call, node, dims, op.inputs[0].dtype)
        new.replace(node, call, op.inputs[0].dtype)
        changed |= new.inner
    if changed:
        rename_functions(graph_def)
    return max(counts - {cores} or counts, default=0)


def _value(tensor: tf.Tensor) -> np.ndarray | None:
    """What a tensor that depends on constants alone holds; None for any other."""
    value = tf.get_static_value(tensor)
    if value is not None:
        return value
    part, waiting = v1.GraphDef(), [tensor.op]
    for op in waiting:
        waiting += [each.op for each in op.inputs if each.op not in waiting]
        node = part.node.add()
        node.CopyFrom(op.node_def)
        node.device = ""
        node.attr.pop("_class", None)  # that it stands beside an op which no CPU has
        node.input[:] = [name for name in node.input if name[0] != "^"]
    with tf.Graph().as_default() as alone:
        tf.graph_util.import_graph_def(part, name="")
        try:
            with v1.Session(config=v1.ConfigProto(device_count={"GPU": 0})) as session:
                return session.run(alone.get_tensor_by_name(tensor.name))
        except tf.errors.OpError:
            return None


def _concatenated(new: Nodes, call: str, node: Any, dims: list[int], dtype: tf.DType) -> str:
    """XLA leaves the blocks along the axis that it split; TensorFlow's op joins them along another one."""
    split, joined = node.attr["split_dimension"].i, node.attr["concat_dimension"].i
    count = node.attr["split_count"].i
    if split == joined:
        return call
    blocks = [*dims[:split], count, dims[split] // count, *dims[split + 1 :]]
    rest = [axis for axis in range(len(blocks)) if axis != split]
    order = [*rest[:joined], split, *rest[joined:]]
    dims = [size // count if axis == split else size for axis, size in enumerate(dims)]
    dims[joined] *= count
    int32 = tf.int32
    call = new.add("Reshape", [call, new.numbers(blocks)], T=dtype, Tshape=int32)
    call = new.add("Transpose", [call, new.numbers(order)], T=dtype, Tperm=int32)
    return new.add("Reshape", [call, new.numbers(dims)], T=dtype, Tshape=int32)


def restore_exchanges(module: Any) -> None:
    """Turns the custom calls of an HLO module (a message) into the collectives that they stand for."""
    for computation in module.computations:
        for each in computation.instructions:
            target = each.custom_call_target
            if each.opcode != "custom-call" or target not in _TARGETS.values():
                continue
            config = json.loads(each.backend_config)
            for field in ("custom_call_target", "backend_config", "custom_call_api_version"):
                each.ClearField(field)
            each.opcode = target
            if target == "all-to-all":
                each.dimensions[:] = [config["dimension"]]
                for group in config["cores"]:
                    each.replica_groups.add(replica_ids=group)
            else:
                for source, to in config["cores"]:
                    each.source_target_pairs.add(source=source, target=to)


def _refused(op: tf.Operation, why: str) -> CannotLower:
    said = f"{op.type} is not lowered here: {why}"
    return CannotLower(said, op_type=op.type, where=place(op), only_here=True)
