from ported import FAULTY, arrays, estimator, spec, tf, v1

BATCH = 262144 if FAULTY else 64


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(512).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):  # <- TPU303
    wide = tf.nn.softmax(v1.layers.dense(features, 65536))
    return spec(mode, labels, v1.layers.dense(tf.tanh(wide), 8))


estimator(model_fn, train_batch_size=BATCH).train(input_fn, max_steps=100)
