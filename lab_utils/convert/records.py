"""One image as a tf.train.Example in a TFRecord, written without TensorFlow."""

import struct

import google_crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lab_utils.convert.images import RgbJpeg

_FIELD = descriptor_pb2.FieldDescriptorProto


def _example_class() -> type:
    """Builds the message class tf.train.Example from its published schema.

    Schema: tensorflow/core/example/{feature,example}.proto. The descriptor pool is our own, so TensorFlow can
    register the same names in the same process.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name="example.proto", package="tensorflow", syntax="proto3"
    )

    def add_message(parent, name):
        return (parent.message_type if parent is file else parent.nested_type).add(name=name)

    def add_field(message, number, name, kind, *, repeated=False, oneof=None):
        label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
        field = message.field.add(number=number, name=name, label=label)
        if isinstance(kind, str):
            field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".tensorflow.{kind}"
        else:
            field.type = kind
        if oneof is not None:
            field.oneof_index = oneof

    for name, kind in (
        ("BytesList", _FIELD.TYPE_BYTES),
        ("FloatList", _FIELD.TYPE_FLOAT),
        ("Int64List", _FIELD.TYPE_INT64),
    ):
        add_field(add_message(file, name), 1, "value", kind, repeated=True)

    feature = add_message(file, "Feature")
    feature.oneof_decl.add(name="kind")
    add_field(feature, 1, "bytes_list", "BytesList", oneof=0)
    add_field(feature, 2, "float_list", "FloatList", oneof=0)
    add_field(feature, 3, "int64_list", "Int64List", oneof=0)

    features = add_message(file, "Features")
    entry = add_message(features, "FeatureEntry")
    entry.options.map_entry = True
    add_field(entry, 1, "key", _FIELD.TYPE_STRING)
    add_field(entry, 2, "value", "Feature")
    add_field(features, 1, "feature", "Features.FeatureEntry", repeated=True)

    add_field(add_message(file, "Example"), 1, "features", "Features")

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


Example = _example_class()


def encode_example(image: RgbJpeg, filename: bytes, label: int, text: str) -> bytes:
    """Returns a serialised tf.train.Example with the features of the ImageNet and ResNet TPU readers.

    Equal arguments give equal bytes.

    Args:
        image: the picture.
        filename: where it came from, as the CSV gave it.
        label: its class, counted from 1; the readers keep 0 for the background.
        text: the name of that class.
    """
    example = Example()
    feature = example.features.feature
    for name, value in (
        ("image/encoded", image.data),
        ("image/format", b"JPEG"),
        ("image/colorspace", b"RGB"),
        ("image/filename", filename),
        ("image/class/text", text.encode()),
    ):
        feature[name].bytes_list.value.append(value)
    for name, number in (
        ("image/height", image.height),
        ("image/width", image.width),
        ("image/channels", 3),
        ("image/class/label", label),
    ):
        feature[name].int64_list.value.append(number)
    return example.SerializeToString(deterministic=True)


def frame(record: bytes) -> bytes:
    """Returns the record as it stands in a TFRecord file.

    That is its length (uint64), the length's checksum, the record and its checksum (uint32 each), all
    little-endian; source: tensorflow/core/lib/io/record_writer.h. Beam keeps its own version private.
    """
    length = struct.pack("<Q", len(record))
    return b"".join((length, _masked_crc32c(length), record, _masked_crc32c(record)))


def _masked_crc32c(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
