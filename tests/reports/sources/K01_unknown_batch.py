import numpy as np
from ported import FAULTY, strategy, tf

pictures = np.random.rand(200, 16, 16, 3).astype(np.float32)
labels = np.random.randint(0, 4, 200)
with strategy().scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(8, 3, dilation_rate=2, padding="same", input_shape=[16, 16, 3]),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(4),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
data = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(200)
data = data.batch(64) if FAULTY else data.batch(64, drop_remainder=True)
model.fit(data, epochs=2)  # <- TPU232
