"""The protocol buffer of a lowered step, as far as the dry run reads and writes it.

It is a part of XLA's hlo.proto and xla_data.proto, whose numbers of fields stay. A field that is not in the
table below is kept as it is. TensorFlow brings the whole of both files, but a program of JAX may be judged
where there is none, and importing TensorFlow takes longer than to run such a step.
tests/test_dry_run_private.py compares the table with TensorFlow's.
"""

import functools
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_WIRE = {
    "int64": _FIELD.TYPE_INT64,
    "int32": _FIELD.TYPE_INT32,
    "string": _FIELD.TYPE_STRING,
    "enum": _FIELD.TYPE_INT32,  # as a number: both are the same on the wire
}

# Of each message the name, number and type of its fields; "*" stands before the type of a repeated one. The
# attributes are there for their map, of strings by strings: XLA writes its entries in any order, and protobuf
# gives them one, by which the same step has the same bytes, only where it knows that they are a map.
MESSAGES = {
    "HloModuleProto": {
        "name": (1, "string"),
        "entry_computation_name": (2, "string"),
        "computations": (3, "*HloComputationProto"),
        "host_program_shape": (4, "ProgramShapeProto"),
        "id": (5, "int64"),
        "entry_computation_id": (6, "int64"),
        "input_output_alias": (8, "HloInputOutputAliasProto"),
        "frontend_attributes": (19, "FrontendAttributes"),
        "stack_frame_index": (17, "StackFrameIndexProto"),
    },
    "HloComputationProto": {
        "name": (1, "string"),
        "instructions": (2, "*HloInstructionProto"),
        "program_shape": (4, "ProgramShapeProto"),
        "id": (5, "int64"),
        "root_id": (6, "int64"),
    },
    "HloInstructionProto": {
        "name": (1, "string"),
        "opcode": (2, "string"),
        "shape": (3, "ShapeProto"),
        "metadata": (7, "OpMetadata"),
        "literal": (8, "LiteralProto"),
        "parameter_number": (9, "int64"),
        "tuple_index": (13, "int64"),
        "convolution_dimension_numbers": (16, "ConvolutionDimensionNumbers"),
        "exponent_bits": (18, "int32"),
        "mantissa_bits": (19, "int32"),
        "dot_dimension_numbers": (30, "DotDimensionNumbers"),
        "id": (35, "int64"),
        "operand_ids": (36, "*int64"),
        "called_computation_ids": (38, "*int64"),
        "precision_config": (51, "PrecisionConfig"),
        "frontend_attributes": (68, "FrontendAttributes"),
    },
    "FrontendAttributes": {"map": (1, "map")},
    "HloInputOutputAliasProto": {"entries": (1, "*AliasEntryProto")},
    "AliasEntryProto": {"parameter_number": (2, "int64")},
    "ProgramShapeProto": {"parameters": (1, "*ShapeProto"), "result": (2, "ShapeProto")},
    "ShapeProto": {
        "element_type": (2, "enum"),
        "dimensions": (3, "*int64"),
        "tuple_shapes": (4, "*ShapeProto"),
    },
    "OpMetadata": {"op_name": (2, "string"), "stack_frame_id": (15, "int32")},
    "LiteralProto": {"s32s": (4, "*int32"), "s64s": (5, "*int64")},
    "PrecisionConfig": {"operand_precision": (1, "*enum"), "algorithm": (2, "enum")},
    "DotDimensionNumbers": {
        "lhs_contracting_dimensions": (1, "*int64"),
        "rhs_contracting_dimensions": (2, "*int64"),
        "lhs_batch_dimensions": (3, "*int64"),
        "rhs_batch_dimensions": (4, "*int64"),
    },
    "ConvolutionDimensionNumbers": {"kernel_output_feature_dimension": (4, "int64")},
    "StackFrameIndexProto": {
        "file_names": (1, "*string"),
        "function_names": (2, "*string"),
        "file_locations": (3, "*FileLocation"),
        "stack_frames": (4, "*StackFrame"),
    },
    "FileLocation": {
        "file_name_id": (1, "int32"),
        "function_name_id": (2, "int32"),
        "line": (3, "int32"),
    },
    "StackFrame": {"file_location_id": (1, "int32"), "parent_frame_id": (2, "int32")},
}
# Of PrimitiveType: the types of numbers that matmuls take.
ELEMENT_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
    10: "f16", 11: "f32", 12: "f64", 15: "c64", 16: "bf16", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn",
}  # fmt: skip


def module(serialized: bytes) -> Any:
    """A serialized HloModuleProto, parsed.

    Names and ids that count the functions of this process are taken out, so that the same step
    always gives the same bytes: serialise it with `deterministic=True`.
    """
    parsed = _message("HloModuleProto").FromString(serialized)
    for computation in parsed.computations:  # its name counts, its id does not
        entry = computation.id == parsed.entry_computation_id
        computation.name = "step" if entry else f"computation.{computation.id}"
    parsed.name = parsed.entry_computation_name = "step"
    parsed.id = 0
    return parsed


def element_type(shape: Any) -> str:
    """The type of a shape's numbers: "f32", "bf16"."""
    return ELEMENT_TYPES.get(shape.element_type, f"type {shape.element_type}")


@functools.cache
def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"dry_run_hlo.{name}"))


@functools.cache
def _pool() -> Any:
    """The messages in a pool of their own: TensorFlow's have names of theirs in the common one."""
    file = descriptor_pb2.FileDescriptorProto(
        name="dry_run_hlo.proto", package="dry_run_hlo", syntax="proto3"
    )
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            if kind == "map":
                _add_map(message, field, number)
                continue
            of = kind.removeprefix("*")
            label = _FIELD.LABEL_OPTIONAL if of == kind else _FIELD.LABEL_REPEATED
            added = message.field.add(name=field, number=number, label=label)
            if of in MESSAGES:
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".dry_run_hlo.{of}"
            else:
                added.type = _WIRE[of]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_map(message: Any, field: str, number: int) -> None:
    """Adds a map of strings: on the wire and for protobuf, a repeated message of a key and a value."""
    entry = message.nested_type.add(name="MapEntry")
    entry.options.map_entry = True
    for place, name in enumerate(("key", "value"), 1):
        entry.field.add(
            name=name, number=place, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL
        )
    of = f".dry_run_hlo.{message.name}.MapEntry"
    repeated, kind = _FIELD.LABEL_REPEATED, _FIELD.TYPE_MESSAGE
    message.field.add(name=field, number=number, label=repeated, type=kind, type_name=of)
