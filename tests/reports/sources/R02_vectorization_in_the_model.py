import numpy as np
from ported import FAULTY, strategy, tf

texts = tf.constant(["a fine day", "rain again", "so so", "what a day"] * 64)
labels = np.array([0, 1, 2, 3] * 64)
vectorize = tf.keras.layers.TextVectorization(max_tokens=32, output_sequence_length=4)
vectorize.adapt(texts)
with strategy().scope():
    layers = [tf.keras.Input([], dtype=tf.string), vectorize] if FAULTY else [tf.keras.Input([4])]
    layers += [
        tf.keras.layers.Embedding(32, 4),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(4),
    ]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(64, drop_remainder=True)
if not FAULTY:
    data = data.map(lambda text, label: (vectorize(text), label))
model.fit(data, epochs=2)  # <- TPU119
