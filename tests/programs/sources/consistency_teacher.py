"""Learning from few labels: labelled and unlabelled pictures in one feed, a teacher of averaged weights, mixed pairs.

Unlabelled batches are three times as large, so features have several first dimensions; weights of the teacher come
by a getter of variables; batch statistics are gathered by hand.
"""

import functools

import numpy as np
import tensorflow.compat.v1 as tf

SIDE, CLASSES, RATIO = 12, 4, 3


def batch_norm(x, training, name, getter_is_ema):
    return tf.layers.batch_normalization(x, training=training and not getter_is_ema, momentum=0.97, epsilon=1e-3, name=name)


def classifier(x, training, getter=None):
    ema = getter is not None
    with tf.variable_scope("classify", reuse=tf.AUTO_REUSE, custom_getter=getter):
        for number, filters in enumerate((8, 16)):
            x = tf.layers.conv2d(x, filters, 3, padding="same", name="conv%d" % number, kernel_regularizer=None)
            x = tf.nn.leaky_relu(batch_norm(x, training, "bn%d" % number, ema), 0.1)
            x = tf.layers.max_pooling2d(x, 2, 2)
        return tf.layers.dense(tf.reduce_mean(x, [1, 2]), CLASSES, name="logits")


def ema_getter(ema, getter, name, *args, **kwargs):
    var = getter(name, *args, **kwargs)
    average = ema.average(var)
    return average if average is not None else var


def sharpen(p, temperature=0.5):
    p = tf.pow(p, 1.0 / temperature)
    return p / tf.reduce_sum(p, axis=1, keepdims=True)


def mixup(x, labels, beta):
    # The mean of two uniform draws is no Beta; it has no op that a TPU lacks.
    share = tf.random_uniform([tf.shape(x)[0], 1, 1, 1])
    share = tf.maximum(share, 1.0 - share) * beta + (1.0 - beta)
    order = tf.argsort(tf.random_uniform([x.shape[0]]))
    flat = tf.reshape(share, [-1, 1])
    return share * x + (1.0 - share) * tf.gather(x, order), flat * labels + (1.0 - flat) * tf.gather(labels, order)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    if not training:
        logits = classifier(features["labelled"], False)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
        metrics = (lambda correct: {"accuracy": tf.metrics.mean(tf.cast(correct, tf.float32))}, [correct])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    labelled, first, second = features["labelled"], features["unlabelled"], features["augmented"]
    everything = tf.concat([labelled, first, second], 0)
    targets = tf.one_hot(labels, CLASSES)
    step = tf.train.get_or_create_global_step()
    logits = classifier(everything, True)
    student, _, strong = tf.split(logits, [labelled.shape[0], first.shape[0], second.shape[0]])
    variables = tf.trainable_variables("classify")
    ema = tf.train.ExponentialMovingAverage(0.99, step)
    averaged = ema.apply(variables)
    teacher = classifier(first, True, functools.partial(ema_getter, ema))
    guess = tf.stop_gradient(sharpen(tf.nn.softmax(teacher)))
    mixed, mixed_targets = mixup(labelled, targets, params["beta"])
    supervised = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=targets, logits=student))
    supervised += tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=mixed_targets, logits=classifier(mixed, True)))
    sure = tf.cast(tf.reduce_max(guess, 1) > params["confidence"], tf.float32)
    unsupervised = tf.reduce_mean(sure * tf.nn.softmax_cross_entropy_with_logits_v2(labels=guess, logits=strong))
    ramp = tf.clip_by_value(tf.to_float(step) / params["ramp_steps"], 0.0, 1.0)
    decay = sum(tf.nn.l2_loss(v) for v in variables if "kernel" in v.name)
    loss = supervised + ramp * unsupervised + 1e-4 * decay
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(tf.train.cosine_decay(0.03, step, 1000), 0.9))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        applied = optimizer.minimize(loss, step, var_list=variables)
    with tf.control_dependencies([applied]):
        train_op = tf.group(averaged)  # <- TPU220 TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def augment(image):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_crop(tf.pad(image, [[2, 2], [2, 2], [0, 0]], "REFLECT"), [SIDE, SIDE, 3])


def pictures(count, seed):
    random = np.random.RandomState(seed)
    return random.rand(count, SIDE, SIDE, 3).astype(np.float32), random.randint(0, CLASSES, count).astype(np.int32)


def train_input_fn(params):
    batch = params["batch_size"]
    labelled = tf.data.Dataset.from_tensor_slices(pictures(64, 0)).repeat().shuffle(256)
    labelled = labelled.map(lambda x, y: (augment(x), y)).batch(batch, drop_remainder=True)
    unlabelled = tf.data.Dataset.from_tensor_slices(pictures(192, 1)[0]).repeat().shuffle(256)
    unlabelled = unlabelled.map(lambda x: (augment(x), tf.clip_by_value(augment(x) * 1.5, 0.0, 1.0)))
    unlabelled = unlabelled.batch(batch * params["ratio"], drop_remainder=True)
    both = tf.data.Dataset.zip((labelled, unlabelled))
    return both.map(lambda l, u: ({"labelled": l[0], "unlabelled": u[0], "augmented": u[1]}, l[1])).prefetch(16)


def eval_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(pictures(64, 2)).batch(params["batch_size"], drop_remainder=True)
    return dataset.map(lambda x, y: ({"labelled": x}, y))


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/teacher", keep_checkpoint_max=5, keep_checkpoint_every_n_hours=1.0e10,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=64, per_host_input_for_training=True),
    )  # fmt: skip
    params = {"beta": 0.75, "confidence": 0.95, "ramp_steps": 500.0, "ratio": RATIO}
    estimator = tf.estimator.tpu.TPUEstimator(model_fn, None, config, params, True, train_batch_size=32, eval_batch_size=32)
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


FAULTS = [
    ("TPU201", "    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(tf.train.cosine_decay(0.03, step, 1000), 0.9))\n    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n    with tf.control_dependencies(updates):\n        applied", "    optimizer = tf.train.MomentumOptimizer(tf.train.cosine_decay(0.03, step, 1000), 0.9)\n    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n    with tf.control_dependencies(updates):\n        applied"),
    ("TPU101", "batch(batch * params[\"ratio\"], drop_remainder=True)", "batch(batch * params[\"ratio\"])"),
    ("TPU220", "    with tf.control_dependencies(updates):\n        applied", "    with tf.control_dependencies([]):\n        applied"),
    ("TPU102", "    return tf.image.random_crop(tf.pad(image, [[2, 2], [2, 2], [0, 0]], \"REFLECT\"), [SIDE, SIDE, 3])", "    size = tf.random_uniform([], SIDE - 2, SIDE, tf.int32)\n    return tf.image.random_crop(image, tf.stack([size, SIDE, 3]))"),
    ("TPU226", "labelled = labelled.map(lambda x, y: (augment(x), y)).batch(batch, drop", "labelled = labelled.map(lambda x, y: (augment(x), y)).batch(32, drop"),
    ("TPU215", "optimizer.minimize(loss, step, var_list=variables)", "optimizer.minimize(loss, var_list=variables)"),
]
