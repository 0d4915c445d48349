"""The pipeline: TODO 6f, which decodes in every epoch, and 6g, which keeps the pictures."""

from collections.abc import Callable

from lab_utils.check.labs.calls import Call, has_images, recorded
from lab_utils.check.labs.lab_06.files import Context, files_of_records
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, expect_dataset, scope_of
from lab_utils.estimator import tf

@todo(
    "6f",
    hints=(
        'What does a shuffle buffer hold at each place where you could put it?',
        "An epoch's last pictures fill no batch. What happens to them if repeat stands below batch, and what above?",
        'Which of the steps works on one picture at a time unless it is told otherwise? What comes last?',
    ),
    why='Records are small: shuffled as records, repeated before they are batched, decoded on all cores.',
)
def decoding(make_input_fn: Callable) -> str:
    """Shuffled while small, decoded in parallel, full batches, prefetched."""
    calls = _checked(make_input_fn)
    shuffles = [call for call in calls if call.name == "shuffle"]
    expect(
        any(not has_images(call.before) for call in shuffles),
        "The shuffle stands after the decoding, and holds decoded images: shuffle the records."
        if shuffles
        else "There is no shuffle: every epoch would bring the pictures in nearly the same order. Shuffle the records.",
    )
    _mixes(shuffles, 1024)
    (image, label), side = calls[-1].after, _size(make_input_fn)
    expect(
        image.dtype == tf.uint8 and label.dtype == tf.int32 and image.shape[1:] == (side, side, 3),
        f"A batch should be uint8 [B, {side}, {side}, 3] and int32 [B], as `decoded` gives them; yours is "
        f"{image.dtype.name} {list(image.shape)} and {label.dtype.name}.",
    )
    expect(
        not any(call.name == "cache" for call in calls),
        "cache() is for the next TODO: here it would keep one random part of each picture for ever.",
    )
    return "Shuffled while small, decoded on all cores, and ready before it is asked for."


@todo(
    "6g",
    hints=(
        'What comes out of the steps above cache() is what every later epoch gets.',
        'Which of shuffle, repeat and map should every epoch do again? Where do they stand, then?',
        'What you know of batches and the last step from the TODO before holds here too.',
    ),
    why='Above the cache all that is the same in each epoch, below it all that is new.',
)
def keeping(make_cached_input_fn: Callable) -> str:
    """Decoded once, kept, and reshuffled in each epoch."""
    calls = _checked(make_cached_input_fn)
    names = [call.name for call in calls]
    expect("cache" in names, "There is no cache: every picture is decoded again in each epoch. Put cache() below the decoding.")
    kept = calls[names.index("cache")]
    expect(
        has_images(kept.before),
        "The cache stands above the decoding: it keeps the encoded records, and each epoch decodes them.",
    )
    (image,) = (leaf for leaf in tf.nest.flatten(kept.before) if (leaf.shape.rank or 0) >= 3)
    expect(
        "repeat" not in names[: names.index("cache")],
        "repeat stands above the cache, which then is never full, and grows with every epoch.",
    )
    expect(
        image.shape[0] == 160,
        f"The cache keeps pictures of {image.shape[0]} pixels, what decoded gives: the same part of each for "
        "ever. Keep what whole gives.",
    )
    expect(
        image.dtype == tf.uint8, f"The cache keeps {image.dtype.name}: four times what uint8 takes."
    )
    expect(
        "shuffle" in names[names.index("cache") :],
        "The shuffle stands above the cache: every epoch would bring the same order."
        if "shuffle" in names
        else "There is no shuffle: every epoch would bring the same order. Shuffle below the cache.",
    )
    _mixes([call for call in calls[names.index("cache") :] if call.name == "shuffle"], 240)
    return "Decoded once, kept as uint8, and reshuffled in each epoch."


def _size(make_input_fn: Callable) -> int:
    """The notebook's SIZE."""
    return scope_of(make_input_fn).get("SIZE", 128)


def _mixes(shuffles: list[Call], least: int) -> None:
    """Raises Wrong unless one of these steps mixes well, and differently in each epoch."""
    expect(
        not any(call.arguments.get("reshuffle_each_iteration") is False for call in shuffles),
        "With reshuffle_each_iteration=False every epoch brings the same order.",
    )
    largest = max(int(call.arguments["buffer_size"]) for call in shuffles)
    expect(
        largest >= least,
        f"A shuffle buffer of {largest} hardly mixes: take 1,024, as the text says.",
    )


def _checked(make: Callable) -> list[Call]:
    """What both pipelines need; the steps that they take."""
    with files_of_records() as files:
        input_fn = make(files)
        expect(
            callable(input_fn),
            f"It should return the function input_fn; yours returns {a(input_fn)}.",
        )
        with recorded() as calls:
            dataset = input_fn({"batch_size": 5})
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        expect(
            isinstance(spec, tuple) and len(spec) == 2 and spec[0].shape.rank == 4,
            f"Each element should be a pair, images [B, side, side, 3] and classes [B]; yours is {spec}.",
        )
        size = spec[0].shape[0]
        expect(
            size is not None,
            f"The batch's shape is {spec[0].shape}: its last one may be smaller. drop_remainder=True.",
        )
        expect(
            size == 5,
            f'With params["batch_size"] of 5 a batch has {size} images: take the size from params.',
        )
        decoders = [call for call in calls if call.name == "map" and call.decodes]
        expect(
            all(call.arguments.get("num_parallel_calls") is not None for call in decoders),
            "The map that decodes has no num_parallel_calls: it works on one picture at a time.",
        )
        expect(
            calls[-1].name == "prefetch",
            f"The last step should be prefetch, so that a batch is ready when the device asks; yours is "
            f"{calls[-1].name}.",
        )
        expect(
            any(call.name == "interleave" for call in calls),
            "The files are read one after the other: take the records from read, of TODO 6a.",
        )
        _without_end(calls)
        expect(
            sum(1 for _ in dataset.take(12)) == 12,
            "The dataset ends with the first epoch, and the training with it: repeat().",
        )
        shares = [_classes(input_fn, host) for host in (0, 1)]
        expect(
            not shares[0] & shares[1],
            "Two hosts read the same pictures: read(share(files, params)).",
        )
    return calls


def _without_end(calls: list[Call]) -> None:
    """Raises Wrong unless the records are repeated, without a number, before they are batched."""
    names = [call.name for call in calls]
    expect(
        "repeat" in names,
        "The dataset ends with the first epoch, and the training with it: repeat().",
    )
    for call in calls:
        count = call.arguments.get("count") if call.name == "repeat" else None
        expect(
            count is None or int(count) < 0,
            f"repeat({count}) ends after {count} epochs: without end it takes no number.",
        )
    expect(
        "batch" not in names[: names.index("repeat")],
        "repeat stands below batch(drop_remainder=True): every epoch loses what does not fill a batch. "
        "Repeat first, so that the next epoch fills it.",
    )


def _classes(input_fn: Callable, host: int) -> set[int]:
    """The classes that one of two hosts gets; each record has its own."""
    dataset = input_fn({"batch_size": 2, "context": Context(host, 2)})
    return {int(label) for _, labels in dataset.take(12) for label in labels}
