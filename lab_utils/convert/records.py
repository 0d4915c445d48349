"""One image as a tf.train.Example in a TFRecord, written without TensorFlow."""

import struct

import google_crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from lab_utils.convert.images import RgbJpeg

# tensorflow/core/example/{feature,example}.proto: what an image's record needs of them.
_SCHEMA = """
name: "example.proto" package: "tensorflow" syntax: "proto3"
message_type { name: "BytesList"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "Int64List"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type { name: "Feature" oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 oneof_index: 0 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".tensorflow.BytesList" }
  field { name: "int64_list" number: 3 oneof_index: 0 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".tensorflow.Int64List" } }
message_type { name: "Features"
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL
      type: TYPE_MESSAGE type_name: ".tensorflow.Feature" } }
  field { name: "feature" number: 1 label: LABEL_REPEATED
    type: TYPE_MESSAGE type_name: ".tensorflow.Features.FeatureEntry" } }
message_type { name: "Example"
  field { name: "features" number: 1 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".tensorflow.Features" } }
"""
# A pool of our own, so that TensorFlow can register the same names in the same process.
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto()))
Example = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Example"))


def encode_example(image: RgbJpeg, filename: bytes, label: int, text: str) -> bytes:
    """Returns a serialised tf.train.Example with the features of the ImageNet and ResNet TPU readers.

    Equal arguments give equal bytes.

    Args:
        image: the picture.
        filename: where it came from, as the CSV has it.
        label: its class, counted from 1; the readers reserve 0 for the background.
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
    little-endian; source: tensorflow/core/lib/io/record_writer.h. Beam's own version is private.
    """
    length = struct.pack("<Q", len(record))
    return b"".join((length, _masked_crc32c(length), record, _masked_crc32c(record)))


def _masked_crc32c(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
