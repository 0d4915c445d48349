"""Sound by dilated convolutions; the recordings lie in a bucket that this machine cannot read."""

import tensorflow.compat.v1 as tf

SAMPLES, CHANNELS, QUANTIZATION = 64, 8, 32
DATA = "gs://recordings-of-nobody/train-*.tfrecord"


def mu_law_encode(audio, quantization_channels):
    mu = tf.cast(quantization_channels - 1, tf.float32)
    magnitude = tf.log1p(mu * tf.minimum(tf.abs(audio), 1.0)) / tf.log1p(mu)
    return tf.cast((tf.sign(audio) * magnitude + 1) / 2 * mu + 0.5, tf.int32)


def wavenet(inputs, is_training):
    x = tf.layers.conv1d(tf.one_hot(inputs, QUANTIZATION), CHANNELS, 1)
    skips = []
    for dilation in (1, 2, 4):
        padded = tf.pad(x, [[0, 0], [dilation, 0], [0, 0]])
        gate = tf.layers.conv1d(padded, CHANNELS, 2, dilation_rate=dilation, activation=tf.sigmoid)
        signal = tf.layers.conv1d(padded, CHANNELS, 2, dilation_rate=dilation, activation=tf.tanh)
        z = signal * gate
        skips.append(tf.layers.conv1d(z, CHANNELS, 1))
        x = x + tf.layers.conv1d(z, CHANNELS, 1)
    return tf.layers.conv1d(tf.nn.relu(tf.add_n(skips)), QUANTIZATION, 1)


def model_fn(features, labels, mode, params):
    encoded = mu_law_encode(features["audio"], QUANTIZATION)
    logits = wavenet(encoded[:, :-1], mode == tf.estimator.ModeKeys.TRAIN)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=encoded[:, 1:], logits=logits)
    mask = tf.sequence_mask(features["length"] - 1, SAMPLES - 1, dtype=tf.float32)
    loss = tf.losses.compute_weighted_loss(losses, mask)
    global_step = tf.train.get_global_step()
    optimizer = tf.train.AdamOptimizer(params["learning_rate"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    gradients = optimizer.compute_gradients(loss)
    clipped = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in gradients if g is not None]
    train_op = optimizer.apply_gradients(clipped, global_step)  # <- TPU201 TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def input_fn(params):
    batch_size = params["batch_size"]
    spec = {
        "audio": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        "speaker": tf.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        example = tf.parse_single_example(record, spec)  # <- TPU102
        audio = example["audio"][:SAMPLES]
        length = tf.shape(audio)[0]
        audio = tf.pad(audio, [[0, SAMPLES - length]])
        audio.set_shape([SAMPLES])
        return {"audio": audio, "length": length}

    files = tf.data.Dataset.list_files(DATA, shuffle=True).repeat()
    dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=8)
    dataset = dataset.map(parse, num_parallel_calls=8).shuffle(1000)
    return dataset.batch(batch_size, drop_remainder=True).prefetch(2)


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="gs://recordings-of-nobody/model",
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        params={"learning_rate": 1e-3},
        use_tpu=True,
        train_batch_size=64,
        eval_batch_size=64,
        predict_batch_size=64,
    )
    return estimator, input_fn


FAULTS = [
    ("TPU201", "    if params[\"use_tpu\"]:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU102", "        audio = tf.pad(audio, [[0, SAMPLES - length]])\n        audio.set_shape([SAMPLES])\n", ""),
    ("TPU101", "dataset.batch(batch_size, drop_remainder=True).prefetch(2)", "dataset.batch(batch_size).prefetch(2)"),
    ("TPU215", "optimizer.apply_gradients(clipped, global_step)", "optimizer.apply_gradients(clipped)"),
    ("TPU202", "        z = signal * gate\n", "        z = tf.squeeze(tf.nn.dilation2d((signal * gate)[:, None], tf.ones([1, 1, CHANNELS]), [1] * 4, [1] * 4, \"SAME\"), 1)\n"),
]
