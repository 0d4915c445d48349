"""The checks of lab 13, text: the baseline, an LSTM with a state, what writes, and attention."""

from collections.abc import Callable

import keras
import numpy as np

from lab_utils.check.labs.networks import all_layers, draw_weights
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, returns, translated, with_names
from lab_utils.estimator import tf

_COUNTED = "np.add.at(counts, (train[:-1], train[1:]), 1)"
_ROW_SUM = "counts.sum(axis=1, keepdims=True)"


@todo(
    "13a",
    hints=(
        "A table [kinds, kinds], a row for each character, a column for each that follows: what does it start with?",
        "Adding 1 at many places at once counts a place once; numpy has a function that counts each time.",
        "Divide each row by its sum; look up the pairs of held; which logarithm gives bits?",
    ),
    why="1 added to each count leaves no pair impossible, which would cost infinitely many bits.",
    slips={
        ("-np.log2(", "-np.log("): "Those are nats, of the natural logarithm: bits need log2.",
        (
            "return -np.log2",
            "return np.log2",
        ): "Bits are positive: minus the logarithm of a share below 1.",
        (
            "counts = np.ones((",
            "counts = np.zeros((",
        ): "A pair that never came in train is impossible: start each count at 1.",
        (
            _COUNTED,
            "counts[train[:-1], train[1:]] += 1",
        ): "Each pair was counted once, however often it "
        "comes: counts[i, j] += 1 with arrays of places adds once to each. np.add.at adds every time.",
        (
            _ROW_SUM,
            "counts.sum(axis=0, keepdims=True)",
        ): "Those are shares of columns: a row holds what "
        "can follow one character, so divide by its sum, axis=1.",
        (
            _ROW_SUM,
            "counts.sum()",
        ): "Those are shares of all pairs: divide each row by its own sum, of "
        "what can follow one character.",
        (
            "held[:-1], held[1:]",
            "held[1:], held[:-1]",
        ): "A pair of held is taken the wrong way round: the row is the character before.",
        (
            "train[:-1], train[1:]",
            "train[1:], train[:-1]",
        ): "A pair of train is counted the wrong way round: the row is the character before.",
        (".mean()", ".sum()"): "That is the sum over the three characters: take the mean.",
        (
            ".mean()",
            ".sum() / len(held)",
        ): "The first character of held has none before it, so three of "
        "four cost bits: the mean is over three.",
    },
)
def bits(bigram_bits: Callable) -> Cases:
    """Mean -log2 of the share, with 1 added to each count."""
    train = np.array([0, 1, 0, 1, 0, 1, 2, 2])
    for held, told in (
        (
            [0, 1, 2, 2],
            "In train [0, 1, 0, 1, 0, 1, 2, 2] 1 follows 0 three times of three, so with 1 added to each of three "
            "kinds its share is 4/6 in the row of 0. Mean bits of held [0, 1, 2, 2]",
        ),
        ([2, 0], "Bits of 0 after 2, a pair that never came in train"),
    ):
        with np.errstate(divide="ignore"):
            found = bigram_bits(train, np.array(held), 3)
        yield told, found, 1e-4
    return "Pairs counted, shares by row, a mean of bits."


@todo(
    "13b",
    hints=(
        "How many whole batches are there, if each takes batch * length characters, and the last character needs "
        "one that follows it?",
        "A reshape puts a stream into each row; which two axes change places, so that a batch takes a piece of each?",
        "What follows is the same, cut out of ids one place further on.",
    ),
    why="Row k goes on in row k, so a state that is carried over belongs to its text.",
)
def streams(make_dataset: Callable) -> Cases:
    """Fixed shapes, each row going on where it ended."""
    for count in (1000, 257, 256):
        dataset = make_dataset(np.arange(count, dtype=np.int32), 4, 8)
        expect_dataset(dataset, "make_dataset")
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2
        expect(pair, f"Each element should be a pair; yours is {spec}.")
        told = f"{count} characters in batches of 4 with a length of 8"
        kinds = [(each.shape, each.dtype) for each in spec]
        yield f"{told}: both parts should be int32 [4, 8]", kinds
        batches = list(dataset.take(count).as_numpy_iterator())
        told += ": how many, if an epoch reads each character once (no repeat(), no overlap)"
        yield told, len(batches)
        expect(
            all(np.array_equal(read + 1, following) for read, following in batches),
            "The second part should hold the characters that follow those of the first: the same, one place "
            "further on in ids.",
        )
        rows = np.concatenate([read for read, _ in batches], axis=1)
        expect(
            (np.diff(rows, axis=1) == 1).all(),
            "Row k of a batch does not continue row k of the batch before, so a state that is carried on "
            "would be another place's. Each row is a stream of its own.",
        )
        expect(
            len(np.unique(rows)) == rows.size,
            "Some characters are read twice: each row is another part of the text.",
        )
    return "Streams side by side, each batch going on where the last one ended."


_LAST = "layers.Dense(len(characters))(net)"


@todo(
    "13c",
    hints=(
        "batch_shape fixes both numbers; the layers follow each other.",
        "One argument of LSTM makes it answer at every character, another keeps its state.",
        "A logit for each kind: how many, and with which activation?",
    ),
    why="The state has the batch's shape, so the batch belongs to the model.",
    slips={
        (
            "return_sequences=True, ",
            "",
        ): "The LSTM should answer at every character: return_sequences=True.",
        (", stateful=stateful", ""): "With stateful the state should be carried from call to call: "
        "stateful=stateful.",
        (
            "stateful=stateful",
            "stateful=True",
        ): "Without stateful the model is not stateful: hand the argument on.",
        (
            _LAST,
            'layers.Dense(len(characters), activation="softmax")(net)',
        ): "The outputs add up to 1: that is a softmax. The loss is of logits, so leave it out.",
        (
            _LAST,
            'layers.Dense(len(characters), activation="relu")(net)',
        ): "No logit is negative: leave out the activation on the last layer.",
        (
            "len(characters), 32",
            "len(characters), 32, mask_zero=True",
        ): "The LSTM passes over character 0, "
        "which is a character like the others here, not padding: leave out mask_zero.",
        ("batch_shape=(batch, length)", "batch_shape=(BATCH, length)"): "The batch is an argument: "
        "batch_shape=(batch, length).",
        ("layers.LSTM(UNITS", "layers.LSTM(64"): "There should be one LSTM, of UNITS = 128.",
    },
)
def model(make_model: Callable) -> Cases:
    """An answer at every character; the state carried where asked for."""
    make_model = with_names(make_model, UNITS=128)
    keeping = make_model(2, 3, True)
    returns(keeping, keras.Model, "make_model", "a keras.Model")
    told = "The output for [2, 3]: at every character a logit for each of 68 kinds"
    yield told, list(keeping.outputs[0].shape)
    told = "The weights of an embedding in 32 numbers, one LSTM of UNITS = 128, and logits"
    yield told, draw_weights(keeping)
    free = make_model(None, None, False)
    stateful = any(getattr(layer, "stateful", False) for layer in all_layers(free))
    yield "Whether a layer has a state with stateful=False", stateful
    yield f"{told}, without a batch", draw_weights(free)
    whole = np.array([[5, 0, 61, 7, 0, 33], [1, 48, 20, 0, 67, 12]], np.int32)
    yield "The logits of six characters, with weights given", free(whole), 1e-3
    yield (
        "Those in training, where nothing is drawn at random either",
        free(whole, training=True),
        1e-3,
    )
    parts = [np.asarray(keeping(part)) for part in (whole[:, :3], whole[:, 3:])]
    told = (
        "Six characters in two parts, with stateful, where the state is carried from call to call"
    )
    yield told, np.concatenate(parts, axis=1), 1e-3
    return "An answer at every character, and a state that is carried where it should be."


@todo(
    "13d",
    hints=(
        "self.model.layers lists the layers. Not all of them have a state: what does hasattr tell?",
        "A method that is only named does nothing.",
    ),
    why="A new epoch starts at the top of each stream, and the state is that of its end.",
)
def reset(FromTheTop: type) -> Cases:
    """Every stateful layer is empty when an epoch begins."""
    read = keras.Input(batch_shape=(1, 4), dtype="int32")
    net = keras.layers.Embedding(5, 3)(read)
    net = keras.layers.LSTM(3, return_sequences=True, stateful=True)(net)
    tried = keras.Model(read, keras.layers.GRU(3, stateful=True)(net))
    draw_weights(tried)
    callback = FromTheTop()
    returns(callback, keras.callbacks.Callback, "FromTheTop()", "a keras.callbacks.Callback")
    callback.set_model(tried)
    for epoch in range(3):
        tried(np.array([[1, 2, 3, 4]], np.int32))
        callback.on_epoch_begin(epoch)
        left = [
            type(layer).__name__
            for layer in tried.layers[2:]
            if any(np.any(np.asarray(state)) for state in layer.states)
        ]
        told = (
            f"After on_epoch_begin of epoch {epoch} the state is still there (layer.reset_state())"
        )
        yield told, left
    yield "The weights, which stay", [np.asarray(each) for each in tried.trainable_variables]
    return "Each epoch starts at the top, with nothing remembered."


_DRAWN = "rng.choice(len(shares), p=shares / shares.sum())"
_GIVEN_RNG = "Draw with the rng that is given: in yours the"


@todo(
    "13e",
    hints=(
        "In which order: divide, softmax, draw? exp of 800 overflows.",
        "Subtracting one number from all logits leaves their shares as they are. Which one keeps exp below 1?",
        "A numpy Generator can draw by given shares.",
    ),
    why="Shares do not change when the largest logit is subtracted, and nothing overflows.",
    slips={
        (_DRAWN, "int(np.argmax(shares))"): f"{_GIVEN_RNG} likeliest kind comes each time.",
        (
            "rng.choice",
            "np.random.default_rng(0).choice",
        ): f"{_GIVEN_RNG} same kind comes each time.",
        (
            "rng.choice",
            "np.random.default_rng(1).choice",
        ): f"{_GIVEN_RNG} same kind comes each time.",
        (
            ", p=shares / shares.sum()",
            "",
        ): "All kinds come equally often: draw by their shares, p=.",
        ("np.float64) / temperature", "np.float64) * temperature"): "The logits are divided by the "
        "temperature, not multiplied.",
        (
            "np.float64) / temperature",
            "np.float64)",
        ): "The logits should be divided by the temperature.",
        (
            "scaled - scaled.max()",
            "scaled",
        ): "exp overflows unless the largest is taken off first, after the division.",
    },
)
def sampling(sample: Callable) -> Cases:
    """Draws by softmax(logits / temperature)."""
    logits = np.array([2.0, 0.0, 1.0, -9.0], np.float32)
    one = sample(logits, 1.0, np.random.default_rng(0))
    fits = np.ndim(one) == 0 and np.issubdtype(np.asarray(one).dtype, np.integer)
    returns(one, lambda _: fits, "sample", "the number of one kind")
    generators = [np.random.default_rng(5) for _ in range(2)]
    courses = [[int(sample(logits, 3.0, rng)) for _ in range(60)] for rng in generators]
    expect(
        courses[0] == courses[1],
        "Two generators of the same seed draw different characters: draw with the rng that is given, and "
        "nothing else.",
    )
    for temperature in (1.0, 0.5, 3.0):
        rng = np.random.default_rng(7)
        drawn = [int(sample(logits, temperature, rng)) for _ in range(3000)]
        told = f"Shares of what is drawn at a temperature of {temperature:g}, softmax(logits / temperature)"
        yield told, np.bincount(drawn, minlength=4) / 3000, 0.05
    rng, many = np.random.default_rng(9), np.array([3.0] + 11 * [0.0])
    missing = set(range(12)) - {int(sample(many, 1.0, rng)) for _ in range(600)}
    yield "Kinds with a share of 3 % that are never drawn in 600 draws", sorted(missing)
    with np.errstate(all="ignore"):
        large = {int(sample(np.array([4000.0, 5000.0]), 0.5, rng)) for _ in range(40)}
    told = "Of logits of 4000 and 5000 the second comes always: take the largest off before exp"
    yield told, sorted(large)
    return "Drawn as softmax(logits / temperature) says, also of large logits."


@todo(
    "13f",
    hints=(
        "What changes from round to round? The count, the last character, the line: those are the loop's variables.",
        "Two reasons to stop: which comparison is each?",
        "A place of the line is written by tf.tensor_scatter_nd_update, with an index of shape [1, 1].",
    ),
    why="A loop may go round as often as it likes, if no tensor in it grows.",
)
def line(write_line: Callable) -> Cases:
    """A line of fixed shape, filled until the end or until it is full."""

    def run(first: tf.Tensor, most: int) -> tuple:
        return write_line(lambda character: character + 1, first, 9, most)

    for most in (20, 4):
        program = tf.function(run).get_concrete_function(tf.TensorSpec([], tf.int32), most)
        made = program.structured_outputs
        pair = isinstance(made, tuple | list) and len(made) == 2
        returns(
            made, lambda _, pair=pair: pair, "write_line", "a pair, the line and the number written"
        )
        kinds = [(each.shape, each.dtype) for each in made]
        yield f"With most of {most} the shapes and types of the line and of the number", kinds
        definition = program.graph.as_graph_def()
        inner = (node for function in definition.library.function for node in function.node_def)
        expect(
            any(node.op in ("While", "StatelessWhile") for node in (*definition.node, *inner)),
            "There is no loop in the program: a loop of Python's puts one copy of its body there for each "
            "place. tf.while_loop goes round as often as is needed.",
        )
        past = (
            f"With a line of {most} places the loop goes on past the last of them: it ends at `end` or when "
            "the line is full, whichever comes first."
        )
        with translated("", past, (tf.errors.InvalidArgumentError,)):
            text, written = (each.numpy() for each in program(tf.constant(3)))
        reason = "the end is the last" if most == 20 else "most is the limit"
        told = f"From 3, `following` counts up, with 9 the end and most of {most} ({reason}): four characters, and "
        yield told + "how many are written", (text[:4].tolist(), int(written))
    return "One shape for every line, and a loop that ends when it should."


_MASKED = "scores = tf.where(earlier, scores, -1e9)"
_WEIGHED = "return tf.matmul(tf.nn.softmax(scores), value)"
_LATE = "return tf.matmul(tf.where(earlier, tf.nn.softmax(scores), 0.0), value)"


@todo(
    "13g",
    hints=(
        "Which shape do the scores have? Row i of them belongs to place i, and column j to the place that it looks at.",
        "Hide the later places before the softmax: what score gives a share of 0?",
        "tf.linalg.band_part keeps the part of a matrix on and below its diagonal; keras.ops.tri makes one.",
    ),
    why="All places are computed in one matmul, and the mask keeps each from looking ahead.",
    slips={
        (
            _MASKED,
            "",
        ): "Each place looks at all places, also at those that come later. There it would read "
        "the answer.",
        (
            "tf.where(earlier,",
            "tf.where(tf.transpose(earlier),",
        ): "The mask lets places look ahead, and hides what they have read.",
        (
            "tf.where(earlier,",
            "tf.where(keras.ops.tri(query.shape[1], k=1, dtype='bool'),",
        ): "The mask lets each place look one place ahead.",
        (
            "tf.where(earlier,",
            "tf.where(keras.ops.tri(query.shape[1], k=-1, dtype='bool'),",
        ): "Each place sees itself too: the mask keeps the diagonal.",
        (
            " / query.shape[-1] ** 0.5",
            "",
        ): "The scores are not divided by the square root of the width.",
        (
            " / query.shape[-1] ** 0.5",
            " / query.shape[-1]",
        ): "The scores are divided by the width, not by its square root.",
        (
            f"{_MASKED}\n    {_WEIGHED}",
            _LATE,
        ): "The shares of a row do not add up to 1: set the mask before the softmax.",
        (
            "tf.nn.softmax(scores)",
            "tf.nn.softmax(scores, axis=1)",
        ): "The shares of a row do not add up to 1: the softmax goes over the last axis.",
        (
            _WEIGHED,
            "return tf.nn.softmax(scores)",
        ): "Those are the shares: weigh the values with them.",
    },
)
def causal_attention(attend: Callable) -> Cases:
    """Softmax-weighted values of the places so far, for several shapes."""
    draw = np.random.default_rng(4).standard_normal
    for shape in ((3, 5, 4), (2, 9, 16)):
        found = attend(*(tf.constant(draw(shape), tf.float32) for _ in range(3)))
        returns(found, lambda value: hasattr(value, "shape"), "attend", "a tensor")
        yield f"What each place of {list(shape)} sees of itself and of those before it", found, 1e-3
    return "Each place sees itself and those before it, in one matmul for all."
