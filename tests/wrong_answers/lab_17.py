"""What learners get wrong in lab 17, the capstone, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong, rewritten

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
        Mutant("batch_size, drop_remainder=True)", "batch_size)", "TPU101"),
        Mutant(
            "tf.nn.softmax(scores)",
            "tf.cast(tf.nn.softmax(tf.cast(scores, tf.float64)), tf.float32)",
            "TPU208",
        ),
        Mutant("if is_training else 0.0", "", "TPU223"),
        Mutant(
            "        optimizer = tf.tpu.CrossShardOptimizer(optimizer)", "        pass", "TPU201"
        ),
        Mutant(", global_step=global_step", "", "TPU215"),
        Mutant('params["learning_rate"], params', "0.2, params", "moves the weights 10 times"),
        Mutant(
            'tf.train.MomentumOptimizer(params["learning_rate"], params["momentum"])',
            'tf.train.GradientDescentOptimizer(params["learning_rate"])',
            "No weights are updated by Momentum any more",
        ),
        Mutant(
            "        predict_batch_size=64,\n",
            "",
            "predict_batch_size of TPUEstimator was set, and is not any more",
        ),
        Mutant(
            "        tf_random_seed=1,\n",
            "",
            "tf_random_seed of RunConfig was set, and is not any more",
        ),
        Wrong(
            rewritten(
                "questions", ("labels, predictions, weights=is_real_example", "labels, predictions")
            ),
            "eval_accuracy is",
        ),
        Wrong(rewritten("questions", (" + position_table()", "")), "the loss is"),
        Wrong(
            rewritten("questions", ('params["dropout"] if is_training else 0.0', "0.0")),
            "was dropout or noise taken out?",
        ),
        Mutant("probabilities = tf.nn.softmax(scores)", "probabilities = (", "cannot be examined"),
        Wrong(
            rewritten(
                "questions",
                (
                    "d.shuffle(buffer_size=count).repeat()",
                    "d.repeat().shuffle(buffer_size=2 * count)",
                ),
            ),
            "where repeat stands above shuffle",
        ),
        Right(
            rewritten(
                "questions",
                ("global_step = tf.train.get_or_create_global_step()", "tvars = None"),
                ("    tvars = tf.trainable_variables()\n", ""),
                (
                    "global_step=global_step)",
                    "global_step=tf.train.get_or_create_global_step())",
                ),
            )
        ),
        Right(
            rewritten(
                "questions",
                (
                    "        probabilities = tf.nn.dropout(probabilities, rate=rate)",
                    "        probabilities = tf.layers.dropout(probabilities, rate, training=True)",
                ),
            )
        ),
    ],
    "17b": [
        Mutant("/ 4.0", "/ 16.0", re.compile("outputs differ|update of")),
        Mutant(" + POSITIONS", "", "outputs"),
        Mutant("* -10000.0", "* 0.0", "outputs differ"),
        Mutant("momentum=0.9", "momentum=0.0", "4. short run  DIFFERS"),
        Mutant("use_bias=False, ", "", "only Keras has key/bias"),
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
