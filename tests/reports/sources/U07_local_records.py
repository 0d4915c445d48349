import tempfile

import numpy as np
from ported import FAULTY, arrays, strategy, tf

tpus = strategy("grpc://10.0.0.2:8470")
path = tempfile.mkdtemp() + "/rows.tfrecord"
with tf.io.TFRecordWriter(path) as writer:
    for row in arrays()[0]:
        writer.write(row.tobytes())


def parse(record):
    row = tf.reshape(tf.io.decode_raw(record, tf.float32), [8])
    return row, tf.argmax(row, output_type=tf.int32)


if FAULTY:
    data = tf.data.TFRecordDataset(path).map(parse)
else:
    read = list(tf.compat.v1.io.tf_record_iterator(path))
    rows = np.stack([np.frombuffer(record, np.float32) for record in read])
    data = tf.data.Dataset.from_tensor_slices((rows, rows.argmax(1).astype(np.int32)))
data = data.shuffle(512).batch(64, drop_remainder=True)
with tpus.scope():
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(8)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=2)  # <- TPU237
