"""Similar pictures: a Keras network inside model_fn, features alone in nested dicts, an input for each core.

The loss contrasts two views; evaluation stays on the host's CPU; hooks only count steps.
"""

import tensorflow.compat.v1 as tf

SIZE, WIDTH = 16, 24


class Block(tf.keras.layers.Layer):
    def __init__(self, filters, **kwargs):
        super(Block, self).__init__(**kwargs)
        self.conv = tf.keras.layers.Conv2D(
            filters, 3, padding="same", use_bias=False, kernel_regularizer=tf.keras.regularizers.l2(1e-4)
        )
        self.norm = tf.keras.layers.BatchNormalization(momentum=0.9)

    def call(self, inputs, training=None):
        return tf.nn.relu(self.norm(self.conv(inputs), training=training))


class Network(tf.keras.Model):
    def __init__(self):
        super(Network, self).__init__(name="network")
        self.blocks = [Block(8, name="block_1"), Block(16, name="block_2")]
        self.pool = tf.keras.layers.MaxPooling2D()
        self.project = tf.keras.layers.Dense(WIDTH)

    def call(self, images, training=None):
        for block in self.blocks:
            images = self.pool(block(images, training=training))
        return tf.math.l2_normalize(self.project(tf.reduce_mean(images, [1, 2])), -1)


class Seconds(tf.train.SessionRunHook):
    def begin(self):
        self.calls = 0

    def after_run(self, run_context, run_values):
        self.calls += 1


def model_fn(features, labels, mode, params):
    assert labels is None
    training = mode == tf.estimator.ModeKeys.TRAIN
    network = Network()
    first = network(features["views"]["first"], training=training)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"embedding": first, "id": features["id"]})
    second = network(features["views"]["second"], training=training)
    scores = tf.matmul(first, second, transpose_b=True) / 0.1
    targets = tf.range(tf.shape(scores)[0])
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=scores)
    loss = tf.reduce_mean(each) + tf.add_n(network.losses)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(each, first, second):
            return {"contrast": tf.metrics.mean(each), "same": tf.metrics.mean(tf.reduce_sum(first * second, -1))}

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [each, first, second]), evaluation_hooks=[Seconds()]
        )
    step = tf.train.get_or_create_global_step()
    rate = tf.train.cosine_decay(params["rate"], step, params["steps"])
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True))
    with tf.control_dependencies(network.updates):
        train_op = optimizer.minimize(loss, step, network.trainable_variables)  # <- TPU201 TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[Seconds()])


def input_fn(params):
    def one(index):
        image = tf.random.stateless_uniform([SIZE + 4, SIZE + 4, 3], tf.stack([index, 1]))
        views = {name: tf.image.random_crop(image, [SIZE, SIZE, 3]) for name in ("first", "second")}  # <- TPU102
        return {"views": views, "id": tf.cast(index, tf.int32)}

    data = tf.data.Dataset.range(400)
    if params.get("shuffle", True):
        data = data.shuffle(100).repeat()
    data = data.map(one).batch(params["batch_size"], drop_remainder=True)
    return tf.data.make_one_shot_iterator(data.prefetch(1)).get_next(), None


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/keras_inside",
        session_config=tf.ConfigProto(isolate_session_state=True),
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=25,
            num_shards=8,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_SHARD_V1,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        params=dict(rate=0.05, steps=1000),
        use_tpu=True,
        train_batch_size=64,
        eval_batch_size=64,
        predict_batch_size=8,
        eval_on_tpu=False,
    )
    return estimator, input_fn


FAULTS = [
    ("TPU215", "optimizer.minimize(loss, step, network.trainable_variables)", "optimizer.minimize(loss, None, network.trainable_variables)"),
    ("TPU201", "tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True))", "tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)"),
    ("TPU102", "tf.image.random_crop(image, [SIZE, SIZE, 3])", "tf.image.random_crop(image, [SIZE, tf.random.uniform([], 8, SIZE, tf.int32), 3])"),
    ("TPU101", "data.map(one).batch(params[\"batch_size\"], drop_remainder=True)", "data.map(one).batch(params[\"batch_size\"])"),
]
