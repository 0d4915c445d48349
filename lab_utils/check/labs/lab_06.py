"""The checks of lab 06, an input pipeline that feeds a TPU."""

import contextlib
import inspect
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.pictures import picture
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import (
    as_wrong,
    expect,
    expect_dataset,
    other_names,
    returns,
    same,
    scope_of,
    several,
)
from lab_utils.convert.images import RgbJpeg
from lab_utils.convert.records import encode_example
from lab_utils.dry_run.inspect import all_nodes
from lab_utils.estimator import tf

Transforms = list[tuple[str, tf.Operation]]  # what makes a graph's datasets, and its op, in order

RECORDS = 6  # in a file
READERS = 8  # files at a time
_KEPT, _SIZE = 160, 128  # pixels, as in the lab
_FILES = 50  # with more pictures than the lab has
_PICTURES = RECORDS * _FILES
_DECODED = _PICTURES * _KEPT * _KEPT * 3  # bytes
_BUFFER = 1024  # elements that shuffle is to hold in 6b
_BATCH, _ASKED = 32, 5  # examples of a batch in the lab, and in 6b and 6c


@contextlib.contextmanager
def files_of_records(count: int, encoded: bytes = b"") -> Iterator[str]:
    """The pattern of files of RECORDS records; each record has a class of its own, from 1 on."""
    image = RgbJpeg(encoded, 180, 240)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder, f"train-{number:05d}-of-{count:05d}")
            with tf.io.TFRecordWriter(str(path)) as writer:
                for label in range(RECORDS * number + 1, RECORDS * number + RECORDS + 1):
                    writer.write(encode_example(image, path.name.encode(), label, "Rosa"))
        yield f"{folder}/train-*"


@todo(
    "6a",
    hints=(
        "Three arguments of interleave say from how many files it takes records in turn, how many it reads in "
        "parallel, and whether the order is fixed. What do you want here?",
        "Which of list_files and interleave may change the order? Each has an argument that forbids it.",
        "If you set only cycle_length, how many files does interleave read at the same time?",
    ),
    why="A reader mostly waits, so there are more readers than cores. A fixed order makes the readers wait "
    "for each other, so only evaluation asks for one.",
)
def reading(read: Callable) -> str:
    """Every record once; several files at a time; mixed in training, in a fixed order in evaluation."""
    files = 5 * READERS
    with files_of_records(files) as pattern:
        for training in (True, False):
            dataset = read(pattern, training)
            expect_dataset(dataset, "read")
            spec = dataset.element_spec
            scalar = isinstance(spec, tf.TensorSpec) and spec == tf.TensorSpec([], tf.string)
            expect(scalar, f"read should give records, scalar strings; yours gives {spec}.")
            with tf.Graph().as_default() as graph:
                read(pattern, training)
            free = dataset.options().deterministic is False
            _expect_readers(_transforms(graph), training, free)
            _expect_each_once(_classes(dataset.take(2 * files * RECORDS)), files * RECORDS)
        again = read(pattern, True)
        # On a busy machine an epoch's first records may all be of one file: then more epochs tell.
        firsts: set[int] = set()
        for _ in range(40):
            firsts |= {label // RECORDS for label in _classes(again.take(READERS))}
            if len(firsts) > 2 * READERS:
                break
        expect(
            len(firsts) > 2 * READERS,
            "In training every epoch begins with the same files: their names should be shuffled again in each epoch, "
            "which is what list_files does by default.",
        )
        evaluation = read(pattern, False)
        orders = [_classes(each) for each in (evaluation, evaluation, read(pattern, False))]
        expect(
            orders[0] == orders[1] == orders[2],
            "In evaluation the order changes from pass to pass: by default list_files shuffles the names of the files.",
        )
    return "Eight files are read at a time: in training in another order in each epoch, in evaluation in a fixed one."


def _classes(records: tf.data.Dataset) -> list[int]:
    """The classes of records, from 0."""
    features = {"image/class/label": tf.io.FixedLenFeature([], tf.int64)}
    labels = records.map(lambda record: tf.io.parse_single_example(record, features))
    return [int(each["image/class/label"]) - 1 for each in labels.as_numpy_iterator()]


def _expect_each_once(numbers: list[int], count: int) -> None:
    """Raises Wrong unless each of `count` records or pictures is there once."""
    different = len(set(numbers))
    message = f"{count} records in {count // RECORDS} files should each come once an epoch"
    right = len(numbers) == different == count
    expect(right, f"{message}; yours gives {len(numbers)}, {different} of them different.")


def _expect_readers(transforms: Transforms, training: bool, free: bool) -> None:
    """Raises Wrong unless several files are read at a time, in an order that fits; `free` are the options."""
    readers = _ops(transforms, "interleave")
    expect(
        bool(readers), "The files are read one after the other: interleave reads several at a time."
    )
    reader = readers[-1]
    expect(
        "Parallel" in reader.type,
        "Without num_parallel_calls, interleave takes records from several files in turn, but reads only one file at "
        "a time: each waits for the one before.",
    )
    cycle = _argument(reader, "cycle_length")
    expect(
        cycle != tf.data.AUTOTUNE,
        "cycle_length is left to tf.data, which takes the number of this machine's cores. A reader that waits needs no "
        f"core: state {READERS}.",
    )
    few = cycle is not None and cycle < READERS
    expect(not few, f"cycle_length={cycle}: eight files should be read at a time.")
    calls = _argument(reader, "num_parallel_calls")
    expect(
        calls != 1,
        "num_parallel_calls=1 reads one file at a time, only in another thread. tf.data.AUTOTUNE finds a number.",
    )
    few = calls is not None and 1 < calls < READERS
    expect(
        not few,
        f"num_parallel_calls={calls}: of the {cycle} files at most {calls} are read at the same time.",
    )
    order = reader.get_attr("deterministic")
    free = order == b"false" or (order == b"default" and free)
    expect(
        free or not training,
        "In training the records come in a fixed order, so a slow file makes the other readers wait: "
        "deterministic=False lets them go on.",
    )
    expect(
        training or not free,
        "In evaluation the order depends on which reader is faster: leave deterministic as it is, or set it to True.",
    )


@todo(
    "6b",
    hints=(
        "What does the shuffle buffer hold if shuffle stands above the map that decodes? And what if it "
        "stands below?",
        "What happens at the border between two epochs if repeat comes before shuffle?",
        "An epoch's last pictures do not fill a batch. What happens to them if repeat stands below batch? And "
        "what if it stands above?",
    ),
    why="shuffle mixes small elements of one epoch, repeat fills the last batch from the next epoch, and prefetch "
    "has a batch ready.",
)
def feeding(input_fn: Callable) -> str:
    """Encoded records shuffled, repeated, decoded on several cores, in full batches, prefetched."""
    with _pipeline(input_fn, "input_fn") as (images, transforms, _):
        same(
            [images.dtype.name, images.shape],
            ["uint8", [_ASKED, _SIZE, _SIZE, 3]],
            "The images of a batch (random_view makes uint8 of SIZE)",
        )
        _expect_parallel_decoder(transforms)
        caches = _ops(transforms, "cache")
        expect(
            not any(map(_image, caches)),
            "The cache keeps the views of the first epoch: all later epochs would see the same ones.",
        )
        _expect_shuffle(transforms, _BUFFER)
        mixed = _ops(transforms, "shuffle")[0]
        expect(
            _image(mixed) is None,
            "shuffle stands below the decoding, so its buffer holds decoded pictures, which take several times the "
            "memory: shuffle the records.",
        )
    return "Small elements are shuffled, only views are decoded, and every batch is full and ready in time."


@todo(
    "6c",
    hints=(
        "Every later epoch gets what the transforms above cache() returned in the first.",
        "Which of shuffle, repeat and map should run again in every epoch? Should they stand below cache()?",
        "How many bytes does one decoded picture of `whole` take? According to the three numbers in params, "
        "which of the three cases applies?",
        "Cached pictures are in memory anyway, so how much more memory does a shuffle buffer of them need? "
        "How much does it need if the pictures are not cached?",
    ),
    why="What is the same in each epoch stands above the cache, and what is new stands below it. A decoded picture takes "
    "KEPT * KEPT * 3 bytes. If the pictures do not fit into memory, the shuffle buffer must not hold them either.",
)
def caching(cached_input_fn: Callable) -> str:
    """The best cache that fits, reshuffled in each epoch, in full batches, ready before they are asked for."""
    _expect_cached_pictures(cached_input_fn)
    for fits in (True, False):
        _expect_no_more_than_records(cached_input_fn, fits)
    return (
        "Where the pictures fit, they are decoded once, else their records are read once if those fit; every epoch has "
        "a new order."
    )


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def _expect_cached_pictures(cached_input_fn: Callable) -> None:
    """Raises Wrong unless decoded pictures are cached, where the memory holds them."""
    memory = int(1.1 * _DECODED)
    with _pipeline(cached_input_fn, "cached_input_fn", memory) as (_, transforms, _):
        names = [name for name, _ in transforms]
        _expect_parallel_decoder(transforms)
        expect(
            "cache" in names,
            f"There is no cache: every picture is decoded again in each epoch. {_PICTURES} pictures of KEPT pixels take "
            f"{_megabytes(_DECODED)}, and {_megabytes(memory)} are allowed: put cache() below the decoding.",
        )
        cache = names.index("cache")
        image = _image(transforms[cache][1])
        expect(
            image is not None,
            "The cache stands above the decoding: it stores the encoded records, and each epoch decodes them. "
            f"{_megabytes(memory)} are allowed, and {_PICTURES} decoded pictures of uint8 take {_megabytes(_DECODED)}.",
        )
        expect(
            "repeat" not in names[:cache],
            "repeat stands above the cache, which never fills then, and grows with every epoch.",
        )
        same(
            [image.dtype.name, image.shape],
            ["uint8", [_KEPT, _KEPT, 3]],
            "What the cache stores (single pictures from `whole`; `random_view` would fix the crop for all epochs)",
        )
        expect(
            "shuffle" in names[cache:],
            "No shuffle stands below the cache: every epoch would have the same order.",
        )
        _expect_shuffle(transforms[cache:])


def _expect_no_more_than_records(cached_input_fn: Callable, fit: bool) -> None:
    """Raises Wrong unless the records are cached where they `fit`, and nothing where not even these do."""
    memory = int(0.9 * _DECODED) if fit else 20 * _PICTURES
    with _pipeline(cached_input_fn, "cached_input_fn", memory) as (_, transforms, size):
        names = [name for name, _ in transforms]
        allowed = f"Of {_megabytes(memory)} of memory, decoded pictures need {_megabytes(_DECODED)} and records {_megabytes(size)}"
        caches = _ops(transforms, "cache")
        expect(
            not any(map(_image, caches)),
            f"{allowed}. Yours caches decoded pictures, which do not fit.",
        )
        expect(
            bool(caches) or not fit,
            f"{allowed}. The records fit, but yours has no cache: each epoch reads the files again.",
        )
        expect(not caches or fit, f"{allowed}. Neither fits, but yours has a cache.")
        if caches:
            cache = names.index("cache")
            expect(
                "repeat" not in names[:cache],
                "repeat stands above the cache of the records, which never fills then.",
            )
            expect(
                "shuffle" in names[cache:],
                "No shuffle stands below the cache of the records: every epoch would have the same order.",
            )
        _expect_parallel_decoder(transforms)
        _expect_shuffle(transforms)
        mixed = _ops(transforms, "shuffle")
        expect(
            not any(map(_image, mixed)),
            f"{allowed}. The shuffle buffer holds decoded pictures, too, which do not fit: shuffle the records.",
        )


@contextlib.contextmanager
def _pipeline(
    input_fn: Callable, name: str, memory: int = 0
) -> Iterator[tuple[tf.TensorSpec, Transforms, int]]:
    """Context manager: the images that the learner's input_fn gives, its transforms, the bytes of its files.

    At its end it raises Wrong unless the input_fn repeats whole epochs.
    """
    modes: list[bool] = []
    genuine = scope_of(input_fn).get("read")

    def recorded(*arguments: Any, **options: Any) -> Any:
        given = inspect.signature(genuine).bind(*arguments, **options)
        given.apply_defaults()
        modes.append(bool(given.arguments.get("training", True)))
        return genuine(*arguments, **options)

    with (
        other_names(input_fn, **({"read": recorded} if genuine else {})),
        files_of_records(_FILES, picture(180, 240)) as pattern,
        mock.patch("os.cpu_count", return_value=4),  # a machine with one core is fine
    ):
        size = sum(map(os.path.getsize, tf.io.gfile.glob(pattern)))
        params = {"batch_size": _ASKED, "pattern": pattern}
        params |= {"examples": _PICTURES, "bytes": size, "memory": memory}
        with tf.Graph().as_default() as graph:
            built = input_fn(dict(params))
        expect_dataset(built, name)
        expect(
            all(modes),
            "training=False makes read give the order of evaluation: each epoch reads the files in the same order, and "
            "fast readers wait for slow ones. This input_fn is for training.",
        )
        dataset = input_fn(dict(params))
        spec = dataset.element_spec
        message = "Each element should be a pair, images [B, side, side, 3] and classes [B]"
        pair = several(spec, 2) and all(isinstance(part, tf.TensorSpec) for part in spec)
        expect(pair and spec[0].shape.rank == 4, f"{message}; yours is {spec}.")
        same(
            spec[0].shape[0],
            _ASKED,
            'The size of a batch (params["batch_size"]; the last one may be smaller without drop_remainder=True)',
        )
        transforms = _transforms(graph)
        expect(
            bool(_ops(transforms, "interleave")),
            "The files are read one after the other: `read` reads several at once.",
        )
        yield spec[0], transforms, size
        _expect_repeat(transforms, dataset)
        _expect_whole_epoch(input_fn, params)


def _transforms(graph: tf.Graph) -> Transforms:
    """The ops that made a graph's datasets, in order; one as map_and_batch counts as two.

    Above the readers stand the names of the files, whose shuffling does not count.
    """
    kinds = re.compile("Interleave|Map|Cache|Shuffle|Repeat|Batch|Prefetch")
    ops = [op for op in graph.get_operations() if "Dataset" in op.type]
    found = [(kind.lower(), op) for op in ops for kind in kinds.findall(op.type)]
    readers = [place for place, (name, _) in enumerate(found) if name == "interleave"]
    return found[readers[0] :] if readers else found


def _ops(transforms: Transforms, kind: str) -> list[tf.Operation]:
    """The ops of one kind, in order."""
    return [op for name, op in transforms if name == kind]


def _image(op: tf.Operation) -> tf.TensorSpec | None:
    """The decoded image, or batch of images, in an element of the dataset that `op` makes, if any."""
    specs = zip(op.get_attr("output_shapes"), op.get_attr("output_types"), strict=True)
    images = [tf.TensorSpec(shape, kind) for shape, kind in specs if len(shape.dim) >= 3]
    return images[0] if images else None


def _argument(op: tf.Operation, name: str) -> Any:
    """An argument of a dataset; None where it has none of that name, or the graph holds no constant for it.

    It is counted from the end, since a list of any length may stand before it.
    """
    names = [argument.name for argument in op.op_def.input_arg]
    if name not in names:
        return None
    return tf.get_static_value(op.inputs[names.index(name) - len(names)])


def _expect_parallel_decoder(transforms: Transforms) -> None:
    """Raises Wrong unless the map that decodes works on several pictures at a time."""
    decoder = next(filter(_image, _ops(transforms, "map")), None)
    if decoder is None:  # decoded by other means
        return
    calls = _argument(decoder, "num_parallel_calls")
    expect(
        "Parallel" in decoder.type or "Batch" in decoder.type,
        "The map that decodes has no num_parallel_calls: it works on one picture at a time.",
    )
    expect(
        calls != 1,
        "num_parallel_calls=1 decodes one picture at a time, only in another thread: tf.data.AUTOTUNE finds a number.",
    )


def _expect_shuffle(transforms: Transforms, least: int = _PICTURES) -> None:
    """Raises Wrong unless something is shuffled, again in each epoch, in a buffer of `least` elements or more."""
    shuffles = _ops(transforms, "shuffle")
    expect(bool(shuffles), "Nothing is shuffled: every epoch has the order of the files.")
    again = "reshuffle_each_iteration"
    reshuffled = [op.get_attr(again) for op in shuffles if again in op.node_def.attr]
    expect(all(reshuffled), "With reshuffle_each_iteration=False every epoch has the same order.")
    sizes = [_argument(op, "buffer_size") for op in shuffles]
    expect(
        None in sizes or max(sizes) >= least,
        f"A shuffle buffer of {sizes[0]} mixes too little: an example never comes much earlier than the files have it. "
        f"{_BUFFER:,} is asked for.",
    )


def _expect_repeat(transforms: Transforms, dataset: tf.data.Dataset) -> None:
    """Raises Wrong unless whole epochs repeat for ever, and the last transform is prefetch."""
    names = [name for name, _ in transforms]
    counts = [_argument(op, "count") for op in _ops(transforms, "repeat")]
    expect(
        bool(counts),
        "The dataset ends after the first epoch, and so does the training: call repeat().",
    )
    expect(
        all(count is None or count < 0 for count in counts),
        f"repeat({counts[0]}) ends after that many epochs: call repeat() without a number.",
    )
    repeat = names.index("repeat")
    expect(
        "batch" not in names[:repeat],
        "repeat stands below batch(drop_remainder=True): every epoch drops the pictures that do not fill a batch. "
        "Repeat first: the next epoch then fills it.",
    )
    if "shuffle" in names[repeat:]:
        first = dataset.unbatch().take(_PICTURES)
        numbers = {int(label) for _, label in first.as_numpy_iterator()}
        raise Wrong(
            "repeat stands above shuffle, so the buffer mixes the pictures of several epochs: of the first "
            f"{_PICTURES} pictures only {len(numbers)} are different. Shuffle first, then repeat."
        )
    message = "The last transform should be prefetch, so that a batch is ready in time"
    expect(names[-1] == "prefetch", f"{message}; yours is {names[-1]}.")
    for op in filter(_image, _ops(transforms, "prefetch")):
        _expect_few_ahead(op)


def _expect_few_ahead(prefetch: tf.Operation) -> None:
    """Raises Wrong where decoded pictures wait in a buffer that could hold as many as a shuffle buffer."""
    ahead = _argument(prefetch, "buffer_size")
    batches = _image(prefetch).shape.rank == 4
    if ahead is not None and ahead * (_BATCH if batches else 1) > _BUFFER:
        kind = f"batches of {_BATCH} decoded pictures" if batches else "decoded pictures"
        raise Wrong(
            f"prefetch({ahead}) keeps up to {ahead:,} {kind} in memory, more than a shuffle buffer below the decoding "
            "would: one or two are enough, and AUTOTUNE finds a number."
        )


def _expect_whole_epoch(input_fn: Callable, params: dict) -> None:
    """Raises Wrong unless an epoch holds each picture once: one pass, without shuffle and repeat."""

    def idle(self: tf.data.Dataset, *_: Any, **__: Any) -> tf.data.Dataset:
        return self

    with mock.patch.multiple(tf.data.Dataset, shuffle=idle, repeat=idle):
        one_pass = input_fn(params).take(2 * _PICTURES)
        numbers = [int(label) for _, labels in one_pass for label in labels]
    _expect_each_once(numbers, _PICTURES)


@todo(
    "6d",
    hints=(
        "How often does tf.data call the Python function in map: once for each picture, or once in all?",
        "TensorFlow's random ops draw new numbers each time that the graph runs, except those that depend "
        "only on their seed. What should the seed of such an op contain, so that each picture gets its own "
        "numbers?",
        "Top and left are two numbers. What do two draws with the same seed give?",
        "What is the last place for the top of the crop? Is maxval itself ever drawn?",
    ),
    why="map calls its function once, to build the graph, so a value that is new for each picture has to come "
    "from an op. A stateless op with the picture's number in its seed draws the same numbers wherever the "
    "job begins.",
)
def cropping(random_crop: Callable) -> str:
    """Crops of a picture whose pixels say where they stand: everywhere, along both axes, by the number only."""
    last = _KEPT - _SIZE
    rows, columns = np.mgrid[:_KEPT, :_KEPT].astype(np.uint8)
    pixels = np.stack([rows, columns, np.full_like(rows, 7)], axis=-1)
    _expect_ops_and_shape(random_crop, pixels)
    crops = _crops(random_crop, pixels, 0, _DRAWS)
    same({label for _, label in crops}, {5}, "The labels")
    grid = pixels[:_SIZE, :_SIZE] - pixels[:1, :1]
    whole = all(np.array_equal(image - image[:1, :1], grid) for image, _ in crops)
    expect(
        whole,
        "A crop is not a part of the picture as it stands: it was resized, turned, or changed.",
    )
    places = _places(crops)
    expect(
        len(set(places)) > 1,
        f"All {_DRAWS:,} crops are cut at the same place. map calls your function once: what Python draws, or what a "
        "fixed seed gives, is a constant of the graph.",
    )
    middle = _DRAWS // 4
    again = _places(_crops(random_crop, pixels, middle, 50))
    expect(
        again == places[middle : middle + 50],
        f"A job that goes on at number {middle:,} cuts at other places than one that ran through: what is drawn should "
        "follow from `number` only.",
    )
    _expect_own_places(places)
    for name, values in zip(("top", "left"), zip(*places, strict=True), strict=True):
        expect(
            len(set(values)) > 1,
            f"The {name} of all {_DRAWS:,} crops is {values[0]}: the crops should move along both axes.",
        )
        missing = sorted(set(range(last + 1)) - set(values))
        ends = "maxval itself is never drawn" if last in missing else "some places are left out"
        expect(
            not missing,
            f"The {name} should be any number from 0 to {last}; {missing[:3]} never came ({ends}).",
        )
    pairs = len(set(places))
    expect(
        pairs > 900,  # 1,061 are expected
        f"{_DRAWS:,} crops are cut at {pairs:,} places of {(last + 1) ** 2:,}: top and left should be drawn "
        "independently of each other. Two draws with one seed are the same.",
    )
    return f"The whole number decides the place, any of the {(last + 1) ** 2:,} that there are, wherever a job begins."


_DRAWS = 4000


def _expect_own_places(places: list[tuple[int, int]]) -> None:
    """Raises Wrong where the place of a number is that of another one, in a rule that repeats itself."""
    half = len(places) // 2
    periods = (n for n in range(1, half) if places[n : n + half] == places[:half])
    if period := next(periods, 0):
        raise Wrong(
            f"The numbers 0, {period:,}, {2 * period:,} and so on are cut at the same place, and so are the others that "
            f"are {period:,} apart. If that is an epoch, each picture is cut at one place in all epochs: the whole "
            "number should count."
        )
    equal = sum(one == next_one for one, next_one in itertools.pairwise(places))
    expect(
        equal < half,
        f"{equal:,} of {len(places):,} numbers are cut at the place of the number before. Each number should have its "
        "own place: the whole number should count.",
    )


def _expect_ops_and_shape(random_crop: Callable, pixels: np.ndarray) -> None:
    """Raises Wrong unless the crop has a static shape, and comes from ops that any host has."""
    specs = (tf.TensorSpec([], tf.int64), tf.TensorSpec(pixels.shape, tf.uint8))
    function = tf.function(lambda number, image, label: random_crop(number, image, label))
    graph = function.get_concrete_function(*specs, tf.TensorSpec([], tf.int32))
    result = graph.structured_outputs
    returns(result, several(result, 2), "random_crop", "a pair, the crop and the label")
    kinds = {node.op for node in all_nodes(graph.graph.as_graph_def())}
    expect(
        not kinds & {"PyFunc", "PyFuncStateless", "EagerPyFunc"},
        "numpy_function and py_function call Python for each picture. That gives new places, but only on a host that "
        "runs your own process: the server on any other host has no Python of yours. TensorFlow's random ops work on "
        "both.",
    )
    label = "The type and the static shape of a crop, which a TPU has to know"
    same([result[0].dtype.name, result[0].shape], ["uint8", [_SIZE, _SIZE, 3]], label)


def _crops(
    random_crop: Callable, pixels: np.ndarray, start: int, count: int
) -> list[tuple[np.ndarray, int]]:
    """The crops, and their labels, of so many numbers from `start` on."""
    one = tf.data.Dataset.from_tensors((pixels, np.int32(5))).repeat(count)
    numbered = one.enumerate(start).map(lambda number, pair: random_crop(number, *pair))
    beyond = f"A crop reaches beyond the picture: top and left should go from 0 to KEPT - SIZE = {_KEPT - _SIZE}."
    with as_wrong("", beyond, (tf.errors.InvalidArgumentError,)):
        return [(image, int(label)) for image, label in numbered.as_numpy_iterator()]


def _places(crops: list[tuple[np.ndarray, int]]) -> list[tuple[int, int]]:
    """Top and left of each crop."""
    return [(int(image[0, 0, 0]), int(image[0, 0, 1])) for image, _ in crops]
