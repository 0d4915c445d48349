"""Segmentation of scenes: dilated convolutions, pixels that do not count, an argument scope for layers, scaled gradients.

Regularisation through the collection of losses; the loss is tf.losses' total; mean_iou on flattened pixels with
weights; training reads a text file with names of pictures, which the host decodes.
"""

import contextlib
import functools
import os

import numpy as np
import tensorflow.compat.v1 as tf

CROP, CLASSES, IGNORE = 24, 5, 255

_STACK = [{}]


@contextlib.contextmanager
def arg_scope(**defaults):
    _STACK.append(dict(_STACK[-1], **defaults))
    yield
    _STACK.pop()


def conv(x, filters, kernel, rate=1, stride=1, scope=None):
    options = _STACK[-1]
    x = tf.layers.conv2d(
        x, filters, kernel, stride, "same", dilation_rate=rate, use_bias=False, name=scope,
        kernel_regularizer=lambda w: options["weight_decay"] * tf.nn.l2_loss(w),
    )  # fmt: skip
    x = tf.layers.batch_normalization(x, momentum=0.9, training=options["is_training"], fused=True, name=scope + "/bn")
    return tf.nn.relu(x)


def backbone(images):
    x = conv(images, 8, 3, stride=2, scope="conv1")
    low = x
    x = conv(x, 16, 3, stride=2, scope="conv2")
    for rate in (1, 2):
        x = x + conv(conv(x, 8, 1, scope="squeeze_%d" % rate), 16, 3, rate, scope="unit_%d" % rate)
    return x, low


def pyramid(x):
    height, width = x.shape.as_list()[1:3]
    pooled = conv(tf.reduce_mean(x, [1, 2], keepdims=True), 8, 1, scope="image_pooling")
    branches = [tf.image.resize_bilinear(pooled, [height, width], align_corners=True), conv(x, 8, 1, scope="aspp0")]
    branches += [conv(x, 8, 3, rate, scope="aspp%d" % rate) for rate in (2, 4)]
    return conv(tf.concat(branches, 3), 8, 1, scope="concat_projection")


def logits_of(images):
    x, low = backbone(images)
    x = tf.image.resize_bilinear(pyramid(x), low.shape.as_list()[1:3], align_corners=True)
    x = conv(tf.concat([x, conv(low, 4, 1, scope="feature_projection")], 3), 8, 3, scope="decoder")
    x = tf.layers.conv2d(x, CLASSES, 1, name="logits")
    return tf.image.resize_bilinear(x, [CROP, CROP], align_corners=True)


def add_softmax_cross_entropy(logits, labels):
    labels = tf.reshape(labels, [-1])
    weights = tf.to_float(tf.not_equal(labels, IGNORE))
    one_hot = tf.one_hot(labels, CLASSES, on_value=1.0, off_value=0.0)
    tf.losses.softmax_cross_entropy(one_hot, tf.reshape(logits, [-1, CLASSES]), weights=weights)


def metric_fn(labels, logits):
    labels = tf.reshape(labels, [-1])
    valid = tf.to_float(tf.not_equal(labels, IGNORE))
    labels = tf.where(tf.equal(labels, IGNORE), tf.zeros_like(labels), labels)
    predictions = tf.reshape(tf.argmax(logits, 3), [-1])
    return {
        "miou": tf.metrics.mean_iou(labels, predictions, CLASSES, weights=valid),
        "pixel_accuracy": tf.metrics.accuracy(labels, predictions, weights=valid),
    }


def multiply_gradients(grads_and_vars, multipliers):
    return [(g * multipliers.get(v.op.name.split("/")[0], 1.0) if g is not None else g, v) for g, v in grads_and_vars]


def model_fn(features, labels, mode, params):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    with arg_scope(weight_decay=params["weight_decay"], is_training=is_training and params["fine_tune_batch_norm"]):
        logits = logits_of(features)
    if mode == tf.estimator.ModeKeys.PREDICT:
        labels_of = tf.argmax(logits, 3, output_type=tf.int32)
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"semantic": labels_of})
    add_softmax_cross_entropy(logits, labels)
    loss = tf.losses.get_total_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.polynomial_decay(params["base_learning_rate"], global_step, 1000, power=0.9)
    optimizer = tf.train.MomentumOptimizer(learning_rate, 0.9)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        grads = multiply_gradients(optimizer.compute_gradients(loss), {"logits": 10.0})
        train_op = optimizer.apply_gradients(grads, global_step)  # <- TPU201 TPU215 TPU220
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def random_scale(image, label):
    scale = tf.random_uniform([], 0.75, 1.5)
    size = tf.to_int32(tf.to_float(tf.shape(image)[:2]) * scale)
    image = tf.squeeze(tf.image.resize_bilinear(image[None], size), 0)
    label = tf.squeeze(tf.image.resize_nearest_neighbor(label[None], size), 0)
    return image, label


def preprocess(image, label, train):
    image, label = tf.cast(image, tf.float32), tf.cast(label, tf.int32)
    if train:
        image, label = random_scale(image, label)
    height, width = tf.shape(image)[0], tf.shape(image)[1]
    bottom, right = tf.maximum(CROP - height, 0), tf.maximum(CROP - width, 0)
    image = tf.pad(image - 127.5, [[0, bottom], [0, right], [0, 0]]) + 127.5
    label = tf.pad(label - IGNORE, [[0, bottom], [0, right], [0, 0]]) + IGNORE
    both = tf.concat([image, tf.to_float(label)], 2)
    both = tf.random_crop(both, [CROP, CROP, 4]) if train else both[:CROP, :CROP]
    both.set_shape([CROP, CROP, 4])
    return both[:, :, :3] / 127.5 - 1.0, tf.cast(both[:, :, 3], tf.int32)


def input_fn(params, list_file=None, train=True):
    folder = os.path.dirname(list_file)

    def load(name):
        image = tf.image.decode_png(tf.read_file(tf.strings.join([folder, "/", name, ".png"])), 3)  # <- TPU102
        label = tf.image.decode_png(tf.read_file(tf.strings.join([folder, "/", name, "_label.png"])), 1)
        return image, label

    dataset = tf.data.TextLineDataset(list_file).map(load, num_parallel_calls=4)
    dataset = dataset.shuffle(40).repeat() if train else dataset
    dataset = dataset.map(functools.partial(preprocess, train=train))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def write_pictures(data_dir):
    import PIL.Image

    folder = os.path.join(data_dir, "scenes")
    if not os.path.isdir(folder):
        os.makedirs(folder)
        random = np.random.RandomState(0)
        for number in range(40):
            image = random.randint(0, 255, (26, 30, 3)).astype(np.uint8)
            label = random.choice([0, 1, 2, 3, 4, IGNORE], (26, 30)).astype(np.uint8)
            PIL.Image.fromarray(image).save(os.path.join(folder, "%d.png" % number))
            PIL.Image.fromarray(label).save(os.path.join(folder, "%d_label.png" % number))
        open(os.path.join(folder, "train.txt"), "w").write("\n".join(map(str, range(40))))
    return os.path.join(folder, "train.txt")


def main(data_dir):
    names = write_pictures(data_dir)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        config=tf.estimator.tpu.RunConfig(model_dir="/tmp/scenes", tpu_config=tf.estimator.tpu.TPUConfig(100)),
        params={"weight_decay": 4e-5, "base_learning_rate": 0.007, "fine_tune_batch_norm": True},
        train_batch_size=32,
        eval_batch_size=8,
        predict_batch_size=8,
        use_tpu=True,
    )
    train = functools.partial(input_fn, list_file=names, train=True)
    return estimator, train, {"eval_input_fn": functools.partial(input_fn, list_file=names, train=False)}


FAULTS = [
    ("TPU201", "    if params[\"use_tpu\"]:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU102", "    both.set_shape([CROP, CROP, 4])\n    return", "    return"),
    ("TPU220", "    with tf.control_dependencies(update_ops):\n", "    with tf.control_dependencies(None):\n"),
    ("TPU111", "eval_metrics=(metric_fn, [labels, logits])", "eval_metrics=(lambda l: {\"l\": tf.metrics.mean(l)}, [loss])"),
    ("TPU215", "optimizer.apply_gradients(grads, global_step)", "optimizer.apply_gradients(grads)"),
    ("TPU207", "    with arg_scope(weight", "    features = tf.cast(tf.map_fn(lambda x: tf.io.decode_png(tf.io.encode_png(tf.cast(x, tf.uint8))), features, tf.uint8), tf.float32)\n    features.set_shape([params[\"batch_size\"], CROP, CROP, 3])\n    with arg_scope(weight"),
]
