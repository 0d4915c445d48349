"""The checks of lab 06, an input pipeline that feeds a TPU."""

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
from PIL import Image

from lab_utils.check.labs.calls import Call, has_images, recorded
from lab_utils.check.labs.decisions import pairs
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.todos import todo
from lab_utils.check.tools import expect, expect_dataset, returns, same
from lab_utils.estimator import tf

RECORDS = 6  # in a file


def jpeg() -> bytes:
    """A picture of 180 x 240 pixels: red grows to the right, green downwards."""
    rgb = np.zeros([180, 240, 3], np.uint8)
    rgb[:, :, 0] = np.linspace(0, 250, 240)[None]
    rgb[:, :, 1] = np.linspace(0, 250, 180)[:, None]
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=95)
    return file.getvalue()


@contextlib.contextmanager
def files_of_records(count: int) -> Iterator[list[str]]:
    """Files of RECORDS records; each record has a class of its own, from 1 on."""
    encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg()]))
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
        "What comes out of the transforms above cache() is what every later epoch gets.",
        "Which of shuffle, repeat and map should every epoch do again? Where do they stand, then?",
        "An epoch's last pictures fill no batch. What happens to them if repeat stands below batch, and what above?",
    ),
    why="Above the cache all that is the same in each epoch, below it all that is new.",
)
def caching(make_cached_input_fn: Callable) -> str:
    """Decoded once, cached, reshuffled in each epoch, in full batches, ready before they are asked for."""
    with files_of_records(50) as files:  # more pictures than the lab has
        input_fn = make_cached_input_fn(files)
        returns(input_fn, callable, "make_cached_input_fn", "the function input_fn")
        with recorded() as calls:
            dataset = input_fn({"batch_size": 5})
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        expect(
            isinstance(spec, tuple) and len(spec) == 2 and spec[0].shape.rank == 4,
            f"Each element should be a pair, images [B, side, side, 3] and classes [B]; yours is {spec}.",
        )
        told = 'The size of a batch (params["batch_size"]; the last one may be smaller without drop_remainder=True)'
        same(spec[0].shape[0], 5, told)
        _ordered(calls)
        _complete(input_fn, RECORDS * len(files))
    return "Decoded once, cached as uint8, and reshuffled in each epoch."


def _ordered(calls: list[Call]) -> None:
    """Raises Wrong unless the transforms stand in an order that serves each epoch."""
    names = [call.name for call in calls]
    expect("interleave" in names, "The files are read one after the other: take the records from read.")  # fmt: skip
    decoders = [call for call in calls if call.name == "map" and call.decodes]
    expect(
        all(call.arguments.get("num_parallel_calls") is not None for call in decoders),
        "The map that decodes has no num_parallel_calls: it works on one picture at a time.",
    )
    expect(
        "cache" in names,
        "There is no cache: every picture is decoded again in each epoch. Put cache() below the decoding.",
    )
    above, below = names[: names.index("cache")], names[names.index("cache") :]
    cached = calls[len(above)].before
    expect(
        has_images(cached),
        "The cache stands above the decoding: it keeps the encoded records, and each epoch decodes them.",
    )
    expect(
        "repeat" not in above,
        "repeat stands above the cache, which then is never full, and grows with every epoch.",
    )
    (image,) = (leaf for leaf in tf.nest.flatten(cached) if (leaf.shape.rank or 0) >= 3)
    told = "What the cache keeps (what `whole` gives, one picture at a time; `decoded` gives the same part for ever)"
    same([image.dtype.name, image.shape], ["uint8", [160, 160, 3]], told)
    expect(
        "shuffle" in below,
        "No shuffle stands below the cache: every epoch would bring the same order.",
    )
    shuffles = [call.arguments for call in calls[len(above) :] if call.name == "shuffle"]
    expect(
        not any(each.get("reshuffle_each_iteration") is False for each in shuffles),
        "With reshuffle_each_iteration=False every epoch brings the same order.",
    )
    largest = max(int(each["buffer_size"]) for each in shuffles)
    expect(
        largest >= 240,
        f"A shuffle buffer of {largest} hardly mixes: it should hold many batches. 1,024 is asked for.",
    )
    counts = [call.arguments.get("count") for call in calls if call.name == "repeat"]
    expect(
        bool(counts), "The dataset ends with the first epoch, and the training with it: repeat()."
    )
    expect(
        all(count is None or int(count) < 0 for count in counts),
        f"repeat({counts[0]}) ends after so many epochs: without end it takes no number.",
    )
    expect(
        "batch" not in names[: names.index("repeat")],
        "repeat stands below batch(drop_remainder=True): every epoch loses what does not fill a batch. "
        "Repeat first, so that the next epoch fills it.",
    )
    expect(
        names[-1] == "prefetch",
        f"The last transform should be prefetch, so that a batch is ready when the device asks; yours is {names[-1]}.",
    )


def _complete(input_fn: Callable, pictures: int) -> None:
    """Raises Wrong unless an epoch holds each picture once: one pass, without shuffle and repeat."""
    with contextlib.ExitStack() as stack:
        for name in ("shuffle", "repeat"):
            idle = mock.patch.object(tf.data.Dataset, name, lambda self, *_, **__: self)
            stack.enter_context(idle)
        one_pass = input_fn({"batch_size": 5}).take(2 * pictures)
        seen = [int(label) for _, labels in one_pass for label in labels]
    expect(
        len(seen) == len(set(seen)) == pictures,
        f"{pictures} pictures in {pictures // RECORDS} files should each come once in an epoch; yours gives "
        f"{len(seen)}, {len(set(seen))} of them different.",
    )


def _crops_differ(program: ModuleType) -> str:
    """Runs the colleague's input on twelve pictures: other crops in each epoch, all else as it was."""
    text = Path(program.__file__).read_text(encoding="utf-8")
    python = next((name for name in ("numpy_function", "py_function") if name in text), "")
    expect(
        not python,
        f"{python} calls Python for each picture, one at a time, and a remote host has no Python of yours: draw "
        "with TensorFlow's ops.",
    )
    with files_of_records(2) as files:
        with recorded() as calls:
            dataset = program.make_input_fn(files)({"batch_size": 12})
        same(dataset.element_spec[0].shape, [12, 128, 128, 3], "The shape of the images")
        epochs = [(images.numpy(), labels.numpy()) for images, labels in dataset.take(8)]
    cached = [call for call in calls if call.name == "cache"]
    expect(
        bool(cached) and has_images(cached[0].before),
        "The decoded pictures are no longer cached: each epoch decodes them again.",
    )
    expect(epochs[0][0].dtype == np.uint8, f"The images are {epochs[0][0].dtype} now, and were uint8.")  # fmt: skip
    missing = "Some pictures are missing in an epoch, or come twice."
    expect(all(sorted(labels) == list(range(12)) for _, labels in epochs), missing)
    places = {label: set() for label in range(12)}
    for images, labels in epochs:
        for image, label in zip(images, labels, strict=True):
            places[label].add(tuple(image.mean(axis=(0, 1))[:2].round(1)))  # red: left; green: top
    expect(
        all(len(each) > 1 for each in places.values()),
        "Every picture is still cut at the same place in each epoch.",
    )
    expect(
        len(set.union(*places.values())) > 12, "All pictures of an epoch are cut at the same place."
    )
    red, green = map(np.ptp, zip(*set.union(*places.values()), strict=True))
    expect(min(red, green) > 15, "The crops hardly move, or along one axis only.")
    return "Every epoch cuts each cached picture somewhere else."


enter_patient(
    "6b",
    "crops",
    (
        "The cache is where it should be. Which line decides where a picture is cut?",
        "How often does tf.data call crop: once for each picture, or once in all?",
        "TensorFlow's random ops draw each time that the graph runs. tf.random.uniform takes a shape and a dtype.",
    ),
    "A function of map runs once, while the graph is built: what should be new for each picture has to be an op.",
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
        "How many ms of CPU does a second's worth of images take? A core has 1,000 ms in each second.",
        "First ask whether the steps wait at all. Then compare the cores that are needed with those that work.",
        "Where all cores work and are too few, which is cheaper: fewer decodes, or more cores? Does it fit?",
    ),
    why="Cores that are idle come first, then work that need not be done again, then a larger host.",
)
def deciding(decisions: dict) -> str:
    """The cores that each job needs, and the change that helps it."""
    for job, found, letter in pairs(decisions, _JOBS, "cores"):
        (rate, cpu, busy, decoded, free, waits), (cores, right) = _JOBS[job]
        told = f"{job}: the cores for {rate:,} images/s at {cpu} ms (a core has 1,000 ms of CPU time in a second)"
        same(found, cores, told)
        letter = str(letter).strip().upper()
        against = {
            "A": f"all {busy} cores work already: more threads find none",
            "B": f"the decoded pictures take {decoded} GB, and {free} GB are free",
            "C": "most of its cores are idle: use them first"
            if busy == 1
            else "its pictures fit into memory once they are decoded, and then need no more decoding",
            "D": f"its steps wait for input {waits} % of the time",
            "E": "prefetch hides waiting, and does no work: the input would be as slow as before",
        }
        expect(letter in against, f"{job}: {letter!r} is not one of the letters A to E.")
        if letter != right and right == "D":
            against[letter] = (
                f"its steps wait {waits} % of the time: a faster input changes nothing"
            )
        expect(letter == right, f"{job}: {against[letter]}.")
    return "Idle cores first, then a cache, then cheaper pictures or a larger host; and nothing where nothing waits."
