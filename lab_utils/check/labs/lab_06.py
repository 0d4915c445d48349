"""The checks of lab 06, an input pipeline that feeds a TPU."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np

from lab_utils.check.labs.decisions import pairs
from lab_utils.check.labs.pictures import picture
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.todos import todo
from lab_utils.check.tools import expect, expect_dataset, returns, same
from lab_utils.estimator import tf

RECORDS = 6  # in a file


@contextlib.contextmanager
def files_of_records(count: int) -> Iterator[list[str]]:
    """Files of RECORDS records; each record has a class of its own, from 1 on."""
    encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture(180, 240)]))
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"train-{n:05d}-of-{count:05d}")) for n in range(count)]
        for number, path in enumerate(paths):
            with tf.io.TFRecordWriter(path) as writer:
                for label in range(RECORDS * number + 1, RECORDS * number + RECORDS + 1):
                    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
                    features = {"image/encoded": encoded, "image/class/label": label}
                    example = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(example.SerializeToString())
        yield paths


@todo(
    "6a",
    hints=(
        "Every later epoch gets what the transforms above cache() returned in the first.",
        "Which of shuffle, repeat and map should run again in every epoch? Should they stand below cache()?",
        "An epoch's last pictures do not fill a batch. What happens to them if repeat is below batch? And above?",
    ),
    why="What is the same in each epoch stands above the cache, and what is new stands below it.",
)
def caching(make_cached_input_fn: Callable) -> str:
    """Decoded once, cached, reshuffled in each epoch, in full batches, ready before they are asked for."""
    with files_of_records(50) as files:  # more pictures than the lab has
        input_fn = make_cached_input_fn(files)
        returns(input_fn, callable(input_fn), "make_cached_input_fn", "the function input_fn")
        with tf.Graph().as_default() as graph:
            dataset = input_fn({"batch_size": 5})
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2 and spec[0].shape.rank == 4
        message = "Each element should be a pair, images [B, side, side, 3] and classes [B]"
        expect(pair, f"{message}; yours is {spec}.")
        label = 'The size of a batch (params["batch_size"]; the last one may be smaller without drop_remainder=True)'
        same(spec[0].shape[0], 5, label)
        _expect_order(_transforms(graph))
        _expect_whole_epoch(input_fn, RECORDS * len(files))
    return "The pictures are decoded once, cached as uint8, and reshuffled in each epoch."


def _transforms(graph: tf.Graph) -> list[tuple[str, tf.Operation]]:
    """The ops that made a graph's datasets, in order; one as map_and_batch counts as two."""
    kinds = re.compile("Interleave|Map|Cache|Shuffle|Repeat|Batch|Prefetch")
    ops = [op for op in graph.get_operations() if "Dataset" in op.type]
    return [(kind.lower(), op) for op in ops for kind in kinds.findall(op.type)]


def _image(op: tf.Operation) -> tf.TensorSpec | None:
    """The decoded image, or batch of images, in an element of the dataset that `op` makes, if any."""
    specs = zip(op.get_attr("output_shapes"), op.get_attr("output_types"), strict=True)
    images = [tf.TensorSpec(shape, kind) for shape, kind in specs if len(shape.dim) >= 3]
    return images[0] if images else None


def _argument(op: tf.Operation, name: str) -> int | None:
    """An argument of a dataset, where the graph holds it as a constant."""
    place = [argument.name for argument in op.op_def.input_arg].index(name)
    return tf.get_static_value(op.inputs[place])


def _expect_order(transforms: list[tuple[str, tf.Operation]]) -> None:
    """Raises Wrong unless the transforms stand in an order that serves each epoch."""
    names = [name for name, _ in transforms]
    message = "The files are read one after the other: read() reads several at once."
    expect("interleave" in names, message)
    decoder = next((op.type for name, op in transforms if name == "map" and _image(op)), "Parallel")
    message = "The map that decodes has no num_parallel_calls: it works on one picture at a time."
    expect("Parallel" in decoder or "Batch" in decoder, message)
    message = "There is no cache: every picture is decoded again in each epoch. Put cache() below the decoding."
    expect("cache" in names, message)
    cache = names.index("cache")
    image = _image(transforms[cache][1])
    message = "The cache stands above the decoding: it stores the encoded records, and each epoch decodes them."
    expect(image is not None, message)
    message = "repeat stands above the cache, which never fills then, and grows with every epoch."
    expect("repeat" not in names[:cache], message)
    label = "What the cache stores (single pictures from `whole`; `decoded` would fix the crop for all epochs)"
    same([image.dtype.name, image.shape], ["uint8", [160, 160, 3]], label)
    shuffles = [op for name, op in transforms[cache:] if name == "shuffle"]
    message = "No shuffle stands below the cache: every epoch would have the same order."
    expect(bool(shuffles), message)
    message = "With reshuffle_each_iteration=False every epoch has the same order."
    expect(all(op.get_attr("reshuffle_each_iteration") for op in shuffles), message)
    sizes = [_argument(op, "buffer_size") for op in shuffles]
    message = f"A shuffle buffer of {sizes[0]} hardly mixes: it should hold many batches. 1,024 is asked for."
    expect(None in sizes or max(sizes) >= 240, message)
    counts = [_argument(op, "count") for name, op in transforms if name == "repeat"]
    message = "The dataset ends after the first epoch, and so does the training: call repeat()."
    expect(bool(counts), message)
    message = f"repeat({counts[0]}) ends after that many epochs: call repeat() without a number."
    expect(all(count is None or count < 0 for count in counts), message)
    message = (
        "repeat stands below batch(drop_remainder=True): every epoch drops the pictures that do not fill a batch. "
        "Repeat first: the next epoch then fills it."
    )
    expect("batch" not in names[: names.index("repeat")], message)
    message = "The last transform should be prefetch, so that a batch is ready in time"
    expect(names[-1] == "prefetch", f"{message}; yours is {names[-1]}.")


def _expect_whole_epoch(input_fn: Callable, pictures: int) -> None:
    """Raises Wrong unless an epoch holds each picture once: one pass, without shuffle and repeat."""
    with contextlib.ExitStack() as stack:
        for name in ("shuffle", "repeat"):
            idle = mock.patch.object(tf.data.Dataset, name, lambda self, *_, **__: self)
            stack.enter_context(idle)
        one_pass = input_fn({"batch_size": 5}).take(2 * pictures)
        numbers = [int(label) for _, labels in one_pass for label in labels]
    message = f"{pictures} pictures in {pictures // RECORDS} files should each come once an epoch"
    different = len(set(numbers))
    right = len(numbers) == different == pictures
    expect(right, f"{message}; yours gives {len(numbers)}, {different} of them different.")


def _crops_differ(program: ModuleType) -> str:
    """Runs the colleague's input on twelve pictures: other crops in each epoch, all else as it was."""
    text = Path(program.__file__).read_text(encoding="utf-8")
    python = next((name for name in ("numpy_function", "py_function") if name in text), "")
    message = f"{python} calls Python, which a remote host cannot run: use TensorFlow's random ops."
    expect(not python, message)
    with files_of_records(2) as files:
        with tf.Graph().as_default() as graph:
            program.make_input_fn(files)({"batch_size": 12})
        dataset = program.make_input_fn(files)({"batch_size": 12})
        same(dataset.element_spec[0].shape, [12, 128, 128, 3], "The shape of the images")
        epochs = [(images.numpy(), labels.numpy()) for images, labels in dataset.take(8)]
    caches = [_image(op) for name, op in _transforms(graph) if name == "cache"]
    message = "The decoded pictures are no longer cached: each epoch decodes them again."
    expect(bool(caches) and caches[0] is not None, message)
    kind = epochs[0][0].dtype
    expect(kind == np.uint8, f"The images are {kind} now, but should stay uint8.")
    missing = "Some pictures are missing in an epoch, or come twice."
    expect(all(sorted(labels) == list(range(12)) for _, labels in epochs), missing)
    places = {label: set() for label in range(12)}
    for images, labels in epochs:
        for image, label in zip(images, labels, strict=True):
            places[label].add(tuple(image.mean(axis=(0, 1))[:2].round(1)))  # red: left; green: top
    message = "Every picture is still cropped at the same position in each epoch."
    expect(all(len(corners) > 1 for corners in places.values()), message)
    all_places = set.union(*places.values())
    expect(len(all_places) > 12, "All pictures of an epoch are cropped at the same position.")
    red, green = map(np.ptp, zip(*all_places, strict=True))
    expect(min(red, green) > 15, "The crops hardly move, or they move along one axis only.")
    return "Every epoch crops each cached picture at a new position."


enter_patient(
    "6b",
    "crops",
    (
        "The cache is where it should be. Which line decides where a picture is cropped?",
        "How often does tf.data call crop: once for each picture, or once in all?",
        "TensorFlow's random ops draw each time that the graph runs. tf.random.uniform needs a shape and a dtype.",
    ),
    "map calls its function once, to build the graph: a value that is new for each picture has to come from an op.",
    _crops_differ,
)

# Images/s that the step can take, CPU ms an image, busy cores of 16, GB decoded, GB free, % waiting; the answer.
_JOBS = {
    "petals": ((2_000, 2, 1, 200, 60, 75), (4, "A")),
    "digits": ((40_000, 1, 16, 5, 60, 60), (40, "B")),
    "scenes": ((40_000, 1, 16, 98, 60, 60), (40, "C")),
    "scans": ((500, 8, 4, 98, 60, 2), (4, "D")),
}


@todo(
    "6c",
    hints=(
        "How many ms of CPU time do the images of one second need? A core has 1,000 ms in each second.",
        "First ask whether the steps wait at all. Then compare the cores that are needed with those that are busy.",
        "If all cores are busy and too few, which is cheaper: fewer decodes or more cores? Do the pictures fit?",
    ),
    why="Use idle cores first, then avoid repeated work, then rent a larger host.",
)
def deciding(decisions: dict) -> str:
    """The cores that each job needs, and the change that helps it."""
    for job, answer, letter in pairs(decisions, _JOBS, "cores"):
        (rate, cpu, busy, size, free, waits), (cores, right) = _JOBS[job]
        label = f"{job}: the cores for {rate:,} images/s at {cpu} ms (a core has 1,000 ms of CPU time in a second)"
        same(answer, cores, label)
        letter = str(letter).strip().upper()
        against = {
            "A": f"all {busy} cores are busy already: more threads do not help",
            "B": f"the decoded pictures take {size} GB, and {free} GB are free",
            "C": "most of its cores are idle: use them first"
            if busy == 1
            else "its decoded pictures fit into memory, and then need no more decoding",
            "D": f"its steps wait for input {waits} % of the time",
            "E": "prefetch decodes no picture faster: the input would be as slow as before",
        }
        expect(letter in against, f"{job}: {letter!r} is not one of the letters A to E.")
        if letter != right and right == "D":
            against[letter] = (
                f"its steps wait {waits} % of the time: a faster input changes nothing"
            )
        expect(letter == right, f"{job}: {against[letter]}.")
    return "Use idle cores first, then a cache, then a larger host. Where no step waits, change nothing."
