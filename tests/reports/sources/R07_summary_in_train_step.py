from ported import FAULTY, arrays, strategy, tf

writer = (
    tf.summary.create_noop_writer()
    if not FAULTY
    else tf.summary.create_file_writer("/tmp/none-of-ours")
)


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.out = tf.keras.layers.Dense(8)

    def call(self, rows):
        logits = self.out(rows)
        if FAULTY:
            with writer.as_default(step=0):
                tf.summary.scalar("mean", tf.reduce_mean(logits))  # <- TPU202
        return logits


with strategy().scope():
    model = Net()
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices(arrays()).batch(64, drop_remainder=True)
model.fit(data, epochs=2)
