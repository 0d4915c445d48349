"""The pipeline: TODO 6f, which decodes in every epoch, 6g, which keeps the pictures, and what 6h and 6i measure."""

from collections.abc import Callable

from lab_utils.check.labs.calls import Call, has_images, recorded
from lab_utils.check.labs.lab_06.files import Context, files_of_records
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, returns, same
from lab_utils.estimator import tf
from lab_utils.notebook.profiles import Event


@todo(
    "6f",
    hints=(
        "What does a shuffle buffer hold at each place where you could put it?",
        "An epoch's last pictures fill no batch. What happens to them if repeat stands below batch, and what above?",
        "Which of the steps works on one picture at a time unless it is told otherwise? What comes last?",
    ),
    why="Records are small: shuffled as records, repeated before they are batched, decoded on all cores.",
)
def decoding(make_input_fn: Callable) -> Cases:
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
    batch = [f"{part.dtype.name} {part.shape.as_list()}" for part in calls[-1].after]
    yield "The pictures and classes of a batch, as `decoded` gives them", batch
    expect(
        not any(call.name == "cache" for call in calls),
        "cache() is for the next TODO: here it would keep one random part of each picture for ever.",
    )
    return "Shuffled while small, decoded on all cores, and ready before it is asked for."


@todo(
    "6g",
    hints=(
        "What comes out of the steps above cache() is what every later epoch gets.",
        "Which of shuffle, repeat and map should every epoch do again? Where do they stand, then?",
        "What you know of batches and the last step from the TODO before holds here too.",
    ),
    why="Above the cache all that is the same in each epoch, below it all that is new.",
)
def keeping(make_cached_input_fn: Callable) -> str:
    """Decoded once, kept, and reshuffled in each epoch."""
    calls = _checked(make_cached_input_fn)
    names = [call.name for call in calls]
    expect(
        "cache" in names,
        "There is no cache: every picture is decoded again in each epoch. Put cache() below the decoding.",
    )
    at = names.index("cache")
    kept = calls[at].before
    expect(
        has_images(kept),
        "The cache stands above the decoding: it keeps the encoded records, and each epoch decodes them.",
    )
    expect(
        "repeat" not in names[:at],
        "repeat stands above the cache, which then is never full, and grows with every epoch.",
    )
    (image,) = (leaf for leaf in tf.nest.flatten(kept) if (leaf.shape.rank or 0) >= 3)
    told = (
        "What the cache keeps (what `whole` gives; `decoded` gives the same part of each for ever)"
    )
    same([image.dtype.name, image.shape], ["uint8", [160, 160, 3]], told)
    expect(
        "shuffle" in names[at:],
        "No shuffle stands below the cache: every epoch would bring the same order.",
    )
    _mixes([call for call in calls[at:] if call.name == "shuffle"], 240)
    return "Decoded once, kept as uint8, and reshuffled in each epoch."


def _mixes(shuffles: list[Call], least: int) -> None:
    """Raises Wrong unless one of these steps mixes well, and differently in each epoch."""
    expect(
        not any(call.arguments.get("reshuffle_each_iteration") is False for call in shuffles),
        "With reshuffle_each_iteration=False every epoch brings the same order.",
    )
    largest = max(int(call.arguments["buffer_size"]) for call in shuffles)
    enough = f"A shuffle buffer of {largest} hardly mixes: take 1,024, as the text says."
    expect(largest >= least, enough)


def _checked(make: Callable) -> list[Call]:
    """What both pipelines need; the steps that they take."""
    with files_of_records() as files:
        input_fn = make(files)
        returns(
            input_fn,
            callable,
            make.__name__ if hasattr(make, "__name__") else "It",
            "the function input_fn",
        )
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
        names = [call.name for call in calls]
        expect(
            "interleave" in names,
            "The files are read one after the other: take the records from read, of TODO 6a.",
        )
        counts = [call.arguments.get("count") for call in calls if call.name == "repeat"]
        expect(
            all(count is None or int(count) < 0 for count in counts),
            f"repeat({counts and counts[0]}) ends after so many epochs: without end it takes no number.",
        )
        expect(
            bool(counts) and sum(1 for _ in dataset.take(12)) == 12,
            "The dataset ends with the first epoch, and the training with it: repeat().",
        )
        expect(
            "batch" not in names[: names.index("repeat")],
            "repeat stands below batch(drop_remainder=True): every epoch loses what does not fill a batch. "
            "Repeat first, so that the next epoch fills it.",
        )
        shares = []
        for host in (0, 1):
            mine = input_fn({"batch_size": 2, "context": Context(host, 2)})
            shares.append({int(label) for _, labels in mine.take(12) for label in labels})
        expect(
            not shares[0] & shares[1],
            "Two hosts read the same pictures: read(share(files, params)).",
        )
    return calls


@todo(
    "6h",
    hints=(
        "How many seconds of one core does one image take?",
        "And how many such seconds are there to do in each second?",
    ),
    why="Work to be done in a second over the work that one core does in a second.",
    slips={
        (
            " / 1000",
            "",
        ): "4,000 images/s at 0.5 ms are 2,000 milliseconds of CPU in each second; a core "
        "has 1,000 of them.",
    },
)
def cores(host_cores: Callable) -> Cases:
    """Images a second times seconds of CPU an image."""
    yield "4,000 images/s at 0.5 ms keep 2 cores busy", host_cores(4000, 0.5)
    yield (
        "1,000 images/s at 0.25 ms keep a quarter of a core busy: do not round",
        host_cores(1000, 0.25),
    )
    return "Work a second over what a core does in a second."


_GET_NEXT, _DATA = "tf_data_iterator_get_next", "tf_data_private_threadpool"
_STEP, _WAIT = "SessionRun", "IteratorGetNextOp::DoCompute"


def _job(waits: list[float], every: float) -> list[Event]:
    """A job of steps of `every` ms, each of which waits so long first, while other threads decode."""
    events = []
    for number, wait in enumerate(waits):
        at = number * every
        events += [
            Event("python", _STEP, at, at + every - 2),
            Event("python", "train", at, at + every),
            Event(_GET_NEXT, _WAIT, at, at + wait),
            Event(_GET_NEXT, "Iterator::Root", at, at + wait),
            Event("tf_Compute", "conv2d/Relu:_FusedConv2D", at + wait, at + every - 3),
            Event("tf_Compute 2", "ExecutorState::Process", at + wait, at + every - 3),
            Event(_DATA, "decode:DecodeJpeg", at + 1, at + every - 4),
            Event(f"{_DATA} 2", "decode:DecodeJpeg", at + 1, at + every - 4),
        ]
    return events


@todo(
    "6i",
    hints=(
        "Which event lasts as long as a step does for its caller? Which one lasts as long as the step waits?",
        "Work on other rows goes on beside the step: it is not waiting, however long it takes.",
        "Add up the lengths of the waits, and those of the steps.",
    ),
    why="Only what the step itself waits for makes it longer; work on other threads is hidden behind it.",
    slips={
        (
            'spent("IteratorGetNextOp::DoCompute") /',
            '2 * spent("IteratorGetNextOp::DoCompute") /',
        ): "`Iterator::Root` is the same waiting once more. Take one of the two.",
    },
)
def share(waiting_share: Callable) -> Cases:
    """The waits over the steps, on made-up profiles."""
    uneven = [
        *[Event("python", _STEP, 0, 10), Event(_GET_NEXT, _WAIT, 0, 1)],
        *[Event("python", _STEP, 10, 110), Event(_GET_NEXT, _WAIT, 10, 90)],
    ]
    for told, events in (
        (
            f"Three steps (`{_STEP}`) of 18 ms wait (`{_WAIT}`) for 2, 12 and 4 ms, 18 of 54 ms; what other rows do "
            "beside the step is not waiting, and a share is at most 1",
            _job([2, 12, 4], 20),
        ),
        (
            "Other threads decode all the time, and each step of 28 ms still waits for 0.5 ms alone",
            _job([0.5] * 4, 30),
        ),
        (
            "A step of 10 ms waits for 1 ms, one of 100 ms for 80, which is 81 of 110 ms. Add up first, then divide",
            list(reversed(uneven)),
        ),
    ):
        yield told, waiting_share(events)
    return "The waits over the steps; work on other rows does not count."
