import tempfile
from pathlib import Path

from ported import FAULTY, estimator, model_fn, tf

folder = tempfile.mkdtemp()
row = tf.train.Feature(float_list=tf.train.FloatList(value=[0.5] * 8))
label = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
example = tf.train.Example(features=tf.train.Features(feature={"row": row, "label": label}))
with tf.io.TFRecordWriter(str(Path(folder, "a.tfrecord"))) as writer:
    for _ in range(128):
        writer.write(example.SerializeToString())


def parse(record):
    kinds = {
        "row": tf.io.FixedLenFeature([8], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    parsed = tf.io.parse_single_example(record, kinds)
    return parsed["row"], tf.cast(parsed["label"], tf.int32)


def input_fn(params):
    files = tf.io.gfile.glob(f"{folder}/*.{'tfrecords' if FAULTY else 'tfrecord'}")
    names = tf.data.Dataset.from_tensor_slices(tf.constant(files))
    records = names.interleave(tf.data.TFRecordDataset)  # <- TPU199
    data = records.map(parse).shuffle(100).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)


estimator(model_fn).train(input_fn, max_steps=100)
