import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

devices = keras.distribution.list_devices()
mesh = keras.distribution.DeviceMesh((1, len(devices)), ["batch", "model"], devices)
layout = keras.distribution.LayoutMap(mesh)
layout["attention/query/kernel"] = (None, "model", None)
if os.environ.get("FAULTY"):
    layout["attention/(key|value)/kernel"] = (None, "model", None)
keras.distribution.set_distribution(
    keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")
)
tokens = keras.Input((16,), dtype="int32")
hidden = keras.layers.Embedding(100, 64)(tokens)
attention = keras.layers.GroupQueryAttention(8, 8, 1, name="attention")
hidden = attention(hidden, hidden)  # <- TPU343
model = keras.Model(tokens, keras.layers.Dense(100)(hidden))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
words = np.random.randint(0, 100, (256, 16))
model.fit(words, words, batch_size=32, epochs=2)
