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
        texts = tf.data.experimental.from_variant(dataset, tf.TensorSpec([], tf.string))
        # Lengths alone are batched: 512 records may be more than this machine holds.
        lengths = texts.map(lambda text: tf.cast(tf.strings.length(text), tf.int64))
        iterator = v1.data.make_initializable_iterator(lengths.batch(_AT_A_TIME))
        batch = iterator.get_next()
        sizes = tf.size(batch), tf.reduce_sum(batch)
        count = read = 0
        with v1.Session(graph=dataset.graph) as session:
            session.run(iterator.initializer)
            while count <= _MOST_EXAMPLES and read <= _MOST_BYTES:
                try:
                    found, length = session.run(sizes)
                except tf.errors.OutOfRangeError:
                    return count
                count, read = count + int(found), read + int(length)
    return None
