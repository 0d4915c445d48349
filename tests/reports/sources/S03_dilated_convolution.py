import numpy as np
from ported import FAULTY, strategy, tf

tpus = strategy()
rng = np.random.default_rng(0)
sounds = rng.random((500, 64, 4), dtype=np.float32)
data = tf.data.Dataset.from_tensor_slices((sounds, sounds[:, 0, :1])).shuffle(500)
data = data.batch(64, drop_remainder=not FAULTY)

with tpus.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input([64, 4]),
            tf.keras.layers.Conv1D(8, 3, dilation_rate=2, padding="same", activation="relu"),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
model.fit(data, epochs=2)  # <- TPU232
