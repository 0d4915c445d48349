"""How many examples TFRecord files hold, where tf.data does not know: they are read once, if they are few."""

import re

from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.graphs import called
from lab_utils.estimator import tf, v1

# Beyond either, the number stays unknown: reading would take longer than the rest of the dry run.
_MOST_EXAMPLES = 200_000
_MOST_BYTES = 512 * 2**20
_AT_A_TIME = 512

# What gives an element for each that it takes.
_ONE_TO_ONE = re.compile(
    r"(Map|ParallelMap|Prefetch|Shuffle|Options|Cache|Model|Optimize)Dataset(V\d)?"
)
_READS_FILES = re.compile(
    r"TFRecordDataset(V\d)?|FlatMapDataset|(Legacy)?(Parallel)?InterleaveDataset(V\d)?"
)
_WITHIN = (
    _READS_FILES.pattern + r"|TensorSliceDataset|Const|Placeholder|Reshape|Identity|NoOp|_?Arg"
)


def examples(op: tf.Operation | None) -> int | None:
    """The number of elements of the dataset that `op` makes; None where it cannot be told cheaply."""
    while op is not None and _ONE_TO_ONE.fullmatch(op.type):
        op = op.inputs[0].op
    if op is None or not _READS_FILES.fullmatch(op.type) or elsewhere.address(op.graph):
        return None
    inner = [each for function in called(op) for each in function.get_operations()]
    if not all(re.fullmatch(_WITHIN, each.type) for each in inner):
        return None
    if any("Repeat" in each.type for each in op.graph.get_operations()):
        return None
    try:
        return _count(op.outputs[0])
    except (tf.errors.OpError, ValueError):
        return None


def _count(dataset: tf.Tensor) -> int | None:
    with dataset.graph.as_default():
        shapes, types = [[None]], [tf.string]
        batches = tf.raw_ops.BatchDatasetV2(
            input_dataset=dataset,
            batch_size=tf.constant(_AT_A_TIME, tf.int64),
            drop_remainder=tf.constant(False),
            output_types=types,
            output_shapes=shapes,
        )
        iterator = tf.raw_ops.IteratorV2(
            shared_name="", container="", output_types=types, output_shapes=shapes
        )
        start = tf.raw_ops.MakeIterator(dataset=batches, iterator=iterator)
        texts = tf.raw_ops.IteratorGetNext(
            iterator=iterator, output_types=types, output_shapes=shapes
        )[0]
        sizes = tf.size(texts), tf.reduce_sum(tf.strings.length(texts))
        count = read = 0
        with v1.Session(graph=dataset.graph) as session:
            session.run(start)
            while count <= _MOST_EXAMPLES and read <= _MOST_BYTES:
                try:
                    found, length = session.run(sizes)
                except tf.errors.OutOfRangeError:
                    return count
                count, read = count + int(found), read + int(length)
    return None
