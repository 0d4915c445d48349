"""What learners get wrong in lab 12, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "12a": [
        Mutant("-np.log2(", "-np.log(", "nats"),
        Mutant("counts = np.ones((", "counts = np.zeros((", "never came"),
        Mutant(
            "np.add.at(counts, (train[:-1], train[1:]), 1)",
            "counts[train[:-1], train[1:]] += 1",
            "once",
        ),
        Mutant("counts.sum(axis=1, keepdims=True)", "counts.sum(axis=0, keepdims=True)", "row"),
        Mutant("counts.sum(axis=1, keepdims=True)", "counts.sum()", "row"),
        Mutant("(train[:-1], train[1:])", "(train[1:], train[:-1])", "row"),
        Mutant("return -np.log2", "return np.log2", "minus"),
    ],
    "12b": [
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
    ],
    "12c": [
        Mutant("return_sequences=True, ", "", "every character"),
        Mutant(", stateful=stateful", "", "carried"),
        Mutant("stateful=stateful)", "stateful=True)", re.compile("batch|not stateful")),
        Mutant(
            "Dense(len(characters))(net)",
            'Dense(len(characters), activation="softmax")(net)',
            "softmax",
        ),
        Mutant("batch_shape=(batch, length)", "batch_shape=(BATCH, length)", "batch"),
        Mutant("layers.LSTM(UNITS", "layers.LSTM(64", "UNITS"),
    ],
    "12d": [
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
            "second",
        ),
        Mutant(
            "        for layer in self.model.layers:\n",
            "        for layer in [self.model]:\n",
            "still there",
        ),
    ],
    "12e": [
        Mutant("np.float64) / temperature", "np.float64) * temperature", "temperature"),
        Mutant("np.float64) / temperature", "np.float64)", "temperature"),
        Mutant("scaled - scaled.max()", "scaled", "overflow"),
        Mutant(
            "return rng.choice(len(shares), p=shares / shares.sum())",
            "return int(np.argmax(shares))",
            "likeliest",
        ),
        Mutant(
            "return rng.choice(len(shares), p=shares / shares.sum())",
            "return rng.choice(len(shares))",
            re.compile("evenly|often"),
        ),
        Mutant(
            "return rng.choice(len(shares), p=",
            "return np.random.default_rng(1).choice(len(shares), p=",
            "rng",
        ),
    ],
    "12f": [
        Mutant("return (count < most) & (last != end)", "return count < most", "end"),
        Mutant("return (count < most) & (last != end)", "return last != end", "most"),
        Mutant("        last = following(last)\n", "        following(last)\n", "following"),
        Mutant("    return line, count\n", "    return line[:count], count\n", "shape"),
        Mutant("    return line, count\n", "    return line\n", "pair"),
        Mutant(
            "return count + 1, last, tf.tensor",
            "return count + 1, last + 0, tf.identity(line) if True else tf.tensor",
            "following",
        ),
        Mutant("    return line, count\n", "", "return missing"),
    ],
}
