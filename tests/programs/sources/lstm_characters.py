"""A character LSTM: dynamic_rnn over fixed windows, teacher forcing, sampling on the device in prediction."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

SEQ_LEN, EMBEDDING, CELL, VOCAB = 20, 12, 16, 128
BATCH_SIZE = 64


def lstm_cell(size, keep_prob=1.0):
    cell = tf.nn.rnn_cell.LSTMCell(size, forget_bias=1.0, state_is_tuple=True)
    return tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=keep_prob)


def rnn_model(source, training, batch_size):
    with tf.variable_scope("rnn", initializer=tf.random_uniform_initializer(-0.05, 0.05)):
        embedding = tf.get_variable("embedding", [VOCAB, EMBEDDING])
        inputs = tf.nn.embedding_lookup(embedding, source)
        cells = [lstm_cell(CELL, 0.9 if training else 1.0) for _ in range(2)]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells)
        state = cell.zero_state(batch_size, tf.float32)
        outputs, state = tf.nn.dynamic_rnn(cell, inputs, initial_state=state, dtype=tf.float32)  # <- TPU223
        logits = tf.layers.dense(tf.reshape(outputs, [-1, CELL]), VOCAB, name="project")
    return tf.reshape(logits, [batch_size, SEQ_LEN, VOCAB])


def model_fn(features, labels, mode, params):
    source, target = features["source"], features["target"]
    training = mode == tf.estimator.ModeKeys.TRAIN
    logits = rnn_model(source, training, params["batch_size"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"next": tf.argmax(logits[:, -1], -1)})
    weights = tf.ones([params["batch_size"], SEQ_LEN])
    crossent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
    loss = tf.reduce_sum(crossent * weights) / tf.reduce_sum(weights)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(source, crossent, target, logits):
            del source
            return {
                "perplexity": tf.metrics.mean(tf.exp(tf.reduce_mean(crossent, axis=1))),
                "accuracy": tf.metrics.accuracy(target, tf.argmax(logits, axis=2)),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [source, crossent, target, logits])
        )
    optimizer = tf.train.GradientDescentOptimizer(
        tf.train.exponential_decay(1.0, tf.train.get_global_step(), 100, 0.98)
    )
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tvars), 5.0)
    train_op = optimizer.apply_gradients(zip(grads, tvars), tf.train.get_or_create_global_step())  # <- TPU201
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def transform(txt):
    return np.asarray([ord(c) for c in txt if ord(c) < 128], dtype=np.int32)


def input_fn_of(path, training):
    def input_fn(params):
        batch_size = params["batch_size"]
        with open(path) as f:
            ids = transform(f.read())
        source = tf.constant(ids, dtype=tf.int32)
        ds = tf.data.Dataset.from_tensor_slices(source)
        ds = ds.batch(SEQ_LEN + 1, drop_remainder=True)

        def split_input_target(chunk):
            return {"source": chunk[:-1], "target": chunk[1:]}

        ds = ds.map(split_input_target)
        if training:
            ds = ds.shuffle(buffer_size=10000).repeat()
        return ds.batch(batch_size, drop_remainder=True)  # <- TPU218

    return input_fn


def main(data_dir):
    path = os.path.join(data_dir, "shakespeare.txt")
    with open(path, "w") as f:
        f.write("To be, or not to be, that is the question: " * 128)
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/lstm",
        save_checkpoints_steps=500,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=500, num_shards=8),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        train_batch_size=BATCH_SIZE,
        eval_batch_size=BATCH_SIZE,
        predict_batch_size=BATCH_SIZE,
        params={"seq_len": SEQ_LEN},
    )
    return (
        estimator,
        input_fn_of(path, True),
        {"eval_input_fn": input_fn_of(path, False), "predict_input_fn": input_fn_of(path, False)},
    )


FAULTS = [
    ("TPU201", "    optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU218", "shuffle(buffer_size=10000).repeat()", "shuffle(buffer_size=10000)"),
    ("TPU119", "return {\"source\": chunk[:-1], \"target\": chunk[1:]}", "return {\"source\": chunk[:-1], \"target\": chunk[1:], \"text\": tf.strings.unicode_encode(chunk, \"UTF-8\")}"),
    ("TPU118", "\"accuracy\": tf.metrics.accuracy(target, tf.argmax(logits, axis=2)),", "\"accuracy\": tf.metrics.accuracy(target, tf.argmax(logits, axis=2), weights),"),
    ("TPU223", "0.9 if training else 1.0", "0.9"),
]
