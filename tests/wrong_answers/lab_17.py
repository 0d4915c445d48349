"""What learners get wrong in lab 17, the capstone, and the words that they must hear."""

import re

from lab_utils.check.clinic.ward import ward
from wrong_answers import Mutant, Right, Wrong


def _whole(*changes: tuple[str, str]) -> str:
    """A cell: the healthy program as a whole with some changes, as from an editor."""
    text = ward("questions").healthy
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return f"questions_treatment = {text!r}"


def _untreated(line: int) -> str:
    """A cell: the solution's treatment without its change at one line."""
    return f"questions_treatment = {{k: v for k, v in questions_treatment.items() if k != {line}}}"


_TWIN_CLASS = """
    class Twin(keras.Model):
        def __init__(self):
            super().__init__()
            self.words = keras.layers.Embedding(64, 16, name="words")
            self.query, self.value, self.last = (
                keras.layers.Dense(16, name=name) for name in ("query", "value", "out"))
            self.key = keras.layers.Dense(16, use_bias=False, name="key")
            self.inner = keras.layers.Dense(64, "relu", name="inner")
            self.outer = keras.layers.Dense(16, name="outer")
            self.classifier = keras.layers.Dense(4, name="classifier")

        def call(self, ids):
            real = tf.not_equal(ids, 0)
            x = self.words(ids) + POSITIONS
            scores = tf.matmul(self.query(x), self.key(x), transpose_b=True) * 16 ** -0.5
            scores = tf.where(real[:, None, :], scores, -1e9)
            x = x + self.last(tf.matmul(tf.nn.softmax(scores), self.value(x)))
            x = x + self.outer(self.inner(x))
            w = tf.cast(real, tf.float32)
            return self.classifier(tf.einsum("bsh,bs->bh", x, w) / tf.reduce_sum(w, 1)[:, None])

    def keras_twin():
        model = Twin()
        model.compile(keras.optimizers.SGD(0.02, 0.9),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model
"""

_TWIN_ATTENTION = """
    def keras_twin():
        dense = keras.layers.Dense
        ids = keras.layers.Input((12,), dtype="int32")
        real = ids != 0
        x = keras.layers.Embedding(64, 16, name="words")(ids) + POSITIONS
        query, key = dense(16, name="query")(x), dense(16, use_bias=False, name="key")(x)
        value = dense(16, name="value")(x)
        seen = keras.layers.Attention()([query / 4, value, key], mask=[None, real])
        x += dense(16, name="out")(seen)
        x += dense(16, name="outer")(dense(64, "relu", name="inner")(x))
        pooled = keras.layers.GlobalAveragePooling1D()(x, mask=real)
        model = keras.Model(ids, dense(4, name="classifier")(pooled))
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.optimizer.learning_rate, model.optimizer.momentum = 0.02, 0.9
        return model
"""

_TWIN_CHANGED = """
    _solved = keras_twin

    def keras_twin():
        model = _solved()
        model.compile({})
        return model
"""

ANSWERS = {
    "17a": [
        Wrong("questions_treatment = {}", "TPU101"),
        Wrong(_untreated(41), "TPU119"),
        Wrong(_untreated(65), "TPU208"),
        Wrong(_untreated(74), "TPU223"),
        Wrong(_untreated(84), "TPU201"),
        Wrong(_untreated(87), "TPU215"),
        Wrong(
            _whole(("labels, predictions, weights=is_real_example", "labels, predictions")),
            "eval_accuracy is",
        ),
        Wrong(_whole((" + position_table()", "")), "the loss is"),
        Wrong(
            _whole(('params["dropout"] if is_training else 0.0', "0.0")),
            "was dropout or noise taken out?",
        ),
        Wrong("questions_treatment = {65: 'probabilities = ('}", "cannot be examined"),
        Wrong("questions_treatment = [65]", "A treatment is a dict"),
        Right(
            _whole(
                (
                    "d.shuffle(buffer_size=count).repeat()",
                    "d.repeat().shuffle(buffer_size=2 * count)",
                )
            )
        ),
        Right(
            _whole(
                ("global_step = tf.train.get_or_create_global_step()", "tvars = None"),
                ("    tvars = tf.trainable_variables()\n", ""),
                (
                    "global_step=global_step)",
                    "global_step=tf.train.get_or_create_global_step())",
                ),
            )
        ),
        Right(
            _whole(
                (
                    "        probabilities = tf.nn.dropout(probabilities, rate=rate)",
                    "        probabilities = tf.layers.dropout(probabilities, rate, training=True)",
                )
            )
        ),
    ],
    "17b": [
        Mutant("/ 4.0", "/ 16.0", re.compile("outputs differ|update of")),
        Mutant(" + POSITIONS", "", "outputs"),
        Mutant("* -10000.0", "* 0.0", "outputs differ"),
        Mutant("momentum=0.9", "momentum=0.0", "4. short run  DIFFERS"),
        Mutant("use_bias=False, ", "", "Keras alone has key/bias"),
        Wrong(
            _TWIN_CHANGED.format(
                "keras.optimizers.SGD(0.02, 0.9), keras.losses.SparseCategoricalCrossentropy()"
            ),
            "the loss is",
        ),
        Wrong(
            _TWIN_CHANGED.format(
                "keras.optimizers.SGD(0.01, 0.9),"
                " keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
            ),
            "3. one step   DIFFERS",
        ),
        Wrong(
            "_made = keras_twin\n\n\ndef keras_twin():\n    return keras.Model.from_config(_made().get_config())",
            "Your model is not compiled.",
        ),
        Wrong(
            "def keras_twin():\n    return 3",
            "should return a compiled Keras model",
        ),
        Right(_TWIN_CLASS),
        Right(_TWIN_ATTENTION),
        Right(
            _TWIN_CHANGED.format(
                "keras.optimizers.SGD(learning_rate=2e-2, momentum=0.9), jit_compile=False,"
                " loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
            )
        ),
    ],
}
