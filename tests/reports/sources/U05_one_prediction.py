from ported import FAULTY, arrays, estimator, tf


def one_row(params):
    rows = tf.data.Dataset.from_tensor_slices(arrays(1)[0])
    return rows.batch(params["batch_size"], drop_remainder=FAULTY)  # <- TPU211


for prediction in estimator().predict(one_row):
    print(prediction["class"])
