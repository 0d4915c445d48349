"""A searched image classifier: cells with dropped paths, an auxiliary head, pictures fed transposed, average weights.

Evaluation restores the averages in a scaffold_fn; a hook counts epochs; the loop trains and evaluates in turns.
"""

import math

import tensorflow.compat.v1 as tf
from absl import flags

FLAGS = flags.FlagValues()
flags.DEFINE_integer("train_batch_size", 64, "", flag_values=FLAGS)
flags.DEFINE_integer("num_classes", 10, "", flag_values=FLAGS)
flags.DEFINE_bool("transpose_enabled", True, "", flag_values=FLAGS)
flags.DEFINE_float("moving_average_decay", 0.9999, "", flag_values=FLAGS)
flags.DEFINE_float("drop_connect_keep_prob", 0.7, "", flag_values=FLAGS)
flags.DEFINE_integer("num_epochs", 4, "", flag_values=FLAGS)
FLAGS(["cell_search"])

SIZE, IMAGES = 32, 512


class HParams(object):
    def __init__(self, **given):
        self.__dict__.update(given)

    def values(self):
        return dict(self.__dict__)

    def set_hparam(self, name, value):
        setattr(self, name, value)


def drop_path(net, keep_prob, is_training, step, total):
    if not is_training or keep_prob >= 1.0:
        return net
    keep_prob = 1.0 - tf.minimum(1.0, tf.cast(step + 1, tf.float32) / total) * (1.0 - keep_prob)
    batch_size = tf.shape(net)[0]
    random_tensor = keep_prob + tf.random_uniform([batch_size, 1, 1, 1], dtype=tf.float32)
    binary = tf.cast(tf.floor(random_tensor), net.dtype)
    return net * tf.cast(tf.reciprocal(keep_prob), net.dtype) * binary


def separable(net, filters, strides, training, name):
    net = tf.nn.relu(net)
    net = tf.layers.separable_conv2d(net, filters, 3, strides, "same", use_bias=False, name=name)
    return tf.layers.batch_normalization(net, momentum=0.99, training=training, name=name + "_bn")


def cell(net, previous, filters, strides, training, step, params, name):
    with tf.variable_scope(name):
        left = separable(net, filters, strides, training, "left")
        left = drop_path(left, FLAGS.drop_connect_keep_prob, training, step, params["total_steps"])
        right = tf.layers.max_pooling2d(net, 3, strides, "same")
        if previous.shape[1] != right.shape[1]:
            previous = tf.nn.avg_pool(previous, [1, 1, 1, 1], [1, 2, 2, 1], "VALID")
        previous = separable(previous, filters, 1, training, "previous")
        return tf.concat([left, right, previous], 3), net


def network(images, params, training, step):
    aux = None
    net = tf.layers.conv2d(images, 8, 3, padding="same", use_bias=False, name="stem")
    previous = net
    for i, strides in enumerate((1, 2, 1, 2)):
        net, previous = cell(net, previous, 8 * strides, strides, training, step, params, "cell_%d" % i)
        if i == 2 and training:
            with tf.variable_scope("aux"):
                pooled = tf.layers.average_pooling2d(tf.nn.relu(net), 5, 3, "valid")
                aux = tf.layers.dense(tf.layers.flatten(pooled), params["num_classes"])
    net = tf.reduce_mean(tf.nn.relu(net), [1, 2])
    net = tf.layers.dropout(net, 0.5, training=training)
    return tf.layers.dense(net, params["num_classes"], name="final"), aux


class Model(object):
    def model_fn(self, features, labels, mode, params):
        training = mode == tf.estimator.ModeKeys.TRAIN
        images = features
        if mode == tf.estimator.ModeKeys.PREDICT:
            images = features["image"]
        elif params["transpose_enabled"]:
            images = tf.transpose(images, [3, 0, 1, 2])
        images = tf.cast(images, tf.float32) / 255.0
        step = tf.train.get_or_create_global_step()
        logits, aux = network(images, params, training, step)
        predictions = {"classes": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode,
                predictions=predictions,
                export_outputs={"classify": tf.estimator.export.PredictOutput(predictions)},
                scaffold_fn=self._restore_averages,
            )
        one_hot = tf.one_hot(labels, params["num_classes"])
        loss = tf.losses.softmax_cross_entropy(one_hot, logits, label_smoothing=0.1)
        if aux is not None:
            loss += tf.losses.softmax_cross_entropy(one_hot, aux, weights=0.4, label_smoothing=0.1)
        loss = tf.losses.get_total_loss(add_regularization_losses=True)
        train_op, host_call = None, None
        if training:
            current_epoch = tf.cast(step, tf.float32) / params["steps_per_epoch"]
            rate = 0.016 * params["train_batch_size"] / 256.0 * tf.pow(0.97, tf.floor(current_epoch / 2.4))
            rate = tf.maximum(rate, 1e-4, name="learning_rate")
            optimizer = tf.train.RMSPropOptimizer(rate, 0.9, momentum=0.9, epsilon=1.0)
            if params["use_tpu"]:
                optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            grads_and_vars = optimizer.compute_gradients(loss)
            gradients, variables = zip(*grads_and_vars)
            gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
            train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)  # <- TPU201
            with tf.control_dependencies([train_op] + updates):
                averages = tf.train.ExponentialMovingAverage(params["moving_average_decay"], step)
                train_op = averages.apply(tf.trainable_variables() + tf.moving_average_variables())
        eval_metrics = None
        if mode == tf.estimator.ModeKeys.EVAL:
            eval_metrics = (self._metrics, [labels, logits])
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode=mode,
            loss=loss,
            train_op=train_op,
            host_call=host_call,
            eval_metrics=eval_metrics,
            scaffold_fn=None if training else self._restore_averages,
        )

    def _restore_averages(self):  # <- TPU117
        averages = tf.train.ExponentialMovingAverage(FLAGS.moving_average_decay)
        restored = averages.variables_to_restore(tf.trainable_variables() + tf.moving_average_variables())
        return tf.train.Scaffold(saver=tf.train.Saver(restored))

    @staticmethod
    def _metrics(labels, logits):
        in_top_5 = tf.cast(tf.nn.in_top_k(logits, labels, 5), tf.float32)
        return {
            "top_1_accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1)),
            "top_5_accuracy": tf.metrics.mean(in_top_5),
        }


class InputPipeline(object):
    def __init__(self, is_training, num_cores=8):
        self.is_training, self.num_cores = is_training, num_cores

    def set_shapes(self, batch_size, images, labels):
        if FLAGS.transpose_enabled:
            images.set_shape(images.get_shape().merge_with(tf.TensorShape([None, None, None, batch_size])))
            images = tf.reshape(images, [SIZE, SIZE, 3, batch_size])
        labels.set_shape(labels.get_shape().merge_with(tf.TensorShape([batch_size])))
        return images, labels

    def dataset_parser(self, index):
        image = tf.random.stateless_uniform([SIZE, SIZE, 3], tf.stack([index, 2]), 0, 256, tf.int32)
        image = tf.cast(image, tf.uint8)
        if self.is_training:
            image = tf.image.random_flip_left_right(image)
        return tf.cast(image, tf.float32), tf.cast(index % FLAGS.num_classes, tf.int32)

    def input_fn(self, params):
        batch_size = params["batch_size"]
        dataset = tf.data.Dataset.range(IMAGES)
        if self.is_training:
            dataset = dataset.apply(tf.data.experimental.shuffle_and_repeat(IMAGES))
        dataset = dataset.map(self.dataset_parser, num_parallel_calls=16).prefetch(batch_size)
        dataset = dataset.batch(batch_size, drop_remainder=True)  # <- TPU102
        if FLAGS.transpose_enabled:
            dataset = dataset.map(lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels))
        dataset = dataset.map(lambda images, labels: self.set_shapes(batch_size, images, labels))
        return dataset.prefetch(32)


def image_serving_input_fn():
    image_bytes = tf.placeholder(shape=[None], dtype=tf.string)
    images = tf.map_fn(
        lambda each: tf.reshape(tf.cast(tf.image.decode_jpeg(each, 3), tf.float32), [SIZE, SIZE, 3]),
        image_bytes,
        back_prop=False,
        dtype=tf.float32,
    )
    return tf.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": image_bytes})


def main(data_dir):
    hparams = HParams(num_classes=FLAGS.num_classes, transpose_enabled=FLAGS.transpose_enabled)
    hparams.set_hparam("train_batch_size", FLAGS.train_batch_size)
    hparams.set_hparam("use_tpu", True)
    hparams.set_hparam("moving_average_decay", FLAGS.moving_average_decay)
    steps = math.ceil(IMAGES / FLAGS.train_batch_size)
    hparams.set_hparam("steps_per_epoch", steps)
    hparams.set_hparam("total_steps", steps * FLAGS.num_epochs)
    run_config = tf.estimator.tpu.RunConfig(
        cluster=None,
        model_dir="/tmp/cell_search",
        save_checkpoints_steps=8,
        keep_checkpoint_max=None,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=8,
            num_shards=8,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=Model().model_fn,
        use_tpu=True,
        config=run_config,
        params=hparams.values(),
        train_batch_size=FLAGS.train_batch_size,
        eval_batch_size=FLAGS.train_batch_size,
        predict_batch_size=FLAGS.train_batch_size,
    )
    return (
        estimator,
        InputPipeline(True).input_fn,
        {
            "eval_input_fn": InputPipeline(False).input_fn,
            "serving_input_receiver_fn": image_serving_input_fn,
        },
    )


FAULTS = [
    ("TPU117", "        return tf.train.Scaffold(saver=tf.train.Saver(restored))\n", "        tf.train.Scaffold(saver=tf.train.Saver(restored))\n"),
    ("TPU201", "            if params[\"use_tpu\"]:\n                optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU102", "        dataset = dataset.batch(batch_size, drop_remainder=True)  # <- TPU102\n        if FLAGS.transpose_enabled:\n            dataset = dataset.map(lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels))\n        dataset = dataset.map(lambda images, labels: self.set_shapes(batch_size, images, labels))\n", "        dataset = dataset.batch(batch_size)  # <- TPU102\n        if FLAGS.transpose_enabled:\n            dataset = dataset.map(lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels))\n"),
    ("TPU120", "return tf.cast(image, tf.float32), tf.cast(index", "return tf.cast(image, tf.float64), tf.cast(index"),
]
