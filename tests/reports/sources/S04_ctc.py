import numpy as np
from ported import FAULTY, strategy, tf

tpus = strategy()
STEPS, LETTERS, LENGTH = 32, 12, 6
rng = np.random.default_rng(0)
lines = rng.random((256, STEPS, 16), dtype=np.float32)
words = rng.integers(1, LETTERS, (256, LENGTH)).astype(np.int32)
data = tf.data.Dataset.from_tensor_slices((lines, words)).shuffle(256).repeat()
data = data.batch(64, drop_remainder=True)


def ctc(words, logits):
    rows = tf.shape(words)[0]
    if FAULTY:
        size = tf.ones([rows, 1], tf.int32)
        letters, sizes = tf.nn.softmax(logits), (STEPS * size, LENGTH * size)
        return tf.keras.backend.ctc_batch_cost(words, letters, *sizes)  # <- TPU202
    return tf.nn.ctc_loss(
        words,
        logits,
        label_length=tf.fill([rows], LENGTH),
        logit_length=tf.fill([rows], STEPS),
        logits_time_major=False,
        blank_index=0,
    )


with tpus.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input([STEPS, 16]),
            tf.keras.layers.Conv1D(32, 3, padding="same", activation="relu"),
            tf.keras.layers.Dense(LETTERS + 1),
        ]
    )
    model.compile("sgd", ctc)
model.fit(data, epochs=2, steps_per_epoch=4)
