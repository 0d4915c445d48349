# A sequence tagger: HParams parsed from a flag, cells of contrib.rnn, an Estimator class of its own.
import numpy as np
import tensorflow as tf
from tensorflow.contrib import cluster_resolver as resolvers
from tensorflow.contrib import rnn
from tensorflow.contrib import tpu
from tensorflow.contrib import training as contrib_training
from tensorflow.contrib.framework import nest

tf.app.flags.DEFINE_string("hparams", "units=24,rate=0.05", "")
FLAGS = tf.app.flags.FLAGS
DEFAULTS = contrib_training.HParams(units=16, rate=0.1, layers=2, length=6, tags=4)


def build(features, hp):
    table = tf.get_variable("embedding", [50, hp.units], initializer=tf.contrib.layers.xavier_initializer())
    inputs = tf.unstack(tf.nn.embedding_lookup(table, features), axis=1)
    cell = rnn.MultiRNNCell([rnn.BasicLSTMCell(hp.units, forget_bias=1.0) for _ in range(hp.layers)])
    outputs, state = rnn.static_rnn(cell, inputs, dtype=tf.float32)
    assert len(nest.flatten(state)) == 2 * hp.layers
    return tf.contrib.layers.fully_connected(tf.stack(outputs, axis=1), hp.tags, activation_fn=None)


def tagger(features, labels, mode, params):
    hp = params["hp"]
    logits = build(features, hp)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"tags": tf.argmax(logits, -1, output_type=tf.int32)})
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    opt = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(hp.rate))
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = opt.apply_gradients(zip(gradients, variables), global_step=tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train)


def batches(params):
    words = np.random.RandomState(0).randint(0, 50, (256, DEFAULTS.length)).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices((words, words % DEFAULTS.tags))
    data = data.apply(tf.contrib.data.shuffle_and_repeat(256))
    return data.batch(params["batch_size"], drop_remainder=True)


def main(_):
    hp = DEFAULTS.parse(FLAGS.hparams)
    cfg = tpu.RunConfig(cluster=resolvers.TPUClusterResolver(tpu=["tagger"]), model_dir="runs",
                        tpu_config=tpu.TPUConfig(iterations_per_loop=20), save_checkpoints_steps=20)
    est = tpu.TPUEstimator(tagger, config=cfg, params={"hp": hp}, train_batch_size=32, predict_batch_size=32)
    est.train(batches, max_steps=100)


if __name__ == "__main__":
    tf.app.run(main)
