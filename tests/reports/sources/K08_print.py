from ported import FAULTY, arrays, strategy, tf


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.out = tf.keras.layers.Dense(8)

    def call(self, rows):
        logits = self.out(rows)
        if FAULTY:
            tf.print("mean", tf.reduce_mean(logits))  # <- TPU205
        return logits


with strategy().scope():
    model = Net()
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices(arrays()).batch(64, drop_remainder=True)
model.fit(data, epochs=2)
