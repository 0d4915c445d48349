from ported import FAULTY, strategy, tf

words = tf.ragged.constant([[1, 2], [3], [4, 5, 6], [7]] * 64)
labels = tf.constant([0, 1, 2, 3] * 64)
if not FAULTY:
    words = words.to_tensor(shape=[None, 4])
with strategy().scope():
    inputs = tf.keras.Input([None], ragged=FAULTY)
    mean = tf.reduce_mean(tf.keras.layers.Embedding(8, 4)(inputs), 1)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(4)(mean))
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices((words, labels)).batch(64, drop_remainder=True)
model.fit(data, epochs=2)  # <- TPU128
