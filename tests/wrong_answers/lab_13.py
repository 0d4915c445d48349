"""What learners get wrong in lab 13, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_12A = r"""
def bigram_bits(train, held, kinds):
    counts = np.ones((kinds, kinds))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(np.mean(-np.log2(shares[held[:-1], held[1:]])))
"""

_12B = r"""
def make_dataset(ids, batch, length):
    each = (len(ids) - 1) // batch // length * length
    read = ids[:each * batch].reshape(batch, each)
    follow = ids[1:each * batch + 1].reshape(batch, each)
    read = read.reshape(batch, -1, length).swapaxes(0, 1)
    follow = follow.reshape(batch, -1, length).swapaxes(0, 1)
    return tf.data.Dataset.from_tensor_slices((read, follow))
"""

_12C = r"""
def make_model(batch, length, stateful):
    return keras.Sequential([
        keras.Input(batch_shape=(batch, length), dtype="int32"),
        layers.Embedding(len(characters), 32),
        layers.LSTM(UNITS, return_sequences=True, stateful=stateful),
        layers.Dense(len(characters)),
    ])
"""

_12D = r"""
class FromTheTop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        for layer in self.model.layers:
            if hasattr(layer, "reset_state"):
                layer.reset_state()
"""

_12E = r"""
def sample(logits, temperature, rng):
    scaled = np.asarray(logits, np.float64) / temperature
    shares = np.exp(scaled - scaled.max())
    return int(rng.choice(len(shares), p=shares / shares.sum()))
"""

_12F = r"""
def write_line(following, first, end, most):
    def more(n, last, line):
        return tf.logical_and(n < most, tf.not_equal(last, end))
    def write(n, last, line):
        last = following(last)
        return n + 1, last, tf.tensor_scatter_nd_update(line, [[n]], [last])
    n, _, line = tf.while_loop(more, write, (tf.constant(0), first, tf.zeros([most], tf.int32)))
    return line, n
"""

ANSWERS = {
    "13a": [
        # The one that the wrong ones below are made from
        Right(_12A),
        # Loops and Counter
        Right(r"""
import collections, math
def bigram_bits(train, held, kinds):
    pairs = collections.Counter(zip(train.tolist(), train.tolist()[1:]))
    firsts = collections.Counter(train.tolist()[:-1])
    def cost(a, b):
        return -math.log2((pairs[a, b] + 1) / (firsts[a] + kinds))
    costs = [cost(a, b) for a, b in zip(held[:-1].tolist(), held[1:].tolist())]
    return sum(costs) / len(costs)
"""),
        # Bincount, nats to bits
        Right(r"""
def bigram_bits(train, held, kinds):
    train, held = np.asarray(train, np.int64), np.asarray(held, np.int64)
    counts = np.bincount(train[:-1] * kinds + train[1:], minlength=kinds**2).reshape(kinds, kinds) + 1
    log = np.log(counts) - np.log(counts.sum(1))[:, None]
    return -log[held[:-1], held[1:]].mean() / np.log(2)
"""),
        # TensorFlow
        Right(r"""
def bigram_bits(train, held, kinds):
    pairs = tf.stack([train[:-1], train[1:]], axis=1)
    counts = tf.tensor_scatter_nd_add(tf.ones([kinds, kinds], tf.float64), pairs, tf.ones(len(train) - 1, tf.float64))
    shares = counts / tf.reduce_sum(counts, 1, keepdims=True)
    found = tf.gather_nd(shares, tf.stack([held[:-1], held[1:]], axis=1))
    return float(tf.reduce_mean(-tf.math.log(found)) / np.log(2.0))
"""),
        # Nats
        Wrong(
            _12A.replace("np.log2", "np.log"),
            "bits need log2",
        ),
        # Repeated pairs count once
        Wrong(
            _12A.replace(
                "np.add.at(counts, (train[:-1], train[1:]), 1)",
                "counts[train[:-1], train[1:]] += 1",
            ),
            "with arrays of places adds once to each. np.add.at adds",
        ),
        # No 1 added
        Wrong(
            _12A.replace("np.ones", "np.zeros"),
            "A pair that never came in train is impossible: start each",
        ),
        # 1 over
        Wrong(
            _12A.replace("np.ones((kinds, kinds))", "np.full((kinds, kinds), 1e-9)"),
            "added to each of three kinds its share is",
        ),
        # Columns
        Wrong(
            _12A.replace("axis=1, keepdims=True", "axis=0, keepdims=True"),
            "Those are shares of columns: a row holds what can follow",
        ),
        # Joint
        Wrong(
            _12A.replace("counts.sum(axis=1, keepdims=True)", "counts.sum()"),
            "Those are shares of all pairs: divide each row by its own",
        ),
        # The following one as the given one
        Wrong(
            _12A.replace("shares[held[:-1], held[1:]]", "shares[held[1:], held[:-1]]"),
            "A pair of held is taken the wrong way round: the row is",
        ),
        # Counted backwards
        Wrong(
            _12A.replace("(train[:-1], train[1:])", "(train[1:], train[:-1])"),
            "added to each of three kinds its share is",
        ),
        # Counts the held-out too
        Wrong(
            _12A.replace(
                "    shares =", "    np.add.at(counts, (held[:-1], held[1:]), 1)\n    shares ="
            ),
            "added to each of three kinds its share is",
        ),
        # The sum
        Wrong(
            _12A.replace("np.mean(", "np.sum("),
            "That is the sum over the three characters: take the mean",
        ),
    ],
    "13b": [
        # Windows that overlap
        Wrong(
            """
def make_dataset(ids, batch, length):
    per = (len(ids) - 1) // batch
    x = ids[: per * batch].reshape(batch, per)
    y = ids[1 : per * batch + 1].reshape(batch, per)
    starts = range(0, per - length + 1, 1)
    return tf.data.Dataset.from_tensor_slices((np.stack([x[:, i:i+length] for i in starts]), np.stack([y[:, i:i+length] for i in starts])))
""",
            "(no repeat(), no overlap): expected 31",
        ),
        Mutant(
            "reshape(batch, steps, length).swapaxes(0, 1)",
            "reshape(steps, batch, length)",
            "continue",
        ),
        Mutant("(windows(0), windows(1))", "(windows(0), windows(0))", "follow"),
        Mutant("(windows(0), windows(1))", "(windows(1), windows(0))", "follow"),
        Mutant(
            "reshape(batch, steps, length).swapaxes(0, 1)",
            "reshape(batch, steps, length)",
            re.compile(r"\[4, 8\]"),
        ),
        Mutant("windows(1)))\n", "windows(1))).shuffle(9, seed=1)\n", "continue"),
        Mutant("(len(ids) - 1) // (batch", "(len(ids) - 1) // (2 * batch", "batches"),
        # The one that the wrong ones below are made from
        Right(_12B),
        # A generator of slices with from_tensor_slices of a list
        Right(r"""
def make_dataset(ids, batch, length):
    count = (len(ids) - 1) // (batch * length)
    stream = count * length
    starts = np.arange(batch)[:, None] * stream
    index = [starts + n * length + np.arange(length) for n in range(count)]
    return tf.data.Dataset.from_tensor_slices((np.stack([ids[i] for i in index]), np.stack([ids[i + 1] for i in index])))
"""),
        # Tf.data on columns
        Right(r"""
def make_dataset(ids, batch, length):
    n = (len(ids) - 1) // (batch * length) * length
    x, y = (np.reshape(part[:batch * n], [batch, n]).T for part in (ids[:-1], ids[1:]))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(length, drop_remainder=True)
    def turned(a, b):
        return tf.ensure_shape(tf.transpose(a), [batch, length]), tf.ensure_shape(tf.transpose(b), [batch, length])
    return data.map(turned)
"""),
        # Streams of all characters, overlap by one
        Right(r"""
def make_dataset(ids, batch, length):
    ids = np.asarray(ids)
    size = (len(ids) - 1) // batch
    count = size // length
    def window(n):
        columns = np.stack([ids[k * count * length + n * length: k * count * length + (n + 1) * length + 1] for k in range(batch)])
        return columns[:, :-1], columns[:, 1:]
    windows = [window(n) for n in range(count)]
    return tf.data.Dataset.from_tensor_slices(tuple(np.stack(part) for part in zip(*windows)))
"""),
        # Shapes that TensorFlow does not know
        Wrong(
            _12B.replace(
                "(read, follow))",
                "(read, follow)).map(lambda a, b: tuple(tf.py_function(lambda *x: x, [a, b], [tf.int32] * 2)))",
            ),
            "both parts should be int32 [4, 8]",
        ),
        # Consecutive windows in one batch
        Wrong(
            r"""
def make_dataset(ids, batch, length):
    n = (len(ids) - 1) // length
    x, y = ids[:n * length].reshape(n, length), ids[1:n * length + 1].reshape(n, length)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True)
""",
            "Row k of a batch does not continue row k of the batch",
        ),
        # Shuffled
        Wrong(
            _12B.replace("(read, follow))", "(read, follow)).shuffle(100)"),
            "Row k of a batch does not continue row k of the batch",
        ),
        # Repeated
        Wrong(
            _12B.replace("(read, follow))", "(read, follow)).repeat()"),
            "(no repeat(), no overlap): expected 31",
        ),
        # Not shifted
        Wrong(
            _12B.replace("ids[1:each * batch + 1]", "ids[:each * batch]"),
            "The second part should hold the characters that follow",
        ),
        # Shifted the wrong way
        Wrong(
            _12B.replace(
                "ids[1:each * batch + 1].reshape", "np.roll(ids[:each * batch], 1).reshape"
            ),
            "The second part should hold the characters that follow",
        ),
        # Shifted within the window: rolled
        Wrong(
            _12B.replace(
                "ids[1:each * batch + 1].reshape", "np.roll(ids[:each * batch], -1).reshape"
            ),
            "The second part should hold the characters that follow",
        ),
        # Shifted by two
        Wrong(
            _12B.replace(
                "ids[1:each * batch + 1]", "np.append(ids, 0)[2:each * batch + 2].astype(np.int32)"
            ),
            "The second part should hold the characters that follow",
        ),
        # Axes swapped
        Wrong(
            _12B.replace(
                "return tf.data.Dataset.from_tensor_slices((read, follow))",
                "return tf.data.Dataset.from_tensor_slices((read.swapaxes(1, 2), follow.swapaxes(1, 2)))",
            ),
            "both parts should be",
        ),
        # No swapaxes
        Wrong(
            _12B.replace(
                "read.reshape(batch, -1, length).swapaxes(0, 1)", "read.reshape(-1, batch, length)"
            ).replace(
                "follow.reshape(batch, -1, length).swapaxes(0, 1)",
                "follow.reshape(-1, batch, length)",
            ),
            "Row k of a batch does not continue row k of the batch",
        ),
        # Every batch overlaps the last by half
        Wrong(
            r"""
def make_dataset(ids, batch, length):
    each = (len(ids) - 1) // batch
    starts = range(0, each - length, length // 2)
    rows = [np.stack([ids[k * each + s:k * each + s + length + 1] for k in range(batch)]) for s in starts]
    rows = np.stack(rows)
    return tf.data.Dataset.from_tensor_slices((rows[..., :-1], rows[..., 1:]))
""",
            "(no repeat(), no overlap): expected 31",
        ),
    ],
    "13c": [
        # Character 0 taken for padding
        Wrong(
            """
def make_model(batch, length, stateful):
    return keras.Sequential([
        keras.Input(batch_shape=(batch, length)),
        layers.Embedding(len(characters), 32, mask_zero=True),
        layers.LSTM(UNITS, return_sequences=True, stateful=stateful),
        layers.Dense(len(characters)),
    ])
""",
            "passes over character 0",
        ),
        # The one that the wrong ones below are made from
        Right(_12C),
        # Functional
        Right(r"""
def make_model(batch, length, stateful):
    read = keras.Input(batch_shape=(batch, length), dtype="int32")
    net = layers.Embedding(input_dim=len(characters), output_dim=32)(read)
    net = layers.LSTM(units=UNITS, stateful=stateful, return_sequences=True)(net)
    return keras.Model(inputs=read, outputs=layers.Dense(units=len(characters), activation="linear")(net))
"""),
        # TimeDistributed, RNN of a cell
        Right(r"""
def make_model(batch, length, stateful):
    kinds = len(characters)
    ids = keras.Input((length,), batch_size=batch, dtype="int32")
    net = layers.Embedding(kinds, 32)(ids)
    net = layers.RNN(layers.LSTMCell(UNITS), return_sequences=True, stateful=stateful)(net)
    return keras.Model(ids, layers.TimeDistributed(layers.Dense(kinds))(net))
"""),
        # Add, helper
        Right(r"""
def _layers(stateful):
    yield layers.Embedding(len(characters), 32)
    yield layers.LSTM(128, return_sequences=True, stateful=stateful)
    yield layers.Dense(len(characters), activation=None)
def make_model(batch, length, stateful):
    model = keras.Sequential()
    model.add(keras.Input(batch_shape=[batch, length], dtype=tf.int32))
    for layer in _layers(stateful):
        model.add(layer)
    return model
"""),
        # Last character alone
        Wrong(
            _12C.replace("return_sequences=True, ", ""), "The LSTM should answer at every character"
        ),
        # Never stateful
        Wrong(
            _12C.replace("stateful=stateful", "stateful=False"),
            "With stateful the state should be carried from call to call",
        ),
        # Always stateful
        Wrong(
            _12C.replace("stateful=stateful", "stateful=True"),
            "Your code raised ValueError: When using `stateful=True` in",
        ),
        # Softmax
        Wrong(
            _12C.replace(
                "layers.Dense(len(characters))",
                'layers.Dense(len(characters), activation="softmax")',
            ),
            "that is a softmax. The loss is of logits, so leave it out",
        ),
        # Embedding of 64
        Wrong(
            _12C.replace(
                "layers.Embedding(len(characters), 32)", "layers.Embedding(len(characters), 64)"
            ),
            "The weights of an embedding in 32 numbers",
        ),
        # Embedding too small
        Wrong(
            _12C.replace("layers.Embedding(len(characters), 32)", "layers.Embedding(32, 32)"),
            "The weights of an embedding in 32 numbers",
        ),
        # UNITS logits
        Wrong(
            _12C.replace("layers.Dense(len(characters))", "layers.Dense(UNITS)"),
            "a logit for each of 68 kinds",
        ),
        # GRU
        Wrong(_12C.replace("layers.LSTM", "layers.GRU"), "one LSTM of UNITS = 128"),
        # Two LSTMs
        Wrong(
            _12C.replace(
                "        layers.Dense",
                "        layers.LSTM(UNITS, return_sequences=True, stateful=stateful),\n        layers.Dense",
            ),
            "one LSTM of UNITS = 128",
        ),
        # Bidirectional
        Wrong(
            _12C.replace(
                "layers.LSTM(UNITS, return_sequences=True, stateful=stateful)",
                "layers.Bidirectional(layers.LSTM(UNITS // 2, return_sequences=True, stateful=stateful))",
            ),
            "one LSTM of UNITS = 128",
        ),
    ],
    "13d": [
        Mutant(
            "                layer.reset_state()\n",
            "                layer.reset_state\n",
            "still there",
        ),
        Mutant(
            "for layer in self.model.layers:\n            if has",
            "for layer in self.model.layers[:2]:\n            if has",
            "still there",
        ),
        Mutant(
            "in self.model.layers:\n            if has",
            "in self.model.layers[:3]:\n            if has",
            "expected [], yours gives ['GRU']",
        ),
        Mutant(
            "        for layer in self.model.layers:\n",
            "        for layer in [self.model]:\n",
            "still there",
        ),
        # The one that the wrong ones below are made from
        Right(_12D),
        # Getattr with a default
        Right(r"""
class FromTheTop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        nothing = lambda: None
        for each in self.model.layers:
            getattr(each, "reset_state", nothing)()
"""),
        # Comprehension
        Right(r"""
class FromTheTop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        stateful = [layer for layer in self.model.layers if callable(getattr(layer, "reset_state", None))]
        list(map(lambda layer: layer.reset_state(), stateful))
"""),
        # Try
        Right(r"""
class FromTheTop(keras.callbacks.Callback):
    def _reset(self, layer):
        try:
            reset = layer.reset_state
        except AttributeError:
            return
        reset()
    def on_epoch_begin(self, epoch, logs=None):
        for layer in self.model.layers:
            self._reset(layer)
"""),
        # Epoch end
        Wrong(
            r"""
class FromTheTop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        for layer in self.model.layers:
            if hasattr(layer, "reset_state"):
                layer.reset_state()
""",
            "epoch 0 the state is still there (layer.reset_state())",
        ),
        # Train begin
        Wrong(
            r"""
class FromTheTop(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        for layer in self.model.layers:
            if hasattr(layer, "reset_state"):
                layer.reset_state()
""",
            "epoch 0 the state is still there (layer.reset_state())",
        ),
        # Every batch
        Wrong(
            r"""
class FromTheTop(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        for layer in self.model.layers:
            if hasattr(layer, "reset_state"):
                layer.reset_state()
""",
            "epoch 0 the state is still there (layer.reset_state())",
        ),
        # Every layer
        Wrong(
            _12D.replace(
                '            if hasattr(layer, "reset_state"):\n                layer.reset_state()',
                "            layer.reset_state()",
            ),
            "Your code raised AttributeError",
        ),
        # Not called
        Wrong(
            _12D.replace("layer.reset_state()", "layer.reset_state"),
            "epoch 0 the state is still there (layer.reset_state())",
        ),
        # The first epoch only
        Wrong(
            _12D.replace("if hasattr", "if epoch == 0 and hasattr"),
            "epoch 1 the state is still there (layer.reset_state())",
        ),
        # Not the first epoch
        Wrong(
            _12D.replace("if hasattr", "if epoch and hasattr"),
            "epoch 0 the state is still there (layer.reset_state())",
        ),
        # Every second epoch
        Wrong(
            _12D.replace("if hasattr", "if epoch % 2 == 0 and hasattr"),
            "epoch 1 the state is still there (layer.reset_state())",
        ),
        # Layer 1 alone
        Wrong(
            r"""
class FromTheTop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.model.layers[1].reset_state()
""",
            "Your code raised AttributeError",
        ),
        # The first that has one
        Wrong(
            _12D.replace(
                "                layer.reset_state()",
                "                layer.reset_state()\n                break",
            ),
            "expected [], yours gives ['GRU']",
        ),
    ],
    "13e": [
        # The one that the wrong ones below are made from
        Right(_12E),
        # Gumbel
        Right(r"""
def sample(logits, temperature, rng):
    return int(np.argmax(np.asarray(logits) / temperature + rng.gumbel(size=len(logits))))
"""),
        # Cumulative sum
        Right(r"""
def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)
def sample(logits, temperature, rng):
    edges = np.cumsum(softmax(np.array(logits, dtype="float64") / temperature))
    return int(min(np.searchsorted(edges, rng.random()), len(edges) - 1))
"""),
        # Multinomial, logsumexp
        Right(r"""
def sample(logits, temperature, rng):
    z = np.asarray(logits, float) / float(temperature)
    log_total = np.logaddexp.reduce(z)
    return int(rng.multinomial(1, np.exp(z - log_total)).argmax())
"""),
        # Tf.nn.softmax
        Right(r"""
def sample(logits, temperature, rng):
    p = tf.nn.softmax(tf.cast(logits, tf.float64) / temperature).numpy()
    return rng.choice(p.size, p=p / p.sum())
"""),
        # Overflow
        Wrong(
            _12E.replace("scaled - scaled.max()", "scaled"),
            "exp overflows unless the largest is taken off first",
        ),
        # Times the temperature
        Wrong(
            _12E.replace("/ temperature", "* temperature"),
            "The logits are divided by the temperature, not multiplied",
        ),
        # No temperature
        Wrong(
            _12E.replace(" / temperature", ""), "The logits should be divided by the temperature"
        ),
        # Temperature after the softmax
        Wrong(
            r"""
def sample(logits, temperature, rng):
    logits = np.asarray(logits, np.float64)
    shares = np.exp(logits - logits.max())
    shares = shares / shares.sum() / temperature
    return int(rng.choice(len(shares), p=shares / shares.sum()))
""",
            "The logits should be divided by the temperature",
        ),
        # The likeliest
        Wrong(
            _12E.replace(
                "int(rng.choice(len(shares), p=shares / shares.sum()))", "int(shares.argmax())"
            ),
            "the likeliest kind comes each time",
        ),
        # Numpy's global generator
        Wrong(
            _12E.replace("rng.choice", "np.random.choice"),
            "Two generators of the same seed draw different characters",
        ),
        # A new generator
        Wrong(
            _12E.replace("rng.choice", "np.random.default_rng(0).choice"),
            "the same kind comes each time",
        ),
        # All alike
        Wrong(_12E.replace(", p=shares / shares.sum()", ""), "All kinds come equally often"),
        # Clipped logits
        Wrong(
            _12E.replace("scaled - scaled.max()", "np.clip(scaled, -50, 50)"),
            "take the largest off before exp",
        ),
        # A character, not its number
        Wrong(
            _12E.replace(
                "int(rng.choice(len(shares), p=shares / shares.sum()))",
                "characters[int(rng.choice(len(shares), p=shares / shares.sum()))]",
            ),
            "sample should return the number of one kind; yours returns",
        ),
    ],
    "13f": [
        # A function of its own, with AutoGraph's while
        Right(
            """
def write_line(following, first, end, most):
    @tf.function
    def go(first):
        line = tf.fill([most], end)
        n = tf.constant(0)
        last = first
        while n < most and last != end:
            last = following(last)
            line = tf.tensor_scatter_nd_update(line, [[n]], [last])
            n += 1
        return line, n
    return go(first)
""",
        ),
        Mutant("return (count < most) & (last != end)", "return count < most", "end"),
        Mutant(
            "return (count < most) & (last != end)", "return last != end", "goes on past the last"
        ),
        Mutant("        last = following(last)\n", "        following(last)\n", "following"),
        Mutant("    return line, count\n", "    return line[:count], count\n", "shape"),
        Mutant("    return line, count\n", "    return line\n", "pair"),
        Mutant(
            "return count + 1, last, tf.tensor",
            "return count + 1, last + 0, tf.identity(line) if True else tf.tensor",
            "following",
        ),
        Mutant("    return line, count\n", "", "return missing"),
        # The one that the wrong ones below are made from
        Right(_12F),
        # TensorArray
        Right(r"""
def write_line(following, first, end, most):
    array = tf.TensorArray(tf.int32, size=most, element_shape=[])
    def cond(n, last, _):
        return (n < most) & (last != end)
    def body(n, last, array):
        new = following(last)
        return n + 1, new, array.write(n, new)
    n, _, array = tf.while_loop(cond, body, [0, first, array])
    return array.stack(), n
"""),
        # Maximum_iterations, one_hot blend
        Right(r"""
def write_line(following, first, end, most):
    places = tf.range(most)
    def body(count, last, line):
        new = following(last)
        return count + 1, new, tf.where(places == count, new, line)
    count, _, line = tf.while_loop(lambda count, last, line: tf.not_equal(last, end), body,
        loop_vars=(tf.zeros([], tf.int32), first, tf.fill([most], end)), maximum_iterations=most)
    return line, count
"""),
        # A done flag
        Right(r"""
def write_line(following, first, end, most):
    def step(state):
        n, last, line, _ = state
        new = following(last)
        return [(n + 1, new, tf.tensor_scatter_nd_update(line, tf.reshape(n, [1, 1]), tf.reshape(new, [1])), tf.equal(new, end))]
    start = (tf.constant(0), first, tf.zeros(most, tf.int32), tf.constant(False))
    (written, _, line, _), = tf.while_loop(lambda s: ~s[3] & (s[0] < most), step, [start])
    return line, written
"""),
        # Grows
        Wrong(
            r"""
def write_line(following, first, end, most):
    def more(line):
        return tf.logical_and(tf.shape(line)[0] < most + 1, tf.not_equal(line[-1], end))
    (line,) = tf.while_loop(more, lambda line: (tf.concat([line, following(line[-1])[None]], 0),), (first[None],), shape_invariants=(tf.TensorShape([None]),))
    return line[1:], tf.shape(line)[0] - 1
""",
            "the shapes and types of the line",
        ),
        # End is not counted
        Wrong(
            _12F.replace("return line, n", "return line, tf.maximum(n - 1, 0)"),
            "the end and most of",
        ),
        # Never ends before it is full
        Wrong(
            _12F.replace("tf.logical_and(n < most, tf.not_equal(last, end))", "n < most"),
            "the end and most of",
        ),
        # Overruns
        Wrong(
            _12F.replace(
                "tf.logical_and(n < most, tf.not_equal(last, end))", "tf.not_equal(last, end)"
            ),
            "places the loop goes on past the last of them: it ends at",
        ),
        # One place short
        Wrong(_12F.replace("n < most", "n < most - 1"), "the end and most of"),
        # First is in the line
        Wrong(
            r"""
def write_line(following, first, end, most):
    def more(n, last, line):
        return tf.logical_and(n < most, tf.not_equal(last, end))
    def write(n, last, line):
        return n + 1, following(last), tf.tensor_scatter_nd_update(line, [[n]], [last])
    n, _, line = tf.while_loop(more, write, (tf.constant(0), first, tf.zeros([most], tf.int32)))
    return line, n
""",
            "`following` counts up, with 9 the end",
        ),
        # Python loop over values
        Wrong(
            r"""
def write_line(following, first, end, most):
    line, last = [], first
    while len(line) < most:
        last = following(last)
        line.append(int(last))
        if int(last) == int(end):
            break
    return tf.constant(line + [0] * (most - len(line))), tf.constant(len(line))
""",
            "Your code raised NotImplementedError: See https",
        ),
        # Unrolled: Python for
        Wrong(
            r"""
def write_line(following, first, end, most):
    last, line, alive, count = first, [], tf.constant(True), tf.constant(0)
    for _ in range(most):
        last = following(last)
        line.append(last)
        count += tf.cast(alive, tf.int32)
        alive = alive & (last != end)
    return tf.stack(line), count
""",
            "There is no loop in the program: a loop of Python's puts",
        ),
        # The same character again
        Wrong(
            _12F.replace("last = following(last)", "last = following(first)"),
            "`following` counts up, with 9 the end",
        ),
        # Backwards
        Wrong(
            _12F.replace("return line, n", "return line[::-1], n"),
            "`following` counts up, with 9 the end",
        ),
    ],
    "13g": [
        # Keras's own operations
        Right(
            r"""
def attend(query, key, value):
    length, width = query.shape[1:]
    scores = keras.ops.einsum("bqd,bkd->bqk", query, key) / np.sqrt(width).astype("float32")
    hidden = keras.ops.triu(keras.ops.ones((length, length)), k=1)
    return keras.ops.softmax(scores - 1e9 * hidden, axis=-1) @ value
"""
        ),
        # band_part, and the mask within tf.where the other way round
        Right(
            r"""
def attend(query, key, value):
    query = query * query.shape[-1] ** -0.5
    later = tf.linalg.band_part(tf.ones([query.shape[1]] * 2), -1, 0) == 0
    scores = tf.where(later, float("-inf"), query @ tf.transpose(key, [0, 2, 1]))
    return tf.einsum("bqk,bkd->bqd", tf.nn.softmax(scores, axis=2), value)
"""
        ),
        # Keras's layer
        Right(
            r"""
def attend(query, key, value):
    scaled = query / float(query.shape[-1]) ** 0.5
    return layers.Attention()([scaled, value, key], use_causal_mask=True)
"""
        ),
        Mutant(
            "tf.where(earlier, scores, -1e9)",
            "scores + 0 * tf.cast(earlier, tf.float32)",
            "at those that come later",
        ),
        Mutant(
            "tf.where(earlier, scores, -1e9)\n    return tf.matmul(tf.nn.softmax(scores), value)",
            "tf.nn.softmax(scores)\n    return tf.matmul(tf.where(earlier, scores, 0.0), value)",
            "do not add up to 1",
        ),
    ],
}
