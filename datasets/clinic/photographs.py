"""A residual network for photographs: flags, host_call, batch normalisation, in the manner of 2018."""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

Flags = collections.namedtuple("Flags", "use_tpu train_batch_size eval_batch_size model_dir base_lr")
FLAGS = Flags(False, 128, 64, "run/photographs", 0.1)

IMAGE_SIZE, NUM_CLASSES, NUM_TRAIN, NUM_EVAL = 16, 5, 384, 192


def batch_norm_relu(inputs, is_training, name):
    inputs = tf.layers.batch_normalization(
        inputs, momentum=0.9, epsilon=1e-5, training=is_training, fused=True, name=name
    )
    return tf.nn.relu(inputs)


def resnet(inputs, is_training):
    net = tf.layers.conv2d(inputs, 8, 3, padding="same", use_bias=False, name="stem")
    net = batch_norm_relu(net, is_training, "stem_bn")
    shortcut = net
    net = tf.layers.conv2d(net, 8, 3, padding="same", use_bias=False, name="block_1")
    net = batch_norm_relu(net, is_training, "block_1_bn")
    net = tf.reduce_mean(net + shortcut, axis=[1, 2])
    return tf.layers.dense(net, NUM_CLASSES, name="head")


class ImageInput:
    """Photographs with their file names, as the converter wrote them."""

    def __init__(self, is_training):
        self.is_training = is_training
        random = np.random.RandomState(1 if is_training else 2)
        count = NUM_TRAIN if is_training else NUM_EVAL
        self.labels = random.randint(0, NUM_CLASSES, count).astype(np.int32)
        images = random.uniform(0, 100, [count, IMAGE_SIZE, IMAGE_SIZE, 3])
        images += 30.0 * self.labels[:, None, None, None]
        self.images = images.astype(np.uint8)
        self.names = np.array(["photo_%04d.jpg" % n for n in range(count)])

    def preprocess(self, name, image, label):
        image = tf.cast(image, tf.float32) / 255.0
        if self.is_training:
            image = tf.image.random_flip_left_right(image)
        return {"image": image}, label

    def __call__(self, params):
        dataset = tf.data.Dataset.from_tensor_slices((self.names, self.images, self.labels))
        if self.is_training:
            dataset = dataset.shuffle(NUM_TRAIN).repeat()
        dataset = dataset.map(self.preprocess, num_parallel_calls=4)
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        return dataset.prefetch(tf.data.experimental.AUTOTUNE)


def learning_rate_schedule(step):
    warm = FLAGS.base_lr * tf.cast(step, tf.float32) / 100.0
    return tf.where(step < 100, warm, FLAGS.base_lr * tf.ones_like(warm))


def host_call_fn(gs, loss, lr):
    gs = gs[0]
    with tf2_summary.create_file_writer(FLAGS.model_dir).as_default():
        tf2_summary.scalar("loss", loss[0], step=gs)
        tf2_summary.scalar("learning_rate", lr[0], step=gs)
        return tf.summary.all_v2_summary_ops()


def resnet_model_fn(features, labels, mode, params):
    logits = resnet(features["image"], mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"classes": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)

    one_hot_labels = tf.one_hot(labels, NUM_CLASSES)
    loss = tf.losses.softmax_cross_entropy(one_hot_labels, logits, label_smoothing=0.1)
    host_call, train_op = None, None
    if mode == tf.estimator.ModeKeys.TRAIN:
        global_step = tf.train.get_global_step()
        learning_rate = learning_rate_schedule(global_step)
        optimizer = tf.train.MomentumOptimizer(learning_rate, 0.9, use_nesterov=True)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step)
        gs_t = tf.reshape(global_step, [1])
        loss_t = tf.reshape(loss, [1])
        lr_t = tf.reshape(learning_rate, [1])
        host_call = (host_call_fn, [gs_t, loss_t, lr_t])

    eval_metrics = None
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, logits):
            return {
                "top_1_accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1)),
                "top_2_accuracy": tf.metrics.mean(tf.nn.in_top_k(logits, labels, 2)),
            }

        eval_metrics = (metric_fn, [labels, logits])
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, host_call=host_call, eval_metrics=eval_metrics
    )


tf2_summary = __import__("tensorflow").summary  # the new summaries, beside tf.summary of version 1


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir=FLAGS.model_dir,
        save_checkpoints_steps=1000,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=resnet_model_fn,
        config=config,
        use_tpu=FLAGS.use_tpu,
        train_batch_size=FLAGS.train_batch_size,
        eval_batch_size=FLAGS.eval_batch_size,
    )
    return estimator, ImageInput(True), {"eval_input_fn": ImageInput(False)}


WARD = {
    "others": {
        "the gradients are not all-reduced over the cores": (
            "On a TPU, CrossShardOptimizer wraps the optimizer, and sums them."
        ),
        "nearest-neighbour ops are missing on a TPU": (
            "The program looks for no neighbours: in_top_k compares scores, and runs on the host."
        ),
        "label smoothing is applied in evaluation too": (
            "That is so, but it is a choice, and it has the same effect on a CPU."
        ),
        "the shape of the batch is not known before the program runs": (
            "batch() drops a last batch that is not full."
        ),
        "the schedule needs a Python number, but gets a tensor": (
            "The schedule and the optimizer accept tensors, and the core computes them."
        ),
    },
    "healthy": {
        "optimizer = tf.tpu.CrossShardOptimizer(optimizer)": "It wraps the optimizer only on a TPU, as it should.",
        "return tf.where(step < 100, warm,": "tf.where with three arguments keeps the shape, so a TPU supports it.",
        '"top_2_accuracy": tf.metrics.mean(': "metric_fn runs on the host, which has in_top_k.",
        "self.names = np.array(": "The host may read strings. Only what preprocess returns goes to a TPU.",
        "gs = gs[0]": "Each tensor from the cores has one entry per core, and this line takes the first entry.",
        "label_smoothing=0.1": (
            "The loss is smoothed in evaluation, too. That is a choice, and it has the same effect on a CPU."
        ),
    },
    "faults": [
        {
            "rule": "TPU119",
            "right": 'return {"image": image}, label',
            "wrong": 'return {"image": image, "name": name}, label',
            "at": ("dataset = dataset.map(self.preprocess",),
            "why": "strings cannot be sent to a TPU",
            "comment": "The infeed accepts only numbers, and the model does not need the name.",
        },
        {
            "rule": "TPU212",
            "right": "        if self.is_training:\n            image = tf.image.random_flip_left_right(image)\n",
            "wrong": "        image = tf.image.random_flip_left_right(image)\n",
            "why": "evaluation sees different pictures each time",
            "comment": "Augmentation belongs only in training. Here, two evaluations of the same checkpoint differ.",
            "silent": True,
        },
        {
            "rule": "TPU216",
            "right": "            dataset = dataset.shuffle(NUM_TRAIN).repeat()\n        dataset = dataset.map(self.preprocess, num_parallel_calls=4)\n        dataset = dataset.batch(params[\"batch_size\"], drop_remainder=True)\n",
            "wrong": "            dataset = dataset.repeat()\n        dataset = dataset.map(self.preprocess, num_parallel_calls=4)\n        dataset = dataset.batch(params[\"batch_size\"], drop_remainder=True)\n        if self.is_training:\n            dataset = dataset.shuffle(16)\n",
            "at": ("dataset = dataset.shuffle(16)",),
            "why": "the same examples always stand in the same batch",
            "comment": "Shuffling after batch() mixes whole batches, not examples.",
            "silent": True,
        },
        {
            "rule": "TPU220",
            "right": "        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n        with tf.control_dependencies(update_ops):\n            train_op = optimizer.minimize(loss, global_step)\n",
            "wrong": "        train_op = optimizer.minimize(loss, global_step)\n",
            "at": ("inputs = tf.layers.batch_normalization(",),
            "why": "averages that evaluation uses keep their initial values",
            "comment": "UPDATE_OPS update the averages of batch normalisation, but nothing runs these ops.",
            "silent": True,
        },
        {
            "rule": "TPU111",
            "right": "lr_t = tf.reshape(learning_rate, [1])",
            "wrong": "lr_t = learning_rate",
            "at": (
                "host_call = (host_call_fn, [gs_t, loss_t, lr_t])",
                "lr_t = learning_rate",
                "train_op=train_op, host_call=host_call",
            ),
            "why": "a tensor without a first axis cannot leave the core",
            "comment": "The outfeed concatenates the cores' tensors along their first axis; a scalar has none.",
        },
        {
            "rule": "TPU113",
            "right": '        tf2_summary.scalar("loss", loss[0], step=gs)\n',
            "wrong": '        tf.summary.scalar("loss", loss[0])\n',
            "why": "the old kind of summary, which host_call does not support",
            "comment": (
                "host_call has to write with the tf.summary of TensorFlow 2, within a file writer, and return its "
                "ops."
            ),
        },
    ],
}
