"""Speech to characters: convolutions, a two-way GRU, CTC on dense labels, batches padded to fixed lengths.

input_fn returns tensors of a one-shot iterator; features are nested dicts; some checks run in the model.
"""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

FRAMES, BINS, CHARACTERS, MOST = 32, 12, 20, 6

Flags = collections.namedtuple("Flags", "rnn_units layers learning_rate batch_size use_tpu")
FLAGS = Flags(rnn_units=16, layers=1, learning_rate=5e-3, batch_size=32, use_tpu=True)


def batch_norm(inputs, training):
    return tf.layers.batch_normalization(inputs=inputs, momentum=0.997, epsilon=1e-5, fused=True, training=training)


def conv_bn_layer(inputs, padding, filters, kernel_size, strides, layer_id, training):
    inputs = tf.pad(inputs, [[0, 0], [padding[0], padding[0]], [padding[1], padding[1]], [0, 0]])
    inputs = tf.layers.conv2d(
        inputs,
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding="valid",
        use_bias=False,
        activation=tf.nn.relu6,
        name="cnn_{}".format(layer_id),
    )
    return batch_norm(inputs, training)


def rnn_layer(inputs, lengths, units, layer_id):
    fw = tf.nn.rnn_cell.GRUCell(num_units=units, name="rnn_fw_{}".format(layer_id))
    bw = tf.nn.rnn_cell.GRUCell(num_units=units, name="rnn_bw_{}".format(layer_id))
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        cell_fw=fw, cell_bw=bw, inputs=inputs, sequence_length=lengths, dtype=tf.float32, swap_memory=True
    )
    return tf.concat(outputs, -1)


def ctc_lengths(input_length, max_time_steps, ctc_time_steps):
    ctc = tf.to_float(tf.multiply(input_length, ctc_time_steps))
    return tf.to_int32(tf.floor_div(ctc, tf.to_float(max_time_steps)))


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    audio = features["audio"]
    x = audio["spectrogram"]
    tf.debugging.assert_rank(x, 4)
    x = conv_bn_layer(x, (5, 2), 8, (11, 5), (2, 2), 1, training)
    batch, time, bins, channels = x.get_shape().as_list()
    x = tf.reshape(x, [batch, -1, bins * channels])
    lengths = ctc_lengths(tf.squeeze(audio["input_length"], 1), FRAMES, x.shape.as_list()[1])
    for i in range(FLAGS.layers):
        x = rnn_layer(x, lengths, FLAGS.rnn_units, i)
    logits = tf.layers.dense(x, CHARACTERS, use_bias=False)
    probabilities = tf.nn.softmax(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"classes": tf.argmax(logits, axis=2), "probabilities": probabilities, "logits": logits}
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)
    label_length = tf.squeeze(features["label_length"], 1)
    with tf.control_dependencies([tf.assert_less_equal(label_length, MOST)]):
        per_example = tf.nn.ctc_loss_v2(
            labels, logits, label_length, lengths, logits_time_major=False, blank_index=-1
        )
    loss = tf.reduce_mean(per_example)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(per_example, probabilities, label_length):
            best = tf.reduce_max(probabilities, -1)
            return {
                "ctc": tf.metrics.mean(per_example),
                "confidence": tf.metrics.mean(best),
                "characters": tf.metrics.mean(label_length),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [per_example, probabilities, label_length])
        )
    optimizer = tf.train.AdamOptimizer(learning_rate=FLAGS.learning_rate)
    if FLAGS.use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    global_step = tf.train.get_or_create_global_step()
    minimize_op = optimizer.minimize(loss, global_step=global_step)  # <- TPU201 TPU220
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    train_op = tf.group(minimize_op, update_ops)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def dataset_of(batch_size, repeat):
    generator = np.random.RandomState(7)
    sizes = generator.randint(12, FRAMES, 128)

    def one(index, size):
        spectrogram = tf.random.stateless_normal([size, BINS, 1], tf.stack([index, 5]))
        text = tf.random.stateless_uniform([1 + index % MOST], tf.stack([index, 6]), 0, CHARACTERS - 1, tf.int32)
        features = {
            "audio": {"spectrogram": spectrogram, "input_length": tf.reshape(size, [1])},
            "label_length": tf.reshape(tf.size(text), [1]),
        }
        return features, text

    dataset = tf.data.Dataset.from_tensor_slices((np.arange(128, dtype=np.int32), sizes.astype(np.int32)))
    if repeat:
        dataset = dataset.shuffle(128).repeat()
    dataset = dataset.map(one)
    shapes = ({"audio": {"spectrogram": [FRAMES, BINS, 1], "input_length": [1]}, "label_length": [1]}, [MOST])
    return dataset.padded_batch(batch_size, padded_shapes=shapes, drop_remainder=True)  # <- TPU101 TPU102


def input_fn_train(params):
    dataset = dataset_of(params["batch_size"], True)
    iterator = tf.data.make_one_shot_iterator(dataset)
    features, labels = iterator.get_next()
    return features, labels


def input_fn_eval(params):
    return dataset_of(params["batch_size"], False)


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/speech",
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=20,
            num_shards=8,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V1,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        use_tpu=FLAGS.use_tpu,
        train_batch_size=FLAGS.batch_size,
        eval_batch_size=FLAGS.batch_size,
        predict_batch_size=FLAGS.batch_size,
        config=config,
    )
    return estimator, input_fn_train, {"eval_input_fn": input_fn_eval}


FAULTS = [
    ("TPU220", "train_op = tf.group(minimize_op, update_ops)", "train_op = minimize_op"),
    ("TPU201", "    if FLAGS.use_tpu:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU102", "\"spectrogram\": [FRAMES, BINS, 1]", "\"spectrogram\": [None, BINS, 1]"),
    ("TPU101", "padded_shapes=shapes, drop_remainder=True)", "padded_shapes=shapes)"),
]
