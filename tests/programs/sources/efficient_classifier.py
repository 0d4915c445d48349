"""A mobile convnet: depthwise convolutions, drop connect, averages restored in evaluation, images made up."""

import functools

import tensorflow.compat.v1 as tf

SIZE, CLASSES, STEPS_PER_EPOCH = 32, 6, 100


def swish(x):
    return x * tf.nn.sigmoid(x)


def drop_connect(inputs, is_training, survival_prob):
    if not is_training:
        return inputs
    batch_size = tf.shape(inputs)[0]
    random_tensor = survival_prob
    random_tensor += tf.random_uniform([batch_size, 1, 1, 1], dtype=inputs.dtype)
    return tf.div(inputs, survival_prob) * tf.floor(random_tensor)


class MBConvBlock(object):
    def __init__(self, filters, expand_ratio, strides):
        self._filters, self._expand, self._strides = filters, expand_ratio, strides

    def __call__(self, inputs, training, survival_prob=0.8):
        norm = functools.partial(
            tf.layers.batch_normalization, momentum=0.99, epsilon=1e-3, training=training, fused=True
        )
        channels = inputs.shape.as_list()[-1]
        x = swish(norm(tf.layers.conv2d(inputs, channels * self._expand, 1, use_bias=False)))
        x = tf.keras.layers.DepthwiseConv2D(3, self._strides, padding="same", use_bias=False)(x)
        x = swish(norm(x))
        se = tf.reduce_mean(x, [1, 2], keepdims=True)
        se = swish(tf.layers.conv2d(se, max(1, channels // 4), 1))
        x = tf.sigmoid(tf.layers.conv2d(se, channels * self._expand, 1)) * x
        x = norm(tf.layers.conv2d(x, self._filters, 1, use_bias=False))
        if self._strides == 1 and channels == self._filters:
            x = drop_connect(x, training, survival_prob) + inputs
        return x


def build_model(images, params, training):
    x = swish(tf.layers.conv2d(images, 8, 3, 2, padding="same"))
    for filters, expand, strides in ((8, 1, 1), (16, 2, 2)):
        x = MBConvBlock(filters, expand, strides)(x, training)
    x = tf.reduce_mean(x, [1, 2])
    x = tf.layers.dropout(x, params["dropout_rate"], training=training)
    return tf.layers.dense(x, params["num_label_classes"])


def get_ema_vars():
    ema_vars = tf.trainable_variables() + tf.get_collection("moving_vars")
    for v in tf.global_variables():
        if "moving_mean" in v.name or "moving_variance" in v.name:
            ema_vars.append(v)
    return list({v.ref(): v for v in ema_vars}.values())


def model_fn(features, labels, mode, params):
    if isinstance(features, dict):
        features = features["feature"]
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    has_moving_average_decay = params["moving_average_decay"] > 0
    logits = build_model(features, params, is_training)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"classes": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions)

    one_hot_labels = tf.one_hot(labels, params["num_label_classes"])
    cross_entropy = tf.losses.softmax_cross_entropy(logits=logits, onehot_labels=one_hot_labels, label_smoothing=0.1)
    loss = cross_entropy + params["weight_decay"] * tf.add_n(
        [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_normalization" not in v.name]
    )
    global_step = tf.train.get_global_step()
    if has_moving_average_decay:
        ema = tf.train.ExponentialMovingAverage(decay=params["moving_average_decay"], num_updates=global_step)
        ema_vars = get_ema_vars()

    train_op, restore_vars_dict = None, None
    if is_training:
        current_epoch = tf.cast(global_step, tf.float32) / params["steps_per_epoch"]
        scaled_lr = 0.016 * params["train_batch_size"] / 256.0
        learning_rate = tf.train.exponential_decay(scaled_lr, global_step, 240, 0.97, staircase=True)
        learning_rate = tf.cond(current_epoch < 5.0, lambda: scaled_lr * current_epoch / 5.0, lambda: learning_rate)
        optimizer = tf.train.RMSPropOptimizer(learning_rate, 0.9, 0.9, 0.001)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step)  # <- TPU201 TPU220
        if has_moving_average_decay:
            with tf.control_dependencies([train_op]):
                train_op = ema.apply(ema_vars)  # <- TPU220
    elif has_moving_average_decay:
        restore_vars_dict = ema.variables_to_restore(ema_vars)

    eval_metrics = None
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, logits):
            predictions = tf.argmax(logits, axis=1)
            in_top_5 = tf.cast(tf.nn.in_top_k(logits, labels, 5), tf.float32)
            return {
                "top_1_accuracy": tf.metrics.accuracy(labels, predictions),
                "top_5_accuracy": tf.metrics.mean(in_top_5),
            }

        eval_metrics = (metric_fn, [labels, logits])

    def _scaffold_fn():  # <- TPU117
        return tf.train.Scaffold(saver=tf.train.Saver(restore_vars_dict))

    num_params = sum(v.shape.num_elements() for v in tf.trainable_variables())
    tf.logging.info("number of trainable parameters: {}".format(num_params))
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode=mode,
        loss=loss,
        train_op=train_op,
        eval_metrics=eval_metrics,
        scaffold_fn=_scaffold_fn if has_moving_average_decay and not is_training else None,
    )


class FakeInput(object):
    def __init__(self, is_training):
        self.is_training = is_training

    def _get_null_input(self, data):
        image = tf.zeros([SIZE, SIZE, 3], tf.float32)
        return image, tf.constant(0, tf.int32)

    def input_fn(self, params):
        batch_size = params["batch_size"]
        dataset = tf.data.Dataset.range(1).repeat().map(self._get_null_input)
        dataset = dataset.apply(tf.data.experimental.map_and_batch(
            lambda *x: x, batch_size=batch_size, num_parallel_batches=8, drop_remainder=True
        ))
        dataset = dataset.prefetch(tf.data.experimental.AUTOTUNE)
        options = tf.data.Options()
        options.experimental_deterministic = False
        return dataset.with_options(options)


def main(data_dir):
    params = dict(
        steps_per_epoch=STEPS_PER_EPOCH,
        num_label_classes=CLASSES,
        dropout_rate=0.2,
        weight_decay=1e-5,
        moving_average_decay=0.9999,
        train_batch_size=64,
    )
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/efficient",
        save_checkpoints_steps=100,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=50,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    est = tf.estimator.tpu.TPUEstimator(
        use_tpu=True,
        model_fn=model_fn,
        config=config,
        train_batch_size=64,
        eval_batch_size=64,
        export_to_tpu=False,
        params=params,
    )
    return est, FakeInput(True).input_fn, {"eval_input_fn": FakeInput(False).input_fn}


FAULTS = [
    ("TPU201", "        if params[\"use_tpu\"]:\n            optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU220", "        with tf.control_dependencies(update_ops):\n            train_op", "        if update_ops:\n            train_op"),
    ("TPU223", "    x = tf.layers.dropout(x, params[\"dropout_rate\"], training=training)", "    x = tf.layers.dropout(x, params[\"dropout_rate\"], training=True)"),
    ("TPU206", "    eval_metrics = None\n", "    tf.summary.scalar(\"loss\", loss)\n    eval_metrics = None\n"),
    ("TPU117", "        return tf.train.Scaffold(saver=tf.train.Saver(restore_vars_dict))", "        tf.train.Scaffold(saver=tf.train.Saver(restore_vars_dict))"),
]
