"""Answers to lab 01: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong, edited


def fed(body: str, outside: str = "") -> str:
    """A cell with make_input_fn around that body of input_fn."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"{outside}def make_input_fn(pixels, labels, batch_size, training):\n    def input_fn():\n{inner}\n\n    return input_fn\n"


SOFTMAX = 'dense(net, 10, tf.nn.softmax, name="scores")'
RAW = 'dense(net, 10, name="scores")'
PAIRS = "dataset = tf.data.Dataset.from_tensor_slices((scaled(pixels), labels.astype(np.int32)))\n"
ANSWERS = {
    "1b": [
        Mutant(".shuffle(len(labels), seed=1).repeat()", ".shuffle(len(labels))", "never ends"),
        Mutant(".shuffle(len(labels), seed=1).repeat()", ".repeat()", "its order differs"),
        Mutant(".shuffle(len(labels), seed=1)", ".shuffle(2)", "buffer"),
        Mutant(".shuffle(len(labels), seed=1)", ".shuffle(1000)", "does not hold all of them"),
        Mutant(
            ".shuffle(len(labels), seed=1)",
            ".shuffle(len(labels), reshuffle_each_iteration=False)",
            "every epoch",
        ),
        Mutant("if training:\n            dataset = dataset", "dataset = dataset", "does not end"),
        Mutant(".batch(batch_size)", ".batch(64)", "batch_size"),
        Mutant("scaled(image)", "tf.cast(image, tf.float32)", "scaled"),
        Mutant("labels.astype(np.int32)", "labels", "int32"),
        Mutant(
            "dataset = dataset.shuffle(len(labels), seed=1).repeat()",
            "pair = [dataset.map(lambda *each, n=n: each[n]).shuffle(50, seed=n) for n in (0, 1)]\n"
            "            dataset = tf.data.Dataset.zip(tuple(pair)).repeat()",
            "own labels",
        ),
        Mutant("    return input_fn\n", "    return input_fn()\n", "function"),
        Mutant(
            ".shuffle(len(labels), seed=1).repeat()",
            ".repeat().shuffle(len(labels), seed=1)",
            "among the first 200 of training, where each epoch has every example once",
        ),
        Mutant(
            "if training:\n",
            "dataset = dataset.shuffle(len(labels), seed=1)\n        if training:\n",
            "keeps the order",
        ),
        Mutant(
            "(pixels, labels.astype",
            "(train_pixels, train_labels.astype",
            "the parameters `pixels` and `labels`?",
        ),
        Right(
            fed("""
            images = tf.data.Dataset.from_tensor_slices(pixels).map(scaled)
            classes = tf.data.Dataset.from_tensor_slices(labels).map(lambda label: tf.cast(label, tf.int32))
            pairs = tf.data.Dataset.zip((images, classes))
            if not training:
                return pairs.batch(batch_size)
            return pairs.shuffle(buffer_size=2000, reshuffle_each_iteration=True).repeat().batch(batch_size)
        """)
        ),
        Right(
            fed(
                """
            dataset = tf.data.Dataset.from_tensor_slices((pixels, labels))
            if training:
                dataset = dataset.shuffle(len(pixels)).repeat(None)
            dataset = dataset.batch(batch_size, drop_remainder=training)
            return dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        """,
                "def prepare(images, labels):\n    return scaled(images), tf.cast(labels, tf.int32)\n\n\n",
            )
        ),
        Right("""
            def make_input_fn(pixels, labels, batch_size, training):
                pictures, classes = (np.asarray(pixels) / 16).astype("float32"), np.int32(labels)
                epochs = lambda data: data.shuffle(len(classes)).repeat() if training else data
                return lambda: epochs(tf.data.Dataset.from_tensor_slices((pictures, classes))).batch(batch_size)
        """),
        Right("""
            class Reader:
                def __init__(self, pixels, labels, batch_size, training):
                    self.arrays, self.batch_size, self.training = (pixels, labels), batch_size, training

                def __call__(self):
                    data = tf.data.Dataset.from_tensor_slices(self.arrays)
                    data = data.map(lambda x, y: (scaled(x), tf.cast(y, "int32"))).cache()
                    if self.training:
                        data = data.shuffle(1500).repeat()
                    return data.batch(batch_size=self.batch_size)


            make_input_fn = Reader
        """),
        Wrong(
            fed(
                PAIRS
                + "dataset = dataset.batch(batch_size)\nreturn dataset.shuffle(100).repeat() if training else dataset"
            ),
            "before batch",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(len(labels)).repeat(10)\nreturn dataset.batch(batch_size)"
            ),
            "never ends",
        ),
        Wrong(
            fed(
                PAIRS
                + "dataset = dataset.shuffle(len(labels)).repeat()\nreturn dataset.batch(batch_size)"
            ),
            "does not end",
        ),
        Wrong(
            fed(
                PAIRS
                + "if not training:\n    dataset = dataset.shuffle(len(labels)).repeat()\nreturn dataset.batch(batch_size)"
            ),
            re.compile("does not end|belongs to training"),
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices((pixels / 255.0, labels.astype(np.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.map(lambda x, y: (tf.cast(x, tf.float32), y)).batch(batch_size)
        """),
            "scaled",
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices((scaled(scaled(pixels)), labels.astype(np.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.batch(batch_size)
        """),
            "scaled",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(len(labels)).repeat()\nfollowing = v1.data.make_one_shot_iterator(dataset.batch(batch_size))\nreturn following.get_next()"
            ),
            "dataset",
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices(({"image": scaled(pixels)}, labels.astype(np.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.batch(batch_size)
        """),
            "pair",
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices((scaled(pixels), tf.one_hot(labels, 10, dtype=tf.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.batch(batch_size)
        """),
            "labels [B]",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(len(labels)).repeat()\nreturn dataset"
            ),
            "batch",
        ),
        Wrong(
            fed("""
            images = tf.data.Dataset.from_tensor_slices(scaled(pixels))
            classes = tf.data.Dataset.from_tensor_slices(labels.astype(np.int32))
            if training:
                images, classes = images.shuffle(500), classes.shuffle(500)
            dataset = tf.data.Dataset.zip((images, classes)).batch(batch_size)
            return dataset.repeat() if training else dataset
        """),
            "own labels",
        ),
        Wrong(
            """
            def make_input_fn(pixels, labels, batch_size, training):
                dataset = tf.data.Dataset.from_tensor_slices((scaled(pixels), labels.astype(np.int32)))
                if training:
                    dataset = dataset.shuffle(len(labels)).repeat()
                dataset = dataset.batch(batch_size)

                def input_fn():
                    return dataset

                return input_fn
        """,
            "inside input_fn",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(4).repeat()\nreturn dataset.batch(batch_size)"
            ),
            "buffer",
        ),
    ],
    "1a": [
        Wrong(edited("plateau", ("AdamOptimizer(0.01)", "AdamOptimizer(0.001)")), "In training"),
        Wrong(
            edited("plateau", ("AdamOptimizer(0.01)", "AdamOptimizer(0.001)")),
            re.compile(
                r"^You changed line 40\.\n.*\nThe fault is not at .*\nYou changed `optimizer", re.S
            ),
        ),
        Wrong(
            edited("plateau", (SOFTMAX, 'dense(net, 9, name="scores")')),
            "training raises InvalidArgumentError: Received a label value of 9",
        ),
        Wrong(
            edited("plateau", (SOFTMAX, RAW), ("tf.nn.softmax(scores)", "scores")),
            "the prediction probabilities is not what the same weights",
        ),
        Wrong(edited("plateau", (SOFTMAX, RAW[:-1])), "cannot be examined"),
        Wrong(
            edited("plateau", (SOFTMAX, "dense(net, 10)")),
            "scores/bias, scores/kernel became dense/bias",
        ),
        Wrong(edited("plateau", (SOFTMAX, RAW), (".shuffle(512)", "")), "shuffle"),
        Wrong(edited("plateau", (SOFTMAX, RAW), (".shuffle(512)", ".shuffle(8)")), "shuffle"),
        Wrong('plateau_reason = "C"', "The program is fixed. The reason is not C"),
        Wrong('plateau_reason = "Z"', "one of the letters A to F, not 'Z'"),
        Right('plateau_reason = " d "'),
        Right(
            edited(
                "plateau",
                (
                    f"    return tf.layers.{SOFTMAX}",
                    "    # logits\n    scores = tf.layers.dense(inputs=net, units=10, name='scores')\n    return scores",
                ),
            )
        ),
    ],
}
