"""A one-stage detector: a feature pyramid, labels as a dict of padded boxes, focal loss, moving averages."""

import copy

import numpy as np
import tensorflow.compat.v1 as tf

IMAGE, CLASSES, MAX_BOXES = 32, 4, 10
LEVELS = (3, 4)


def default_hparams():
    return dict(
        image_size=IMAGE,
        num_classes=CLASSES,
        min_level=LEVELS[0],
        max_level=LEVELS[-1],
        momentum=0.9,
        learning_rate=0.08,
        lr_warmup_init=0.008,
        lr_warmup_step=100,
        alpha=0.25,
        gamma=1.5,
        delta=0.1,
        box_loss_weight=50.0,
        moving_average_decay=0.9998,
        clip_gradients_norm=10.0,
        var_freeze_expr=None,
    )


def focal_loss(logits, targets, alpha, gamma, normalizer):
    positive_label_mask = tf.equal(targets, 1.0)
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
    neg_logits = -1.0 * logits
    modulator = tf.exp(gamma * targets * neg_logits - gamma * tf.log1p(tf.exp(neg_logits)))
    loss = modulator * cross_entropy
    weighted_loss = tf.where(positive_label_mask, alpha * loss, (1.0 - alpha) * loss)
    return weighted_loss / normalizer


def detection_loss(cls_outputs, box_outputs, labels, params):
    num_positives_sum = tf.reduce_sum(labels["mean_num_positives"]) + 1.0
    cls_losses, box_losses = [], []
    for level in LEVELS:
        targets = tf.one_hot(labels["cls_targets_%d" % level], params["num_classes"])
        bs, width, height, _, _ = targets.get_shape().as_list()
        targets = tf.reshape(targets, [bs, width, height, -1])
        cls_loss = focal_loss(cls_outputs[level], targets, params["alpha"], params["gamma"], num_positives_sum)
        cls_loss = tf.reshape(cls_loss, [bs, width, height, -1, params["num_classes"]])
        cls_loss *= tf.cast(
            tf.expand_dims(tf.not_equal(labels["cls_targets_%d" % level], -2), -1), tf.float32
        )
        cls_losses.append(tf.reduce_sum(cls_loss))
        box_targets = labels["box_targets_%d" % level]
        mask = tf.not_equal(box_targets, 0.0)
        box_losses.append(
            tf.losses.huber_loss(
                box_targets,
                box_outputs[level],
                weights=mask,
                delta=params["delta"],
                reduction=tf.losses.Reduction.SUM,
            )
            / (num_positives_sum * 4.0)
        )
    cls_loss, box_loss = tf.add_n(cls_losses), tf.add_n(box_losses)
    return cls_loss + params["box_loss_weight"] * box_loss, cls_loss, box_loss


def build_network(features, params, is_training):
    def conv(x, filters, strides=1, name=None, activation=True, bn=True):
        x = tf.layers.conv2d(x, filters, 3, strides, padding="same", name=name)
        if bn:
            x = tf.layers.batch_normalization(x, training=is_training, fused=True, name=name + "-bn")
        return tf.nn.relu(x) if activation else x

    x = conv(features, 8, 2, "stem1")
    x = conv(x, 8, 2, "stem2")
    c3 = conv(x, 16, 2, "c3")
    c4 = conv(c3, 16, 2, "c4")
    p4 = tf.layers.conv2d(c4, 16, 1, name="p4")
    up = tf.image.resize_nearest_neighbor(p4, [4, 4])
    p3 = tf.layers.conv2d(c3, 16, 1, name="p3") + up
    cls_outputs, box_outputs = {}, {}
    for level, feats in ((3, p3), (4, p4)):
        with tf.variable_scope("heads", reuse=tf.AUTO_REUSE):
            cls_outputs[level] = tf.layers.conv2d(
                feats,
                params["num_classes"] * 3,
                3,
                padding="same",
                bias_initializer=tf.constant_initializer(-np.log((1 - 0.01) / 0.01)),
                name="class-predict",
            )
            box_outputs[level] = tf.layers.conv2d(feats, 12, 3, padding="same", name="box-predict")
    return cls_outputs, box_outputs


def learning_rate_schedule(params, global_step):
    linear_warmup = params["lr_warmup_init"] + (
        tf.cast(global_step, dtype=tf.float32)
        / params["lr_warmup_step"]
        * (params["learning_rate"] - params["lr_warmup_init"])
    )
    learning_rate = tf.where(global_step < params["lr_warmup_step"], linear_warmup, params["learning_rate"])
    for mult, start in ((0.1, 1000), (0.01, 2000)):
        learning_rate = tf.where(global_step < start, learning_rate, params["learning_rate"] * mult)
    return learning_rate


def model_fn(features, labels, mode, params):
    cls_outputs, box_outputs = build_network(features, params, mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"image": features}
        for level in LEVELS:
            predictions["cls_outputs_%d" % level] = cls_outputs[level]
            predictions["box_outputs_%d" % level] = box_outputs[level]
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)

    global_step = tf.train.get_or_create_global_step()
    learning_rate = learning_rate_schedule(params, global_step)
    total_loss, cls_loss, box_loss = detection_loss(cls_outputs, box_outputs, labels, params)
    total_loss += 4e-5 * tf.add_n(
        [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name]
    )

    train_op, scaffold_fn = None, None
    ema = tf.train.ExponentialMovingAverage(decay=params["moving_average_decay"], num_updates=global_step)
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=params["momentum"])
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        var_list = tf.trainable_variables()
        with tf.control_dependencies(update_ops):
            grads_and_vars = optimizer.compute_gradients(total_loss, var_list)
            grads, tvars = zip(*grads_and_vars)
            clipped_grads, _ = tf.clip_by_global_norm(grads, params["clip_gradients_norm"])
            minimize_op = optimizer.apply_gradients(zip(clipped_grads, tvars), global_step)  # <- TPU201
        with tf.control_dependencies([minimize_op]):
            train_op = ema.apply(var_list)  # <- TPU215

    eval_metrics = None
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(**kwargs):
            cls = tf.metrics.mean(kwargs["cls_loss_repeat"])
            box = tf.metrics.mean(kwargs["box_loss_repeat"])
            boxes = tf.metrics.mean(
                tf.reduce_sum(tf.cast(kwargs["groundtruth_data"][:, :, 4] > 0, tf.float32), axis=1)
            )
            return {"cls_loss": cls, "box_loss": box, "boxes": boxes}

        batch_size = params["batch_size"]
        cls_loss_repeat = tf.reshape(tf.tile(tf.expand_dims(cls_loss, 0), [batch_size]), [batch_size, 1])
        box_loss_repeat = tf.reshape(tf.tile(tf.expand_dims(box_loss, 0), [batch_size]), [batch_size, 1])
        metric_fn_inputs = {
            "cls_loss_repeat": cls_loss_repeat,
            "box_loss_repeat": box_loss_repeat,
            "source_ids": labels["source_ids"],
            "groundtruth_data": labels["groundtruth_data"],
            "image_scales": labels["image_scales"],
        }
        eval_metrics = (metric_fn, metric_fn_inputs)
    return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
        mode=mode,
        loss=total_loss,
        train_op=train_op,
        eval_metrics=eval_metrics,
        scaffold_fn=scaffold_fn,
    )


class InputReader:
    def __init__(self, count, is_training):
        self._count = count
        self._is_training = is_training

    def _example(self, index):
        image = tf.random.stateless_uniform([IMAGE, IMAGE, 3], tf.stack([index, 7]))
        number = 1 + tf.cast(index % 5, tf.int32)
        boxes = tf.random.stateless_uniform([number, 4], tf.stack([index, 8]))
        classes = tf.random.stateless_uniform([number, 1], tf.stack([index, 9]), 1, CLASSES)
        data = tf.concat([boxes, classes], 1)  # <- TPU102
        data = tf.pad(data, [[0, MAX_BOXES - tf.shape(data)[0]], [0, 0]], constant_values=-1.0)
        data = tf.reshape(data, [MAX_BOXES, 5])
        if self._is_training:
            image = tf.image.random_flip_left_right(image)
        labels = {"mean_num_positives": tf.cast(number, tf.float32)}
        for level in LEVELS:
            size = IMAGE // 2**level // (1 if level == 3 else 1)
            labels["cls_targets_%d" % level] = tf.random.stateless_uniform(
                [size, size, 3], tf.stack([index, level]), -2, CLASSES, tf.int32
            )
            labels["box_targets_%d" % level] = tf.random.stateless_normal(
                [size, size, 12], tf.stack([index, level])
            )
        labels["source_ids"] = tf.cast(index, tf.float32)
        labels["groundtruth_data"] = data
        labels["image_scales"] = 1.0
        return image, labels

    def __call__(self, params):
        batch_size = params["batch_size"]
        dataset = tf.data.Dataset.range(self._count)
        if self._is_training:
            dataset = dataset.shuffle(64).repeat()
        dataset = dataset.map(self._example, num_parallel_calls=64)
        dataset = dataset.prefetch(batch_size)
        dataset = dataset.batch(batch_size, drop_remainder=True)
        dataset = dataset.prefetch(tf.data.experimental.AUTOTUNE)
        return dataset


def main(data_dir):
    hparams = default_hparams()
    hparams = copy.deepcopy(dict(hparams, is_training_bn=True, backbone_name="small", resnet_checkpoint=None))
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/retinanet",
        log_step_count_steps=100,
        tpu_config=tf.estimator.tpu.TPUConfig(
            100,
            num_shards=8,
            num_cores_per_replica=None,
            input_partition_dims=None,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        use_tpu=True,
        train_batch_size=32,
        eval_batch_size=16,
        config=config,
        params=hparams,
    )
    return estimator, InputReader(128, True), {"eval_input_fn": InputReader(64, False)}


FAULTS = [
    ("TPU201", "        if params[\"use_tpu\"]:\n            optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU102", "        data = tf.pad(data, [[0, MAX_BOXES - tf.shape(data)[0]], [0, 0]], constant_values=-1.0)\n        data = tf.reshape(data, [MAX_BOXES, 5])\n", "        data = tf.reshape(data, [-1, 5])\n"),
    ("TPU111", "box_loss_repeat = tf.reshape(tf.tile(tf.expand_dims(box_loss, 0), [batch_size]), [batch_size, 1])", "box_loss_repeat = box_loss"),
    ("TPU202", "tf.image.resize_nearest_neighbor(p4, [4, 4])", "tf.image.resize_bicubic(p4, [4, 4])"),
    ("TPU215", "zip(clipped_grads, tvars), global_step)", "zip(clipped_grads, tvars))"),
]
