"""Contrastive learning: negatives gathered from all cores, LARS, batch normalisation over all cores."""

import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from tensorflow.python.tpu import tpu_function  # noqa: F401
from tensorflow.compiler.tf2xla.python import xla

LARGE_NUM = 1e9
SIDE, DIM = 16, 8


def tpu_cross_replica_concat(tensor, tpu_context=None):
    if tpu_context is None or tpu_context.num_replicas <= 1:
        return tensor
    num_replicas = tpu_context.num_replicas
    with tf.name_scope("tpu_cross_replica_concat"):
        ext_tensor = tf.scatter_nd(
            indices=[[xla.replica_id()]],
            updates=[tensor],
            shape=[num_replicas] + tensor.shape.as_list(),
        )
        ext_tensor = tf.tpu.cross_replica_sum(ext_tensor)
        return tf.reshape(ext_tensor, [-1] + ext_tensor.shape.as_list()[2:])


def add_contrastive_loss(hidden, temperature=0.5, tpu_context=None):
    hidden = tf.math.l2_normalize(hidden, -1)
    hidden1, hidden2 = tf.split(hidden, 2, 0)
    batch_size = tf.shape(hidden1)[0]
    if tpu_context is not None:
        hidden1_large = tpu_cross_replica_concat(hidden1, tpu_context)
        hidden2_large = tpu_cross_replica_concat(hidden2, tpu_context)
        enlarged_batch_size = tf.shape(hidden1_large)[0]
        replica_id = tf.cast(tf.cast(xla.replica_id(), tf.uint32), tf.int32)
        labels_idx = tf.range(batch_size) + replica_id * batch_size
        labels = tf.one_hot(labels_idx, enlarged_batch_size * 2)
        masks = tf.one_hot(labels_idx, enlarged_batch_size)
    else:
        hidden1_large, hidden2_large = hidden1, hidden2
        labels = tf.one_hot(tf.range(batch_size), batch_size * 2)
        masks = tf.one_hot(tf.range(batch_size), batch_size)
    logits_aa = tf.matmul(hidden1, hidden1_large, transpose_b=True) / temperature - masks * LARGE_NUM
    logits_bb = tf.matmul(hidden2, hidden2_large, transpose_b=True) / temperature - masks * LARGE_NUM
    logits_ab = tf.matmul(hidden1, hidden2_large, transpose_b=True) / temperature
    logits_ba = tf.matmul(hidden2, hidden1_large, transpose_b=True) / temperature
    loss_a = tf.losses.softmax_cross_entropy(labels, tf.concat([logits_ab, logits_aa], 1))
    loss_b = tf.losses.softmax_cross_entropy(labels, tf.concat([logits_ba, logits_bb], 1))
    return loss_a + loss_b, logits_ab, labels


class LARSOptimizer(tf.train.Optimizer):
    def __init__(self, learning_rate, momentum=0.9, weight_decay=1e-6, eeta=0.001, name="LARSOptimizer"):
        super().__init__(False, name)
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.eeta = eeta

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if global_step is None:
            global_step = tf.train.get_or_create_global_step()
        new_global_step = global_step + 1
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = param.op.name
            v = tf.get_variable(
                name=param_name + "/Momentum",
                shape=param.shape.as_list(),
                dtype=tf.float32,
                trainable=False,
                initializer=tf.zeros_initializer(),
            )
            grad += self.weight_decay * param
            w_norm = tf.norm(param, ord=2)
            g_norm = tf.norm(grad, ord=2)
            trust_ratio = tf.where(
                tf.math.greater(w_norm, 0),
                tf.where(tf.math.greater(g_norm, 0), (self.eeta * w_norm / g_norm), 1.0),
                1.0,
            )
            scaled_lr = self.learning_rate * trust_ratio
            next_v = tf.multiply(self.momentum, v) + scaled_lr * grad
            next_param = param - next_v
            assignments.extend([param.assign(next_param), v.assign(next_v)])
        return tf.group(*assignments, [global_step.assign(new_global_step)], name=name)


class BatchNormalization(tf.layers.BatchNormalization):
    """Batch normalisation whose moments are those of all cores."""

    def _cross_replica_average(self, t, num_shards):
        return tf.tpu.cross_replica_sum(t) / num_shards

    def _calculate_mean_and_var(self, inputs, axes, keepdims=None, mask=None, **kw):
        kwargs = {"mask": mask} if mask is not None else {}
        mean, variance = super()._calculate_mean_and_var(inputs, axes, keepdims, **kwargs)
        num_shards = tpu_function.get_tpu_context().number_of_shards or 1
        if num_shards > 1:
            mean_sq = tf.math.square(mean)
            group_mean = self._cross_replica_average(mean, num_shards)
            mean_of_sq = self._cross_replica_average(variance + mean_sq, num_shards)
            return group_mean, mean_of_sq - tf.math.square(group_mean)
        return mean, variance


def build_model_fn(temperature, num_classes, num_train_examples):
    def model_fn(features, labels, mode, params=None):
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        num_transforms = 2 if is_training else 1
        features_list = tf.split(features, num_or_size_splits=num_transforms, axis=-1)
        features = tf.concat(features_list, 0)
        with tf.variable_scope("base_model"):
            x = tf.layers.conv2d(features, 8, 3, 2, padding="same", use_bias=False)
            x = BatchNormalization(axis=-1, fused=False)(x, training=is_training)
            hiddens = tf.reduce_mean(tf.nn.relu(x), [1, 2])
        with tf.variable_scope("head_contrastive"):
            projected = tf.layers.dense(tf.layers.dense(hiddens, DIM, tf.nn.relu), DIM)
        with tf.variable_scope("head_supervised"):
            first = hiddens[: tf.shape(hiddens)[0] // num_transforms] if is_training else hiddens
            logits_sup = tf.layers.dense(tf.stop_gradient(first), num_classes)
        sup_loss = tf.losses.softmax_cross_entropy(labels["labels"], logits_sup, weights=labels["mask"])

        if mode == tf.estimator.ModeKeys.TRAIN:
            contrast_loss, logits_con, labels_con = add_contrastive_loss(
                projected, temperature, tpu_context=params["context"]
            )
            loss = tf.losses.get_total_loss()
            global_step = tf.train.get_or_create_global_step()
            learning_rate = tf.train.cosine_decay(0.3, global_step, 1000)
            contrast_acc = tf.reduce_mean(
                tf.cast(tf.equal(tf.argmax(labels_con, 1), tf.argmax(logits_con, axis=1)), tf.float32)
            )

            def host_call_fn(gs, g_l, c_l, c_a, lr):
                gs = gs[0]
                with tf2.summary.create_file_writer("/tmp/simclr", max_queue=100).as_default():
                    with tf2.summary.record_if(True):
                        tf2.summary.scalar("train_loss", g_l[0], step=gs)
                        tf2.summary.scalar("contrast_loss", c_l[0], step=gs)
                        tf2.summary.scalar("contrast_acc", c_a[0], step=gs)
                        tf2.summary.scalar("learning_rate", lr[0], step=gs)
                return tf.summary.all_v2_summary_ops()

            inputs = [global_step, loss, contrast_loss, contrast_acc, learning_rate]
            host_call = (host_call_fn, [tf.reshape(t, [1]) for t in inputs])
            optimizer = LARSOptimizer(learning_rate)
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            control_deps = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            with tf.control_dependencies(control_deps):
                train_op = optimizer.minimize(  # <- TPU201
                    loss, global_step=global_step, var_list=tf.trainable_variables()
                )

            def scaffold_fn():
                return tf.train.Scaffold()

            return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
                mode=mode, train_op=train_op, loss=loss, scaffold_fn=scaffold_fn, host_call=host_call
            )

        def metric_fn(logits_sup, labels_sup, mask, **kws):
            metrics = {k: tf.metrics.mean(v, weights=mask) for k, v in kws.items()}
            metrics["label_top_1_accuracy"] = tf.metrics.accuracy(
                tf.argmax(labels_sup, 1), tf.argmax(logits_sup, axis=1), weights=mask
            )
            return metrics

        metrics = {
            "logits_sup": logits_sup,
            "labels_sup": labels["labels"],
            "mask": labels["mask"],
            "regularization_loss": tf.fill((params["batch_size"],), tf.losses.get_regularization_loss()),
        }
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode=mode, loss=sup_loss, eval_metrics=(metric_fn, metrics), scaffold_fn=None
        )

    return model_fn


def build_input_fn(is_training):
    def input_fn(params):
        def map_fn(n):
            image = tf.random.stateless_uniform([SIDE, SIDE, 3], tf.stack([n, n]))
            if is_training:
                xs = [tf.image.random_flip_left_right(image) for _ in range(2)]
                image = tf.concat(xs, -1)
            return image, tf.one_hot(n % 10, 10), 1.0

        dataset = tf.data.Dataset.range(256)
        if is_training:
            dataset = dataset.shuffle(256).repeat(-1)
        dataset = dataset.map(map_fn, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        if is_training:
            dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        else:
            dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        images, labels, mask = tf.data.make_one_shot_iterator(dataset).get_next()
        return images, {"labels": labels, "mask": mask}

    return input_fn


def main(data_dir):
    run_config = tf.estimator.tpu.RunConfig(
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=100,
            eval_training_input_configuration=tf.estimator.tpu.InputPipelineConfig.SLICED,
        ),
        model_dir="/tmp/simclr",
        save_summary_steps=100,
        save_checkpoints_steps=1000,
        master=None,
        cluster=None,
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        build_model_fn(0.5, 10, 256),
        config=run_config,
        train_batch_size=32,
        eval_batch_size=32,
        use_tpu=True,
    )
    return estimator, build_input_fn(True), {"eval_input_fn": build_input_fn(False)}


FAULTS = [
    ("TPU201", "            optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU111", "[tf.reshape(t, [1]) for t in inputs]", "inputs"),
    ("TPU113", "                    with tf2.summary.record_if(True):\n                        tf2.summary.scalar(\"train_loss\", g_l[0], step=gs)", "                    with tf2.summary.record_if(True):\n                        tf.summary.scalar(\"train_loss\", g_l[0])"),
    ("TPU202", "            hiddens = tf.reduce_mean(tf.nn.relu(x), [1, 2])", "            hiddens = tf.reduce_mean(tf.image.resize_bicubic(x, [4, 4]), [1, 2])"),
    ("TPU207", "            hiddens = tf.reduce_mean(tf.nn.relu(x), [1, 2])", "            hiddens = tf.reduce_mean(tf.nn.relu(x), [1, 2])\n            hiddens += tf.reduce_mean(tf.cast(tf.io.decode_jpeg(tf.io.encode_jpeg(tf.cast(features[0], tf.uint8))), tf.float32))"),
]
