"""The checks of lab 06, an input pipeline that feeds a TPU."""

import contextlib
import inspect
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
from lab_utils.estimator import tf

RECORDS = 6  # in a file
READERS = 8  # files at a time
_KEPT, _SIZE = 160, 128  # pixels, as in the lab
_FILES = 50  # with more pictures than the lab has
_PICTURES = RECORDS * _FILES
_DECODED = _PICTURES * _KEPT * _KEPT * 3  # bytes
_BUFFER = 1024  # elements that shuffle is to hold in 6b
_BATCH = 32  # of the lab


@contextlib.contextmanager
def files_of_records(count: int, encoded: bytes = b"") -> Iterator[str]:
    """The pattern of files of RECORDS records; each record has a class of its own, from 1 on."""
    encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded]))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder, f"train-{number:05d}-of-{count:05d}")
            with tf.io.TFRecordWriter(str(path)) as writer:
                for label in range(RECORDS * number + 1, RECORDS * number + RECORDS + 1):
                    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
                    features = {"image/encoded": encoded, "image/class/label": label}
                    example = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(example.SerializeToString())
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
        message = (
            "In training every epoch begins with the same files: their names should be shuffled again in each epoch, "
            "which is what list_files does by default."
        )
        expect(len(firsts) > 2 * READERS, message)
        evaluation = read(pattern, False)
        orders = [_classes(each) for each in (evaluation, evaluation, read(pattern, False))]
        message = "In evaluation the order changes from pass to pass: by default list_files shuffles the names of the files."
        expect(orders[0] == orders[1] == orders[2], message)
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


def _expect_readers(transforms: list[tuple[str, tf.Operation]], training: bool, free: bool) -> None:
    """Raises Wrong unless several files are read at a time, in an order that fits; `free` are the options."""
    readers = [op for name, op in transforms if name == "interleave"]
    message = "The files are read one after the other: interleave reads several at a time."
    expect(bool(readers), message)
    reader, given = readers[-1], _arguments(readers[-1])
    message = (
        "Without num_parallel_calls, interleave takes records from several files in turn, but reads only one file at "
        "a time: each waits for the one before."
    )
    expect("Parallel" in reader.type, message)
    cycle = given["cycle_length"]
    message = (
        "cycle_length is left to tf.data, which takes the number of this machine's cores. A reader that waits needs no "
        f"core: state {READERS}."
    )
    expect(cycle != tf.data.AUTOTUNE, message)
    few = cycle is not None and cycle < READERS
    expect(not few, f"cycle_length={cycle}: eight files should be read at a time.")
    calls = given.get("num_parallel_calls")
    message = "num_parallel_calls=1 reads one file at a time, only in another thread. tf.data.AUTOTUNE finds a number."
    expect(calls != 1, message)
    few = calls is not None and 1 < calls < READERS
    message = f"num_parallel_calls={calls}: of the {cycle} files at most {calls} are read at the same time."
    expect(not few, message)
    order = reader.get_attr("deterministic")
    free = order == b"false" or (order == b"default" and free)
    message = (
        "In training the records come in a fixed order, so a slow file makes the other readers wait: "
        "deterministic=False lets them go on."
    )
    expect(free or not training, message)
    message = "In evaluation the order depends on which reader is faster: leave deterministic as it is, or set it to True."
    expect(training or not free, message)


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
    with _pipeline(input_fn, "input_fn", 5) as (dataset, transforms, params):
        names = [name for name, _ in transforms]
        shape, kind = dataset.element_spec[0].shape, dataset.element_spec[0].dtype.name
        label = "The images of a batch (random_view makes uint8 of SIZE)"
        same([kind, shape], ["uint8", [5, _SIZE, _SIZE, 3]], label)
        _expect_parallel_decoder(transforms)
        caches = [op for name, op in transforms if name == "cache"]
        message = "The cache keeps the views of the first epoch: all later epochs would see the same ones."
        expect(not any(map(_image, caches)), message)
        _expect_shuffle(transforms, _BUFFER)
        mixed = next(op for name, op in transforms if name == "shuffle")
        message = (
            "shuffle stands below the decoding, so its buffer holds decoded pictures, which take several times the "
            "memory: shuffle the records."
        )
        expect(_image(mixed) is None, message)
        _expect_repeat(names, transforms, dataset)
        _expect_whole_epoch(input_fn, params)
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
    with _pipeline(cached_input_fn, "cached_input_fn", 5, memory) as (dataset, transforms, params):
        names = [name for name, _ in transforms]
        _expect_parallel_decoder(transforms)
        message = (
            f"There is no cache: every picture is decoded again in each epoch. {_PICTURES} pictures of KEPT pixels take "
            f"{_megabytes(_DECODED)}, and {_megabytes(memory)} are allowed: put cache() below the decoding."
        )
        expect("cache" in names, message)
        cache = names.index("cache")
        image = _image(transforms[cache][1])
        message = (
            "The cache stands above the decoding: it stores the encoded records, and each epoch decodes them. "
            f"{_megabytes(memory)} are allowed, and {_PICTURES} decoded pictures of uint8 take {_megabytes(_DECODED)}."
        )
        expect(image is not None, message)
        message = (
            "repeat stands above the cache, which never fills then, and grows with every epoch."
        )
        expect("repeat" not in names[:cache], message)
        label = "What the cache stores (single pictures from `whole`; `random_view` would fix the crop for all epochs)"
        same([image.dtype.name, image.shape], ["uint8", [_KEPT, _KEPT, 3]], label)
        message = "No shuffle stands below the cache: every epoch would have the same order."
        expect("shuffle" in names[cache:], message)
        _expect_shuffle(transforms[cache:])
        _expect_repeat(names, transforms, dataset)
        _expect_whole_epoch(cached_input_fn, params)


def _expect_no_more_than_records(cached_input_fn: Callable, fit: bool) -> None:
    """Raises Wrong unless the records are cached where they `fit`, and nothing where not even these do."""
    memory = int(0.9 * _DECODED) if fit else 20 * _PICTURES
    with _pipeline(cached_input_fn, "cached_input_fn", 5, memory) as (dataset, transforms, params):
        names = [name for name, _ in transforms]
        allowed = f"Of {_megabytes(memory)} of memory, decoded pictures need {_megabytes(_DECODED)} and records {_megabytes(params['bytes'])}"
        caches = [op for name, op in transforms if name == "cache"]
        message = f"{allowed}. Yours caches decoded pictures, which do not fit."
        expect(not any(map(_image, caches)), message)
        message = (
            f"{allowed}. The records fit, but yours has no cache: each epoch reads the files again."
        )
        expect(bool(caches) or not fit, message)
        message = f"{allowed}. Neither fits, but yours has a cache."
        expect(not caches or fit, message)
        if caches:
            cache = names.index("cache")
            message = "repeat stands above the cache of the records, which never fills then."
            expect("repeat" not in names[:cache], message)
            message = "No shuffle stands below the cache of the records: every epoch would have the same order."
            expect("shuffle" in names[cache:], message)
        _expect_parallel_decoder(transforms)
        _expect_shuffle(transforms)
        mixed = [op for name, op in transforms if name == "shuffle"]
        message = f"{allowed}. The shuffle buffer holds decoded pictures, too, which do not fit: shuffle the records."
        expect(not any(map(_image, mixed)), message)
        _expect_repeat(names, transforms, dataset)
        _expect_whole_epoch(cached_input_fn, params)


@contextlib.contextmanager
def _pipeline(
    input_fn: Callable, name: str, batch: int, memory: int = 0
) -> Iterator[tuple[tf.data.Dataset, list[tuple[str, tf.Operation]], dict]]:
    """Context manager: what the learner's input_fn gives for 300 pictures, its transforms, its params."""
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
        params = {"batch_size": batch, "pattern": pattern}
        params |= {"examples": _PICTURES, "bytes": size, "memory": memory}
        with tf.Graph().as_default() as graph:
            built = input_fn(dict(params))
        expect_dataset(built, name)
        message = (
            "training=False makes read give the order of evaluation: each epoch reads the files in the same order, and "
            "fast readers wait for slow ones. This input_fn is for training."
        )
        expect(all(modes), message)
        dataset = input_fn(dict(params))
        spec = dataset.element_spec
        message = "Each element should be a pair, images [B, side, side, 3] and classes [B]"
        pair = several(spec, 2) and all(isinstance(part, tf.TensorSpec) for part in spec)
        expect(pair and spec[0].shape.rank == 4, f"{message}; yours is {spec}.")
        label = 'The size of a batch (params["batch_size"]; the last one may be smaller without drop_remainder=True)'
        same(spec[0].shape[0], batch, label)
        transforms = _transforms(graph)
        message = "The files are read one after the other: `read` reads several at once."
        expect("interleave" in [name for name, _ in transforms], message)
        yield dataset, transforms, params


def _transforms(graph: tf.Graph) -> list[tuple[str, tf.Operation]]:
    """The ops that made a graph's datasets, in order; one as map_and_batch counts as two.

    Above the readers stand the names of the files, whose shuffling does not count.
    """
    kinds = re.compile("Interleave|Map|Cache|Shuffle|Repeat|Batch|Prefetch")
    ops = [op for op in graph.get_operations() if "Dataset" in op.type]
    found = [(kind.lower(), op) for op in ops for kind in kinds.findall(op.type)]
    readers = [place for place, (name, _) in enumerate(found) if name == "interleave"]
    return found[readers[0] :] if readers else found


def _image(op: tf.Operation) -> tf.TensorSpec | None:
    """The decoded image, or batch of images, in an element of the dataset that `op` makes, if any."""
    specs = zip(op.get_attr("output_shapes"), op.get_attr("output_types"), strict=True)
    images = [tf.TensorSpec(shape, kind) for shape, kind in specs if len(shape.dim) >= 3]
    return images[0] if images else None


def _arguments(op: tf.Operation) -> dict[str, Any]:
    """The arguments of a dataset by name; None for one that the graph does not hold as a constant."""
    values, place = {}, 0
    for argument in op.op_def.input_arg:
        length = 1
        if argument.type_list_attr:
            length = len(op.get_attr(argument.type_list_attr))
        elif argument.number_attr:
            length = op.get_attr(argument.number_attr)
        else:
            value = tf.get_static_value(op.inputs[place])
            values[argument.name] = None if value is None else value.item()
        place += length
    return values


def _expect_parallel_decoder(transforms: list[tuple[str, tf.Operation]]) -> None:
    """Raises Wrong unless the map that decodes works on several pictures at a time."""
    decoder = next((op for name, op in transforms if name == "map" and _image(op)), None)
    if decoder is None:  # decoded by other means
        return
    calls = _arguments(decoder).get("num_parallel_calls", None)
    message = "The map that decodes has no num_parallel_calls: it works on one picture at a time."
    expect("Parallel" in decoder.type or "Batch" in decoder.type, message)
    message = "num_parallel_calls=1 decodes one picture at a time, only in another thread: tf.data.AUTOTUNE finds a number."
    expect(calls != 1, message)


def _expect_shuffle(transforms: list[tuple[str, tf.Operation]], least: int = _PICTURES) -> None:
    """Raises Wrong unless something is shuffled, again in each epoch, in a buffer of `least` elements or more."""
    shuffles = [op for name, op in transforms if name == "shuffle"]
    expect(bool(shuffles), "Nothing is shuffled: every epoch has the order of the files.")
    again = [op.get_attr("reshuffle_each_iteration") for op in shuffles if _has(op, "reshuffle")]
    message = "With reshuffle_each_iteration=False every epoch has the same order."
    expect(all(again), message)
    sizes = [_arguments(op)["buffer_size"] for op in shuffles]
    message = (
        f"A shuffle buffer of {sizes[0]} mixes too little: an example never comes much earlier than the files have it. "
        f"{_BUFFER:,} is asked for."
    )
    expect(None in sizes or max(sizes) >= least, message)


def _has(op: tf.Operation, attribute: str) -> bool:
    return any(name.startswith(attribute) for name in op.node_def.attr)


def _expect_repeat(
    names: list[str], transforms: list[tuple[str, tf.Operation]], dataset: tf.data.Dataset
) -> None:
    """Raises Wrong unless whole epochs repeat for ever, and the last transform is prefetch."""
    counts = [_arguments(op)["count"] for name, op in transforms if name == "repeat"]
    message = "The dataset ends after the first epoch, and so does the training: call repeat()."
    expect(bool(counts), message)
    message = f"repeat({counts[0]}) ends after that many epochs: call repeat() without a number."
    expect(all(count is None or count < 0 for count in counts), message)
    repeat = names.index("repeat")
    message = (
        "repeat stands below batch(drop_remainder=True): every epoch drops the pictures that do not fill a batch. "
        "Repeat first: the next epoch then fills it."
    )
    expect("batch" not in names[:repeat], message)
    if "shuffle" in names[repeat:]:
        first = dataset.unbatch().take(_PICTURES)
        numbers = {int(label) for _, label in first.as_numpy_iterator()}
        message = (
            "repeat stands above shuffle, so the buffer mixes the pictures of several epochs: of the first "
            f"{_PICTURES} pictures only {len(numbers)} are different. Shuffle first, then repeat."
        )
        raise Wrong(message)
    message = "The last transform should be prefetch, so that a batch is ready in time"
    expect(names[-1] == "prefetch", f"{message}; yours is {names[-1]}.")
    for op in [op for name, op in transforms if name == "prefetch" and _image(op)]:
        _expect_few_ahead(op)


def _expect_few_ahead(prefetch: tf.Operation) -> None:
    """Raises Wrong where decoded pictures wait in a buffer that could hold as many as a shuffle buffer."""
    ahead, image = _arguments(prefetch)["buffer_size"], _image(prefetch)
    batches = image.shape.rank == 4
    kind = f"batches of {_BATCH} decoded pictures" if batches else "decoded pictures"
    message = (
        f"prefetch({ahead}) keeps up to {ahead:,} {kind} in memory, more than a shuffle buffer below the decoding "
        "would: one or two are enough, and AUTOTUNE finds a number."
    )
    expect(ahead is None or ahead * (_BATCH if batches else 1) <= _BUFFER, message)


def _expect_whole_epoch(input_fn: Callable, params: dict) -> None:
    """Raises Wrong unless an epoch holds each picture once: one pass, without shuffle and repeat."""
    pictures = _PICTURES
    with contextlib.ExitStack() as stack:
        for name in ("shuffle", "repeat"):
            idle = mock.patch.object(tf.data.Dataset, name, lambda self, *_, **__: self)
            stack.enter_context(idle)
        one_pass = input_fn(params).take(2 * pictures)
        numbers = [int(label) for _, labels in one_pass for label in labels]
    _expect_each_once(numbers, pictures)


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
    message = (
        f"All {_DRAWS:,} crops are cut at the same place. map calls your function once: what Python draws, or what a "
        "fixed seed gives, is a constant of the graph."
    )
    expect(len(set(places)) > 1, message)
    middle = _DRAWS // 4
    again = _places(_crops(random_crop, pixels, middle, 50))
    message = (
        f"A job that goes on at number {middle:,} cuts at other places than one that ran through: what is drawn should "
        "follow from `number` only."
    )
    expect(again == places[middle : middle + 50], message)
    _expect_own_places(places)
    for name, values in zip(("top", "left"), zip(*places, strict=True), strict=True):
        message = f"The {name} of all {_DRAWS:,} crops is {values[0]}: the crops should move along both axes."
        expect(len(set(values)) > 1, message)
        missing = sorted(set(range(last + 1)) - set(values))
        ends = "maxval itself is never drawn" if last in missing else "some places are left out"
        message = (
            f"The {name} should be any number from 0 to {last}; {missing[:3]} never came ({ends})."
        )
        expect(not missing, message)
    pairs = len(set(places))
    message = (
        f"{_DRAWS:,} crops are cut at {pairs:,} places of {(last + 1) ** 2:,}: top and left should be drawn "
        "independently of each other. Two draws with one seed are the same."
    )
    expect(pairs > 900, message)  # 1,061 are expected
    return f"The whole number decides the place, any of the {(last + 1) ** 2:,} that there are, wherever a job begins."


_DRAWS = 4000


def _expect_own_places(places: list[tuple[int, int]]) -> None:
    """Raises Wrong where the place of a number is that of another one, in a rule that repeats itself."""
    half = len(places) // 2
    periods = (n for n in range(1, half) if places[n : n + half] == places[:half])
    if period := next(periods, 0):
        message = (
            f"The numbers 0, {period:,}, {2 * period:,} and so on are cut at the same place, and so are the others that "
            f"are {period:,} apart. If that is an epoch, each picture is cut at one place in all epochs: the whole "
            "number should count."
        )
        raise Wrong(message)
    equal = sum(one == next_one for one, next_one in zip(places, places[1:], strict=False))
    message = (
        f"{equal:,} of {len(places):,} numbers are cut at the place of the number before. Each number should have its "
        "own place: the whole number should count."
    )
    expect(equal < half, message)


def _expect_ops_and_shape(random_crop: Callable, pixels: np.ndarray) -> None:
    """Raises Wrong unless the crop has a static shape, and comes from ops that any host has."""
    specs = (tf.TensorSpec([], tf.int64), tf.TensorSpec(pixels.shape, tf.uint8))
    function = tf.function(lambda number, image, label: random_crop(number, image, label))
    graph = function.get_concrete_function(*specs, tf.TensorSpec([], tf.int32))
    result = graph.structured_outputs
    returns(result, several(result, 2), "random_crop", "a pair, the crop and the label")
    kinds = {node.op for node in _nodes(graph.graph.as_graph_def())}
    message = (
        "numpy_function and py_function call Python for each picture. That gives new places, but only on a host that "
        "runs your own process: the server on any other host has no Python of yours. TensorFlow's random ops work on "
        "both."
    )
    expect(not kinds & {"PyFunc", "PyFuncStateless", "EagerPyFunc"}, message)
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


def _nodes(graph: tf.compat.v1.GraphDef) -> Iterator[Any]:
    """The nodes of a graph and of its functions."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def
