from ported import FAULTY, arrays, strategy, tf

with strategy().scope():
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(8)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=FAULTY)
model.fit(*arrays(), batch_size=64, epochs=2)  # <- TPU235
