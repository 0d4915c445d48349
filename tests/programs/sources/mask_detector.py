"""Two-stage detection: proposals by non-maximum suppression, features cropped from a pyramid, masks.

The dataset gives one dict with features and labels; model_fn takes the labels out of it. There is no
evaluation graph: the host scores the predictions. The warm-up and the bias's doubled rate are by hand.
"""

import tensorflow.compat.v1 as tf
from tensorflow.compat import v2 as tf2

IMAGE, CLASSES, BOXES, TOP, CROP = 64, 5, 6, 16, 4


def l2_regularization(weight_decay, variables):
    return weight_decay * tf.add_n(
        [tf.nn.l2_loss(v) for v in variables if "bias" not in v.name and "beta" not in v.name]
    )


def box_overlaps(boxes, gt_boxes):
    """[B, N, 4] and [B, M, 4] to [B, N, M]."""
    y_min, x_min, y_max, x_max = tf.split(value=boxes, num_or_size_splits=4, axis=2)
    g_y_min, g_x_min, g_y_max, g_x_max = tf.split(value=gt_boxes, num_or_size_splits=4, axis=2)
    height = tf.minimum(y_max, tf.transpose(g_y_max, [0, 2, 1])) - tf.maximum(
        y_min, tf.transpose(g_y_min, [0, 2, 1])
    )
    width = tf.minimum(x_max, tf.transpose(g_x_max, [0, 2, 1])) - tf.maximum(
        x_min, tf.transpose(g_x_min, [0, 2, 1])
    )
    inter = tf.maximum(height, 0.0) * tf.maximum(width, 0.0)
    area = (y_max - y_min) * (x_max - x_min)
    g_area = (g_y_max - g_y_min) * (g_x_max - g_x_min)
    union = area + tf.transpose(g_area, [0, 2, 1]) - inter
    return tf.where(union > 0.0, inter / union, -tf.ones_like(inter))


def propose(scores, deltas, anchors):
    """The TOP best boxes of each image after suppression, [B, TOP, 4]."""
    batch_size = scores.get_shape().as_list()[0]
    probabilities, indices = tf.nn.top_k(scores, k=2 * TOP)
    boxes = tf.gather(anchors + 0.1 * tf.tanh(deltas), indices, batch_dims=1)
    rois = []
    for i in range(batch_size):
        keep, valid = tf.image.non_max_suppression_padded(
            boxes[i], probabilities[i], max_output_size=TOP, iou_threshold=0.7, pad_to_max_output_size=True
        )
        kept = tf.gather(boxes[i], keep)
        rois.append(kept * tf.cast(tf.range(TOP) < valid, kept.dtype)[:, None])
    return tf.stop_gradient(tf.stack(rois))


def crop(features, boxes):
    """Nearest pixels of each box on a CROP x CROP grid, [B, TOP, CROP, CROP, C]."""
    batch, height, width, channels = features.get_shape().as_list()
    grid = (tf.range(CROP, dtype=tf.float32) + 0.5) / CROP
    y = boxes[:, :, 0:1] + grid * (boxes[:, :, 2:3] - boxes[:, :, 0:1])
    x = boxes[:, :, 1:2] + grid * (boxes[:, :, 3:4] - boxes[:, :, 1:2])
    y = tf.cast(tf.clip_by_value(y * height, 0, height - 1), tf.int32)
    x = tf.cast(tf.clip_by_value(x * width, 0, width - 1), tf.int32)
    index = y[:, :, :, None] * width + x[:, :, None, :]
    index += tf.reshape(tf.range(batch) * height * width, [batch, 1, 1, 1])
    return tf.gather(tf.reshape(features, [-1, channels]), index)


def build(features, params, is_training):
    x = features["images"]
    if params["precision"] == "bfloat16":
        x = tf.cast(x, tf.bfloat16)
    for level, filters in enumerate((8, 16, 16)):
        x = tf.layers.conv2d(x, filters, 3, 2, "same", name="conv%d" % level)
        x = tf.layers.batch_normalization(x, training=is_training, fused=True, name="bn%d" % level)
        x = tf.nn.relu(x)
    x = tf.cast(x, tf.float32)
    batch, size = x.shape.as_list()[:2]
    rpn = tf.layers.conv2d(x, 16, 3, padding="same", activation=tf.nn.relu, name="rpn")
    scores = tf.reshape(tf.layers.conv2d(rpn, 1, 1, name="rpn-class"), [batch, -1])
    deltas = tf.reshape(tf.layers.conv2d(rpn, 4, 1, name="rpn-box"), [batch, -1, 4])
    places = (tf.range(size, dtype=tf.float32) + 0.5) / size
    y, x_ = tf.meshgrid(places, places, indexing="ij")
    anchors = tf.reshape(tf.stack([y - 0.2, x_ - 0.2, y + 0.2, x_ + 0.2], -1), [1, -1, 4])
    rois = propose(tf.sigmoid(scores), deltas, anchors)
    cropped = crop(x, rois)
    flat = tf.reshape(cropped, [batch, TOP, -1])
    net = tf.layers.dense(flat, 32, activation=tf.nn.relu, name="fc6")
    classes = tf.layers.dense(net, CLASSES, name="class-predict")
    masks = tf.layers.conv2d_transpose(
        tf.reshape(cropped, [-1, CROP, CROP, 16]), CLASSES, 2, 2, name="mask-deconv"
    )
    masks = tf.reshape(masks, [batch, TOP, 2 * CROP, 2 * CROP, CLASSES])
    return {"scores": scores, "rois": rois, "classes": classes, "masks": masks}


def losses(outputs, labels, params):
    overlaps = box_overlaps(outputs["rois"], labels["gt_boxes"])
    best = tf.argmax(overlaps, axis=-1, output_type=tf.int32)
    positive = tf.reduce_max(overlaps, axis=-1) > 0.3
    gt = tf.squeeze(tf.cast(labels["gt_classes"], tf.int32), -1)
    targets = tf.where(positive, tf.gather(gt, best, batch_dims=1), tf.zeros_like(best))
    targets = tf.maximum(targets, 0)
    class_loss = tf.losses.softmax_cross_entropy(
        tf.one_hot(targets, CLASSES), outputs["classes"], reduction=tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
    )
    score_targets = labels["score_targets"]
    mask = tf.math.greater_equal(score_targets, 0)
    rpn_loss = tf.losses.sigmoid_cross_entropy(
        tf.maximum(score_targets, tf.zeros_like(score_targets)),
        outputs["scores"],
        weights=tf.cast(mask, tf.float32),
        reduction=tf.losses.Reduction.SUM,
    ) / (params["rpn_batch_size_per_im"] * params["batch_size"])
    wanted = tf.one_hot(targets, CLASSES)[:, :, None, None, :]
    mask_logits = tf.reduce_sum(outputs["masks"] * wanted, -1)
    mask_targets = tf.reduce_mean(labels["cropped_gt_masks"], [1, 2, 3])[:, None, None, None]
    mask_loss = tf.losses.sigmoid_cross_entropy(
        mask_targets + tf.zeros_like(mask_logits),
        mask_logits,
        weights=tf.cast(positive, tf.float32)[:, :, None, None],
    )
    return class_loss, rpn_loss, mask_loss


def model_fn(features, labels, mode, params):
    if mode == tf.estimator.ModeKeys.PREDICT:
        if "features" in features:
            features = features["features"]
    else:
        labels = features["labels"] if "labels" in features else labels
        features = features["features"]
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    if params["precision"] == "bfloat16":
        with tf.tpu.bfloat16_scope():
            outputs = build(features, params, is_training)
    else:
        outputs = build(features, params, is_training)
    outputs = {key: tf.cast(value, tf.float32) for key, value in outputs.items()}
    if not is_training:
        predictions = {
            "detection_boxes": outputs["rois"],
            "detection_classes": tf.nn.softmax(outputs["classes"]),
            "detection_masks": tf.nn.sigmoid(outputs["masks"]),
            "image_info": features["image_info"],
            "source_id": features["source_ids"],
        }
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)
    global_step = tf.train.get_or_create_global_step()
    boundaries, values = [100, 200], [params["learning_rate"] * f for f in (1.0, 0.1, 0.01)]
    warm = params["learning_rate"] * (0.1 + 0.9 * tf.cast(global_step, tf.float32) / 50.0)
    rate = tf.train.piecewise_constant(global_step, boundaries, values)
    learning_rate = tf.where(global_step < 50, warm, rate)
    class_loss, rpn_loss, mask_loss = losses(outputs, labels, params)
    trainable = list(filter(lambda v: "conv0/" not in v.name, tf.trainable_variables()))
    total_loss = class_loss + rpn_loss + mask_loss + l2_regularization(1e-4, trainable)
    optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=0.9)
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    grads_and_vars = optimizer.compute_gradients(total_loss, trainable)
    doubled = []
    for grad, var in grads_and_vars:
        if grad is not None and any(part in var.name for part in ("beta", "bias")):
            grad = 2.0 * grad
        doubled.append((grad, var))
    with tf.control_dependencies(update_ops):
        train_op = optimizer.apply_gradients(doubled, global_step=global_step)  # <- TPU201 TPU215

    def host_call_fn(global_step, total_loss, class_loss, mask_loss, learning_rate):
        step = tf.reduce_mean(tf.cast(global_step, tf.int64))
        with tf2.summary.create_file_writer(params["folder"], max_queue=params["iterations"]).as_default():
            tf2.summary.scalar("total_loss", tf.reduce_mean(total_loss), step=step)
            tf2.summary.scalar("class_loss", tf.reduce_mean(class_loss), step=step)
            tf2.summary.scalar("mask_loss", tf.reduce_mean(mask_loss), step=step)
            tf2.summary.scalar("learning_rate", tf.reduce_mean(learning_rate), step=step)
            return tf.summary.all_v2_summary_ops()

    tensors = [global_step, total_loss, class_loss, mask_loss, learning_rate]
    host_call = (host_call_fn, [tf.reshape(each, [1]) for each in tensors])
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=total_loss, train_op=train_op, host_call=host_call)


class InputReader(object):
    def __init__(self, mode):
        self._mode = mode

    def _parse(self, index):
        seed = lambda n: tf.stack([index, n])  # noqa: E731
        image = tf.random.stateless_uniform([IMAGE, IMAGE, 3], seed(1))
        corner = tf.random.stateless_uniform([BOXES, 2], seed(2), 0.0, 0.5)
        boxes = tf.concat([corner, corner + 0.4], 1)
        classes = tf.random.stateless_uniform([BOXES], seed(3), 1, CLASSES, tf.int32)
        known = tf.range(BOXES) < 1 + tf.cast(index % BOXES, tf.int32)
        boxes = tf.boolean_mask(boxes, known)
        classes = tf.boolean_mask(classes, known)  # <- TPU102
        boxes = self._pad(boxes, [BOXES, 4])
        classes = self._pad(tf.cast(classes, tf.float32)[:, None], [BOXES, 1])
        scores = tf.random.stateless_uniform([(IMAGE // 8) ** 2], seed(4), -1, 2, tf.int32)
        features = {
            "images": image,
            "image_info": tf.stack([1.0, 1.0, 1.0, IMAGE * 1.0, IMAGE * 1.0]),
            "source_ids": tf.cast(index, tf.float32),
        }
        if self._mode == tf.estimator.ModeKeys.PREDICT:
            return features
        labels = {
            "gt_boxes": boxes,
            "gt_classes": classes,
            "score_targets": scores,
            "cropped_gt_masks": tf.cast(tf.random.stateless_uniform([BOXES, 8, 8], seed(5)) > 0.5, tf.float32),
        }
        return {"features": features, "labels": labels}

    @staticmethod
    def _pad(tensor, shape):
        tensor = tf.pad(tensor, [[0, shape[0] - tf.shape(tensor)[0]], [0, 0]], constant_values=-1)
        return tf.reshape(tensor, shape)

    def __call__(self, params):
        dataset = tf.data.Dataset.range(96)
        if self._mode == tf.estimator.ModeKeys.TRAIN:
            dataset = dataset.shuffle(32).repeat()
        dataset = dataset.map(self._parse, num_parallel_calls=16)
        dataset = dataset.batch(batch_size=params["batch_size"], drop_remainder=True)
        dataset = dataset.prefetch(tf.data.experimental.AUTOTUNE)
        options = tf.data.Options()
        options.experimental_deterministic = self._mode != tf.estimator.ModeKeys.TRAIN
        return dataset.with_options(options)


def main(data_dir):
    params = dict(
        precision="bfloat16", learning_rate=0.02, rpn_batch_size_per_im=32, folder="/tmp/mask", iterations=50
    )
    config = tf.estimator.tpu.RunConfig(
        evaluation_master="",
        model_dir="/tmp/mask",
        log_step_count_steps=50,
        tpu_config=tf.estimator.tpu.TPUConfig(
            50,
            num_shards=8,
            num_cores_per_replica=None,
            input_partition_dims=None,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        use_tpu=True,
        train_batch_size=16,
        predict_batch_size=8,
        config=config,
        params=params,
    )
    predict = InputReader(tf.estimator.ModeKeys.PREDICT)
    return estimator, InputReader(tf.estimator.ModeKeys.TRAIN), {"predict_input_fn": predict}


FAULTS = [
    ("TPU202", "    return tf.gather(tf.reshape(features, [-1, channels]), index)\n", "    which = tf.tile(tf.range(batch)[:, None], [1, TOP])\n    found = tf.image.crop_and_resize(features, tf.reshape(boxes, [-1, 4]), tf.reshape(which, [-1]), [CROP, CROP])\n    return tf.reshape(found, [batch, TOP, CROP, CROP, channels])\n"),
    ("TPU201", "    optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "apply_gradients(doubled, global_step=global_step)", "apply_gradients(doubled)"),
    ("TPU102", "        classes = self._pad(tf.cast(classes, tf.float32)[:, None], [BOXES, 1])\n", "        classes = tf.cast(classes, tf.float32)[:, None]\n"),
]
