"""Images named in CSV files become TFRecord shards: an Apache Beam pipeline that needs no TensorFlow."""

from lab_utils.convert.errors import ConversionError
from lab_utils.convert.job import convert
from lab_utils.convert.manifest import Manifest, Shard, Split, read_manifest

__all__ = [
    "ConversionError",
    "Manifest",
    "Shard",
    "Split",
    "convert",
    "read_manifest",
]
