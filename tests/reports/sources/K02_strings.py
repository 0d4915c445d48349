from ported import FAULTY, arrays, strategy, tf

names = tf.constant(["a", "b", "c", "d", "e", "f", "g", "h"])


def pack(row, label):
    features = {"row": row}
    if FAULTY:
        features["name"] = tf.gather(names, label)  # <- TPU119
    return features, label


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.out = tf.keras.layers.Dense(8)

    def call(self, inputs):
        return self.out(inputs["row"])


with strategy().scope():
    model = Net()
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices(arrays()).map(pack).batch(64, drop_remainder=True)
model.fit(data, epochs=2)
