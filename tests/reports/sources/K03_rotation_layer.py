import numpy as np
from ported import FAULTY, strategy, tf

pictures = np.random.rand(128, 16, 16, 3).astype(np.float32)
labels = np.random.randint(0, 4, 128)
rotate = tf.keras.layers.RandomRotation(0.2)
with strategy().scope():
    layers = [tf.keras.layers.Input([16, 16, 3])]
    if FAULTY:
        layers.append(tf.keras.layers.RandomRotation(0.2))  # <- TPU202
    layers += [tf.keras.layers.Flatten(), tf.keras.layers.Dense(4)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices((pictures, labels)).batch(64, drop_remainder=True)
if not FAULTY:
    data = data.map(lambda x, y: (rotate(x, training=True), y))
model.fit(data, epochs=2)
