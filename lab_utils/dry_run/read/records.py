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
    number = _cardinality(op, {})
    if number is not None or not read_files:
        return number
    readers = [each for each in ancestors([op]) if _READS_FILES.fullmatch(each.type)]
    if _cardinality(op, dict.fromkeys(readers, 1)) is None:
        return None  # whatever the files hold
    counts = {each: count for each in readers if (count := _in_files(each)) is not None}
    return _cardinality(op, counts)


def _cardinality(op: tf.Operation, counts: dict[tf.Operation, int]) -> float | None:
    """What tf.data says where every map gives one for one; `counts` holds the elements of some datasets."""
    try:
        graph_def = op.graph.as_graph_def()
        for node in graph_def.node:
            if "preserve_cardinality" in node.attr:
                node.attr["preserve_cardinality"].b = True
        with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
            known = {
                each.outputs[0].name: tf.data.experimental.to_variant(tf.data.Dataset.range(count))
                for each, count in counts.items()
            }
            (dataset,) = tf.import_graph_def(graph_def, known, [op.outputs[0].name])
            number = int(session.run(tf.raw_ops.DatasetCardinality(input_dataset=dataset)))
    except (tf.errors.OpError, ValueError, RuntimeError):
        return None
    if number == tf.data.INFINITE_CARDINALITY or number > _ENDLESS:
        return float("inf")
    return None if number == tf.data.UNKNOWN_CARDINALITY else number


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
