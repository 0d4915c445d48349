"""What is trained: TODO 12a, the baseline, 12b, the streams, 12c, the model, and 12d, its reset."""

from collections.abc import Callable

import keras
import numpy as np

from lab_utils.check.labs.networks import all_layers
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, expect_dataset, scope_of
from lab_utils.estimator import tf


@todo(
    "12a",
    hints=(
        'A table [kinds, kinds], with a row for each character and a column for each that follows. What does it start with?',
        'Adding 1 at many places at once counts a place once; numpy has a function that counts each time.',
        'Divide each row by its sum; look up the pairs of held; which logarithm gives bits?',
    ),
    why='1 added to each count leaves no pair impossible, which would cost infinitely many bits.',
)
def bits(bigram_bits: Callable) -> str:
    """Mean -log2 of the share, with 1 added to each count."""
    train, held = np.array([0, 1, 0, 1, 0, 1, 2, 2]), np.array([0, 1, 2, 2])
    found = bigram_bits(train, held, 3)
    expect(found is not None, f"bigram_bits returns {a(found)}.")
    found = float(found)
    # After 0: 1 thrice; after 1: 0 twice, 2 once; after 2: 2 once. One is added to each.
    wanted = -np.mean(np.log2([4 / 6, 2 / 6, 2 / 4]))
    expect(
        not np.isclose(found, -wanted), "Bits are positive: minus the logarithm of a share below 1."
    )
    expect(
        not np.isclose(found, wanted * np.log(2)),
        "Those are nats, of the natural logarithm: bits need log2.",
    )
    once = -np.mean(np.log2([2 / 4, 2 / 5, 2 / 4]))
    expect(
        not np.isclose(found, once),
        "Each pair was counted once, however often it comes: counts[i, j] += 1 with arrays of places adds "
        "once to each. np.add.at adds every time.",
    )
    rare = float(bigram_bits(train, np.array([2, 0]), 3))
    expect(
        np.isfinite(rare), "A pair that never came in train is impossible: start each count at 1."
    )
    for other, told in (
        (3 * wanted, "That is the sum over the three characters: take the mean."),
        (
            0.75 * wanted,
            "The first character of held has none before it, so three of four cost bits: the mean is over three.",
        ),
        (
            -np.mean(np.log2([4 / 16, 2 / 16, 2 / 16])),
            "Those are shares of all pairs: divide each row by its own sum, of what can follow one character.",
        ),
        (
            -np.mean(np.log2([4 / 6, 2 / 5, 2 / 5])),
            "Those are shares of columns: a row holds what can follow one character, so divide by its sum, "
            "axis=1.",
        ),
        (
            -np.mean(np.log2([3 / 6, 1 / 4, 2 / 4])),
            "A pair of held is taken the wrong way round: the row is the character before.",
        ),
    ):
        expect(not np.isclose(found, other), told)
    expect(
        np.isclose(found, wanted),
        f"In train 1 follows 0 three times of three, so with 1 added to each of three kinds its share is 4/6 "
        f"in the row of 0. By such shares held costs {wanted:.4g} bits each; yours says {found:.4g}.",
    )
    return "Pairs counted, shares by row, a mean of bits."


@todo(
    "12b",
    hints=(
        'How many whole batches are there, if each takes batch * length characters, and the last character needs one that follows it?',
        'A reshape puts a stream into each row; which two axes change places, so that a batch takes a piece of each?',
        'What follows is the same, cut out of ids one place further on.',
    ),
    why='Row k goes on in row k, so a state that is carried over belongs to its text.',
)
def streams(make_dataset: Callable) -> str:
    """Fixed shapes, each row going on where it ended."""
    for count in (1000, 257, 256):
        ids = np.arange(count, dtype=np.int32)
        dataset = make_dataset(ids, 4, 8)
        expect_dataset(dataset, "make_dataset")
        spec = dataset.element_spec
        expect(
            isinstance(spec, tuple) and len(spec) == 2,
            f"Each element should be a pair; yours is {spec}.",
        )
        expect(
            all(each.shape.as_list() == [4, 8] for each in spec),
            f"With a batch of 4 and a length of 8 both parts should be [4, 8]; yours are {spec[0].shape} and "
            f"{spec[1].shape}.",
        )
        expect(
            all(each.dtype == tf.int32 for each in spec),
            f"Characters should stay int32; yours are {spec[0].dtype.name} and {spec[1].dtype.name}.",
        )
        full = (count - 1) // 32
        batches = list(dataset.take(full + 50).as_numpy_iterator())
        expect(
            len(batches) < full + 50,
            f"{count} characters fill {full} batches of 4 by 8, and yours has more than {full + 49}. An epoch "
            "reads each character once: no repeat(), and each batch begins where the last one ended.",
        )
        expect(
            all(np.array_equal(read + 1, following) for read, following in batches),
            "The second part should hold the characters that follow those of the first: the same, one place "
            "further on in ids.",
        )
        ends = [read[:, -1] for read, _ in batches]
        starts = [read[:, 0] for read, _ in batches[1:]]
        expect(
            all(np.array_equal(end + 1, start) for end, start in zip(ends, starts, strict=False))
            and all((np.diff(read, axis=1) == 1).all() for read, _ in batches),
            "Row k of a batch does not continue row k of the batch before, so a state that is carried on "
            "would be another place's. Each row is a stream of its own.",
        )
        expect(
            len(batches) == full,
            f"{count} characters fill {full} batches of 4 by 8; yours has {len(batches)} batches.",
        )
        read = np.concatenate([each for each, _ in batches], axis=1)
        expect(
            len(np.unique(read)) == read.size,
            "Some characters are read twice: each row is another part of the text.",
        )
    return "Streams side by side, each batch going on where the last one ended."


@todo(
    "12c",
    hints=(
        'batch_shape fixes both numbers; the layers follow each other.',
        'One argument of LSTM makes it answer at every character, another keeps its state.',
        'A logit for each kind: how many, and with which activation?',
    ),
    why="The state has the batch's shape, so the batch belongs to the model.",
)
def model(make_model: Callable) -> str:
    """An answer at every character; the state carried where asked for."""
    keeping = make_model(2, 3, True)
    expect(
        isinstance(keeping, keras.Model),
        f"make_model should return a keras.Model; yours returns {a(keeping)}.",
    )
    shape = keeping.outputs[0].shape
    expect(
        len(shape) == 3 and shape[1] == 3,
        f"The output for [2, 3] is {list(shape)}: the LSTM should answer at every character, "
        "return_sequences=True.",
    )
    expect(
        shape[0] == 2,
        f"With a batch of 2 the output is {list(shape)}: batch_shape=(batch, length).",
    )
    lstm = [
        layer.cell  # of an LSTM, and of an RNN around an LSTMCell
        for layer in all_layers(keeping)
        if isinstance(getattr(layer, "cell", None), keras.layers.LSTMCell)
    ]
    units = scope_of(make_model).get("UNITS", 128)
    expect(
        len(lstm) == 1 and lstm[0].units == units,
        f"There should be one LSTM, of UNITS = {units}.",
    )
    kinds = len(scope_of(make_model).get("characters", range(shape[2])))
    expect(
        shape[2] == kinds,
        f"There are {kinds} kinds of characters, and a logit for each; yours gives {shape[2]}.",
    )
    wide = [layer for layer in all_layers(keeping) if isinstance(layer, keras.layers.Embedding)]
    expect(
        len(wide) == 1 and wide[0].output_dim == 32 and wide[0].input_dim == kinds,
        f"There should be one embedding, of {kinds} characters in 32 numbers.",
    )
    free = make_model(None, None, False)
    expect(
        not any(getattr(layer, "stateful", False) for layer in all_layers(free)),
        "Without stateful the model is not stateful: hand the argument on.",
    )
    for own, others in zip(free.trainable_variables, keeping.trainable_variables, strict=True):
        expect(
            own.shape == others.shape,
            "The weights have other shapes where batch or length differ: they could not be shared.",
        )
        own.assign(others)
    whole = np.random.default_rng(0).integers(0, shape[2], [2, 6]).astype(np.int32)
    wanted = np.asarray(free(whole))
    expect(
        not np.allclose(wanted.sum(axis=-1), 1, atol=1e-4),
        "The outputs add up to 1: that is a softmax. The loss is of logits, so leave it out.",
    )
    expect((wanted < 0).any(), "No logit is negative: leave out the activation on the last layer.")
    expect(
        np.allclose(wanted, np.asarray(free(whole, training=True)), atol=1e-4),
        "In training the model gives other logits: something is drawn at random (dropout), which nobody "
        "asked for.",
    )
    zeros = np.zeros_like(whole)
    zeros[:, 0] = whole[:, 0]
    after = np.asarray(free(zeros))
    expect(
        not np.allclose(after[:, 1], after[:, 2], atol=1e-6),
        "The LSTM passes over character 0, which is a character like the others here, not padding: leave out "
        "mask_zero.",
    )
    changed = whole.copy()
    changed[:, -1] = (changed[:, -1] + 1) % kinds
    expect(
        np.allclose(wanted[:, :-1], np.asarray(free(changed))[:, :-1], atol=1e-4),
        "A later character changes what was answered before it: the LSTM reads forward only.",
    )
    parts = np.concatenate(
        [np.asarray(keeping(whole[:, :3])), np.asarray(keeping(whole[:, 3:]))], axis=1
    )
    expect(
        np.allclose(parts, wanted, atol=1e-4),
        "Six characters in two parts give other logits than the six at once: with stateful the state should "
        "be carried from call to call. stateful=stateful.",
    )
    return "An answer at every character, and a state that is carried where it should be."


@todo(
    "12d",
    hints=(
        'self.model.layers lists the layers. Not all of them have a state: what does hasattr tell?',
        'A method that is only named does nothing.',
    ),
    why='A new epoch starts at the top of each stream, and the state is that of its end.',
)
def reset(FromTheTop: type) -> str:
    """Every stateful layer is empty when an epoch begins."""
    read = keras.Input(batch_shape=(1, 4), dtype="int32")
    net = keras.layers.Embedding(5, 3)(read)
    net = keras.layers.LSTM(3, return_sequences=True, stateful=True)(net)
    net = keras.layers.GRU(3, stateful=True)(net)
    tried = keras.Model(read, net)
    callback = FromTheTop()
    expect(
        isinstance(callback, keras.callbacks.Callback),
        f"FromTheTop should be a keras.callbacks.Callback; yours is {a(callback)}.",
    )
    callback.set_model(tried)
    weights = [np.array(each) for each in tried.trainable_variables]
    for epoch in range(3):
        tried(np.array([[1, 2, 3, 4]], np.int32))
        callback.on_epoch_begin(epoch)
        left = [
            layer
            for layer in tried.layers[2:]
            if any(np.any(np.asarray(each)) for each in layer.states)
        ]
        expect(
            tried.layers[2] not in left,
            f"After on_epoch_begin of epoch {epoch} the state of the LSTM is still there: call "
            "layer.reset_state() on each layer that has one, in every epoch.",
        )
        expect(not left, "The first layer with a state is reset, and a second one is not.")
    expect(
        all(
            np.array_equal(kept, each)
            for kept, each in zip(weights, tried.trainable_variables, strict=True)
        ),
        "The weights have changed: reset the state alone.",
    )
    return "Each epoch starts at the top, with nothing remembered."
