"""A residual network for images, as the reference models of the time had it.

Transposed input [H, W, C, N], bfloat16, weight decay, a host_call with summaries, TFRecords of JPEGs.
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from absl import flags

from programs import records

FLAGS = flags.FlagValues()
flags.DEFINE_bool("use_tpu", True, "", flag_values=FLAGS)
flags.DEFINE_string("model_dir", "gs://bucket/resnet", "", flag_values=FLAGS)
flags.DEFINE_string("data_dir", None, "", flag_values=FLAGS)
flags.DEFINE_integer("train_steps", 112590, "", flag_values=FLAGS)
flags.DEFINE_integer("train_batch_size", 32, "", flag_values=FLAGS)
flags.DEFINE_integer("eval_batch_size", 16, "", flag_values=FLAGS)
flags.DEFINE_integer("num_cores", 8, "", flag_values=FLAGS)
flags.DEFINE_integer("iterations_per_loop", 1251, "", flag_values=FLAGS)
flags.DEFINE_bool("transpose_input", True, "", flag_values=FLAGS)
flags.DEFINE_string("precision", "bfloat16", "", flag_values=FLAGS)
flags.DEFINE_float("base_learning_rate", 0.1, "", flag_values=FLAGS)
FLAGS(["resnet"])

IMAGE_SIZE = 32
NUM_CLASSES = 8
MEAN_RGB = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STDDEV_RGB = [0.229 * 255, 0.224 * 255, 0.225 * 255]
LR_SCHEDULE = [(1.0, 5), (0.1, 30), (0.01, 60), (0.001, 80)]


def learning_rate_schedule(current_epoch):
    scaled_lr = FLAGS.base_learning_rate * (FLAGS.train_batch_size / 256.0)
    decay_rate = scaled_lr * LR_SCHEDULE[0][0] * current_epoch / LR_SCHEDULE[0][1]
    for mult, start_epoch in LR_SCHEDULE:
        decay_rate = tf.where(current_epoch < start_epoch, decay_rate, scaled_lr * mult)
    return decay_rate


def batch_norm_relu(inputs, is_training, relu=True, init_zero=False):
    gamma = tf.zeros_initializer() if init_zero else tf.ones_initializer()
    inputs = tf.layers.batch_normalization(
        inputs=inputs,
        axis=3,
        momentum=0.9,
        epsilon=1e-5,
        center=True,
        scale=True,
        training=is_training,
        fused=True,
        gamma_initializer=gamma,
    )
    return tf.nn.relu(inputs) if relu else inputs


def fixed_padding(inputs, kernel_size):
    pad_total = kernel_size - 1
    pad_beg = pad_total // 2
    pad_end = pad_total - pad_beg
    return tf.pad(inputs, [[0, 0], [pad_beg, pad_end], [pad_beg, pad_end], [0, 0]])


def conv2d_fixed_padding(inputs, filters, kernel_size, strides):
    if strides > 1:
        inputs = fixed_padding(inputs, kernel_size)
    return tf.layers.conv2d(
        inputs=inputs,
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=("SAME" if strides == 1 else "VALID"),
        use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(),
    )


def residual_block(inputs, filters, is_training, strides):
    shortcut = conv2d_fixed_padding(inputs, filters, 1, strides)
    shortcut = batch_norm_relu(shortcut, is_training, relu=False)
    inputs = conv2d_fixed_padding(inputs, filters, 3, strides)
    inputs = batch_norm_relu(inputs, is_training)
    inputs = conv2d_fixed_padding(inputs, filters, 3, 1)
    inputs = batch_norm_relu(inputs, is_training, relu=False, init_zero=True)
    return tf.nn.relu(inputs + shortcut)


def network(inputs, is_training):
    inputs = conv2d_fixed_padding(inputs, 8, 3, 2)
    inputs = tf.identity(inputs, "initial_conv")
    inputs = batch_norm_relu(inputs, is_training)
    inputs = tf.layers.max_pooling2d(inputs=inputs, pool_size=3, strides=2, padding="SAME")
    inputs = residual_block(inputs, 8, is_training, 1)
    inputs = residual_block(inputs, 16, is_training, 2)
    pool_size = (inputs.shape[1], inputs.shape[2])
    inputs = tf.layers.average_pooling2d(inputs, pool_size, strides=1, padding="VALID")
    inputs = tf.reshape(inputs, [-1, 16])
    return tf.layers.dense(inputs, NUM_CLASSES, kernel_initializer=tf.random_normal_initializer(stddev=0.01))


def resnet_model_fn(features, labels, mode, params):
    if isinstance(features, dict):
        features = features["feature"]
    if FLAGS.transpose_input and mode != tf.estimator.ModeKeys.PREDICT:
        features = tf.transpose(features, [3, 0, 1, 2])  # HWCN to NHWC
    features -= tf.constant(MEAN_RGB, shape=[1, 1, 3], dtype=features.dtype)
    features /= tf.constant(STDDEV_RGB, shape=[1, 1, 3], dtype=features.dtype)

    if FLAGS.precision == "bfloat16":
        with tf.tpu.bfloat16_scope():
            logits = network(features, mode == tf.estimator.ModeKeys.TRAIN)
        logits = tf.cast(logits, tf.float32)
    else:
        logits = network(features, mode == tf.estimator.ModeKeys.TRAIN)

    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {
            "classes": tf.argmax(logits, axis=1),
            "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
        }
        return tf.estimator.EstimatorSpec(
            mode=mode,
            predictions=predictions,
            export_outputs={"classify": tf.estimator.export.PredictOutput(predictions)},
        )

    batch_size = params["batch_size"]
    one_hot_labels = tf.one_hot(labels, NUM_CLASSES)
    cross_entropy = tf.losses.softmax_cross_entropy(
        logits=logits, onehot_labels=one_hot_labels, label_smoothing=0.1
    )
    loss = cross_entropy + 1e-4 * tf.add_n(
        [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_normalization" not in v.name]
    )

    host_call = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        global_step = tf.train.get_global_step()
        steps_per_epoch = 1281167 / FLAGS.train_batch_size
        current_epoch = tf.cast(global_step, tf.float32) / steps_per_epoch
        learning_rate = learning_rate_schedule(current_epoch)
        optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=0.9, use_nesterov=True)
        if FLAGS.use_tpu:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step)  # <- TPU201 TPU215 TPU220

        def host_call_fn(gs, loss, lr, ce):
            gs = gs[0]
            with tf2.summary.create_file_writer(
                FLAGS.model_dir, max_queue=FLAGS.iterations_per_loop
            ).as_default():
                with tf2.summary.record_if(True):
                    tf2.summary.scalar("loss", loss[0], step=gs)
                    tf2.summary.scalar("learning_rate", lr[0], step=gs)
                    tf2.summary.scalar("current_epoch", ce[0], step=gs)
                return tf.summary.all_v2_summary_ops()

        gs_t = tf.reshape(global_step, [1])
        loss_t = tf.reshape(loss, [1])
        lr_t = tf.reshape(learning_rate, [1])
        ce_t = tf.reshape(current_epoch, [1])
        host_call = (host_call_fn, [gs_t, loss_t, lr_t, ce_t])
    else:
        train_op = None

    eval_metrics = None
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, logits):
            predictions = tf.argmax(logits, axis=1)
            top_1_accuracy = tf.metrics.accuracy(labels, predictions)
            in_top_5 = tf.cast(tf.nn.in_top_k(logits, labels, 5), tf.float32)
            top_5_accuracy = tf.metrics.mean(in_top_5)
            return {"top_1_accuracy": top_1_accuracy, "top_5_accuracy": top_5_accuracy}

        eval_metrics = (metric_fn, [labels, logits])

    tf.logging.info("batch size %d", batch_size)
    return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
        mode=mode, loss=loss, train_op=train_op, host_call=host_call, eval_metrics=eval_metrics
    )


class ImageNetInput:
    def __init__(self, is_training, use_bfloat16, data_dir):
        self.is_training = is_training
        self.dtype = tf.bfloat16 if use_bfloat16 else tf.float32
        self.data_dir = data_dir

    def set_shapes(self, batch_size, images, labels):
        if FLAGS.transpose_input:
            images.set_shape(images.get_shape().merge_with(tf.TensorShape([None, None, None, batch_size])))
            labels.set_shape(labels.get_shape().merge_with(tf.TensorShape([batch_size])))
        else:
            images.set_shape(images.get_shape().merge_with(tf.TensorShape([batch_size, None, None, None])))
            labels.set_shape(labels.get_shape().merge_with(tf.TensorShape([batch_size])))
        return images, labels

    def preprocess(self, image_bytes):
        image = tf.image.decode_jpeg(image_bytes, channels=3)
        if self.is_training:
            bbox = tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
            begin, size, _ = tf.image.sample_distorted_bounding_box(tf.shape(image), bbox)
            image = tf.slice(image, begin, size)
            image = tf.image.random_flip_left_right(image)
        image = tf.image.resize_bicubic([image], [IMAGE_SIZE, IMAGE_SIZE])[0]
        image = tf.reshape(image, [IMAGE_SIZE, IMAGE_SIZE, 3])
        return tf.image.convert_image_dtype(image, dtype=self.dtype)

    def parse_record(self, value):
        keys_to_features = {
            "image/encoded": tf.FixedLenFeature((), tf.string, ""),
            "image/class/label": tf.FixedLenFeature([], tf.int64, -1),
        }
        parsed = tf.parse_single_example(value, keys_to_features)
        image = self.preprocess(tf.reshape(parsed["image/encoded"], shape=[]))
        label = tf.cast(tf.reshape(parsed["image/class/label"], shape=[]), dtype=tf.int32) - 1
        return image, label

    def input_fn(self, params):
        batch_size = params["batch_size"]
        pattern = os.path.join(self.data_dir, "train-*" if self.is_training else "validation-*")
        dataset = tf.data.Dataset.list_files(pattern, shuffle=self.is_training)
        if self.is_training:
            dataset = dataset.repeat()
        dataset = dataset.apply(
            tf.data.experimental.parallel_interleave(
                lambda name: tf.data.TFRecordDataset(name, buffer_size=8 * 1024 * 1024),
                cycle_length=4,
                sloppy=True,
            )
        )
        if self.is_training:
            dataset = dataset.shuffle(1024)
        dataset = dataset.apply(  # <- TPU218
            tf.data.experimental.map_and_batch(
                self.parse_record,
                batch_size=batch_size,
                num_parallel_batches=8,
                drop_remainder=True,
            )
        )
        if FLAGS.transpose_input:
            dataset = dataset.map(
                lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels),
                num_parallel_calls=8,
            )
        dataset = dataset.map(lambda images, labels: self.set_shapes(batch_size, images, labels))
        return dataset.prefetch(tf.data.experimental.AUTOTUNE)


def example(random):
    with tf.device("/cpu:0"):
        picture = random.randint(0, 255, [40, 48, 3]).astype(np.uint8)
        encoded = tf2.io.encode_jpeg(picture).numpy()
    return {"image/encoded": encoded, "image/class/label": random.randint(1, NUM_CLASSES + 1)}


def main(data_dir):
    records.write(f"{data_dir}/train-00000-of-00001", 64, example)
    records.write(f"{data_dir}/validation-00000-of-00001", 32, example)
    config = tf.estimator.tpu.RunConfig(
        model_dir=FLAGS.model_dir,
        save_checkpoints_steps=max(600, FLAGS.iterations_per_loop) * 4 - 4,
        log_step_count_steps=64,
        session_config=tf.ConfigProto(
            graph_options=tf.GraphOptions(
                rewrite_options=tf2.compat.v1.GraphOptions().rewrite_options
            )
        ),
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=FLAGS.iterations_per_loop,
            num_shards=FLAGS.num_cores,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    resnet_classifier = tf.estimator.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu,
        model_fn=resnet_model_fn,
        config=config,
        train_batch_size=FLAGS.train_batch_size,
        eval_batch_size=FLAGS.eval_batch_size,
        export_to_tpu=False,
    )
    imagenet_train, imagenet_eval = (
        ImageNetInput(is_training, FLAGS.precision == "bfloat16", data_dir)
        for is_training in (True, False)
    )
    return resnet_classifier, imagenet_train.input_fn, {"eval_input_fn": imagenet_eval.input_fn}


FAULTS = [
    ("TPU201", "        if FLAGS.use_tpu:\n            optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU220", "with tf.control_dependencies(update_ops):", "with tf.control_dependencies([]):"),
    ("TPU111", "loss_t = tf.reshape(loss, [1])", "loss_t = loss"),
    ("TPU215", "optimizer.minimize(loss, global_step)", "optimizer.minimize(loss)"),
    ("TPU218", "            dataset = dataset.repeat()\n", "            dataset = dataset.skip(0)\n"),
]
