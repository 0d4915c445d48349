"""How many elements a dataset has, also where tf.data does not say.

That is after a map of version 1, and in TFRecord files: they are read once, if they are few.
"""

import re

from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.graphs import ancestors, called
from lab_utils.estimator import tf, v1

# Beyond either, the number stays unknown: reading would take longer than the rest of the dry run.
_MOST_EXAMPLES = 200_000
_MOST_BYTES = 512 * 2**20
_AT_A_TIME = 512
_ENDLESS = 2**48  # elements: a counter's whole range

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


def elements(op: tf.Operation | None, read_files: bool = False) -> float | None:
    """The number of elements of the dataset that `op` makes; infinity where it repeats for ever.

    None where it cannot be told, or only by reading files and `read_files` is false.
    """
    if op is None or elsewhere.address(op.graph):
        return None
    number = _known(op)
    if number is not None:
        return number
    taken = [t.op for t in op.inputs if t.dtype == tf.variant]
    if _ONE_TO_ONE.fullmatch(op.type):
        return elements(taken[0], read_files)
    if op.type == "ZipDataset":
        numbers = [elements(each, read_files) for each in taken]
        return None if None in numbers else min(numbers)
    if op.type == "RepeatDataset":
        times = tf.get_static_value(op.inputs[1])
        number = None if times is None else elements(taken[0], read_files)
        return None if number is None else number * int(times)
    if op.type in ("BatchDatasetV2", "PaddedBatchDatasetV2"):
        number = elements(taken[0], read_files)
        return None if number is None else _batches(op, number)
    return _in_files(op) if read_files and _READS_FILES.fullmatch(op.type) else None


def _known(op: tf.Operation) -> float | None:
    """What tf.data itself says."""
    try:
        with v1.Session(graph=op.graph) as session:
            number = int(session.run(tf.raw_ops.DatasetCardinality(input_dataset=op.outputs[0])))
    except (tf.errors.OpError, ValueError, RuntimeError):
        return None
    if number == tf.data.INFINITE_CARDINALITY or number > _ENDLESS:
        return float("inf")
    return None if number == tf.data.UNKNOWN_CARDINALITY else number


def _batches(op: tf.Operation, number: float) -> float | None:
    """How many batches an op makes of so many examples."""
    size = tf.get_static_value(op.inputs[1])
    drop = tf.get_static_value(op.inputs[-1])
    if not size or drop is None:
        return None
    return number // size if drop else -(-number // size)


def _in_files(op: tf.Operation) -> int | None:
    """The number of records that `op` reads of files; None where it cannot be told cheaply."""
    inner = [each for function in called(op) for each in function.get_operations()]
    if not all(re.fullmatch(_WITHIN, each.type) for each in inner):
        return None
    if any("Repeat" in each.type for each in ancestors([op])):
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
