import numpy as np
from ported import FAULTY, strategy, tf

tpus = strategy()
rng = np.random.default_rng(0)
pictures = rng.random((256, 32, 32, 3), dtype=np.float32)
classes = rng.integers(0, 5, 256).astype(np.int32)
data = tf.data.Dataset.from_tensor_slices((pictures, classes)).shuffle(256).repeat()
data = data.batch(64, drop_remainder=True)


class Centre(tf.keras.layers.Layer):
    """The middle of each picture, magnified."""

    def call(self, pictures):
        if FAULTY:
            rows = tf.range(tf.shape(pictures)[0])
            box = tf.constant([[0.25, 0.25, 0.75, 0.75]])
            boxes = tf.tile(box, [tf.shape(pictures)[0], 1])
            return tf.image.crop_and_resize(pictures, boxes, rows, [32, 32])  # <- TPU202
        return tf.image.resize(pictures[:, 8:24, 8:24], [32, 32])


with tpus.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input([32, 32, 3]),
            Centre(),
            tf.keras.layers.Conv2D(8, 3, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(5),
        ]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=2, steps_per_epoch=4)
