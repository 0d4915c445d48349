"""Failed in the XLA of TensorFlow 2.4; today's compiles it: with and without the loop it is right."""

import numpy as np
from ported import FAULTY, strategy, tf


class Decoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.cell, self.out = tf.keras.layers.GRUCell(16), tf.keras.layers.Dense(8)

    def call(self, words):
        state = tf.zeros([tf.shape(words)[0], 16])
        for position in tf.range(6) if FAULTY else range(6):
            _, state = self.cell(tf.one_hot(words[:, position], 8), [state])
            state = state[0] if isinstance(state, list) else state
        return self.out(state)


with strategy().scope():
    model = Decoder()
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
words = np.random.randint(0, 8, [512, 6]).astype(np.int32)
data = tf.data.Dataset.from_tensor_slices((words, words[:, 0])).batch(64, drop_remainder=True)
model.fit(data, epochs=2)
