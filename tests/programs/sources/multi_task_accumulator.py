"""Two tasks on one body: labels as a dict, gradients gathered over four steps, train_and_evaluate's specs."""

import numpy as np
import tensorflow.compat.v1 as tf

FEATURES, CLASSES, ACCUMULATE = 20, 5, 4


class GradientAccumulationOptimizer(tf.train.Optimizer):
    """Applies the mean gradient of several steps at the last of them."""

    def __init__(self, optimizer, steps):
        super().__init__(False, "GradientAccumulation")
        self._opt, self._steps = optimizer, steps

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        accumulators, sums = [], []
        for grad, var in grads_and_vars:
            with tf.variable_scope("accum", reuse=tf.AUTO_REUSE):
                acc = tf.get_variable(
                    var.op.name, var.shape, initializer=tf.zeros_initializer(), trainable=False
                )
            accumulators.append((acc, var))
            sums.append(acc.assign_add(grad / self._steps))

        def apply():
            with tf.control_dependencies([self._opt.apply_gradients([(a.read_value(), v) for a, v in accumulators])]):
                return tf.group(*[a.assign(tf.zeros_like(a)) for a, _ in accumulators])

        with tf.control_dependencies(sums):
            last = tf.equal(tf.floormod(global_step + 1, self._steps), 0)
            update = tf.cond(last, apply, tf.no_op)
        with tf.control_dependencies([update]):
            return tf.assign_add(global_step, 1, name=name)


def model_fn(features, labels, mode, params):
    with tf.variable_scope("body"):
        net = tf.layers.dense(features["x"], 32, tf.nn.relu)
        net = tf.layers.dropout(net, params["dropout"], training=mode == tf.estimator.ModeKeys.TRAIN)
    with tf.variable_scope("classes"):
        logits = tf.layers.dense(net, CLASSES)
    with tf.variable_scope("score"):
        score = tf.squeeze(tf.layers.dense(net, 1), axis=-1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1), "score": score})
    class_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels["class"], logits=logits)
    score_losses = tf.square(score - labels["score"])  # <- TPU227
    weight = labels["weight"]
    per_example = class_losses + params["score_weight"] * score_losses
    loss = tf.reduce_sum(per_example * weight) / tf.reduce_sum(weight)

    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(class_label, logits, score_losses, weight):
            return {
                "accuracy": tf.metrics.accuracy(class_label, tf.argmax(logits, 1), weight),
                "score_error": tf.metrics.mean(score_losses, weight),
            }

        metrics = (metric_fn, [labels["class"], logits, score_losses, weight])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)

    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdagradOptimizer(params["learning_rate"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    optimizer = GradientAccumulationOptimizer(optimizer, ACCUMULATE)
    train_op = optimizer.minimize(loss, step)  # <- TPU201

    def host_call_fn(step, losses):
        step = step[0]
        with tf.compat.v2.summary.create_file_writer(params["model_dir"]).as_default():
            tf.compat.v2.summary.scalar("class_loss", tf.reduce_mean(losses), step=step)
            return tf.summary.all_v2_summary_ops()

    host_call = (host_call_fn, [tf.reshape(step, [1]), tf.reshape(tf.reduce_mean(class_losses), [1])])
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)  # <- TPU111


def make_input_fn(count, training):
    def input_fn(params):
        random = np.random.RandomState(3)
        features = {"x": random.randn(count, FEATURES).astype(np.float32)}
        labels = {
            "class": random.randint(0, CLASSES, count).astype(np.int32),
            "score": random.randn(count).astype(np.float32),
            "weight": np.ones(count, np.float32),
        }
        dataset = tf.data.Dataset.from_tensor_slices((features, labels))  # <- TPU119
        if training:
            dataset = dataset.shuffle(count).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(2)

    return input_fn


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/tasks", tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100)
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        params={"dropout": 0.1, "learning_rate": 0.1, "score_weight": 0.5, "model_dir": config.model_dir},
        config=config,
        train_batch_size=64,
        eval_batch_size=32,
    )
    train_spec = tf.estimator.TrainSpec(input_fn=make_input_fn(512, True), max_steps=1000)
    eval_spec = tf.estimator.EvalSpec(input_fn=make_input_fn(128, False), steps=4, throttle_secs=60)
    return estimator, train_spec.input_fn, {"eval_input_fn": eval_spec.input_fn}


FAULTS = [
    ("TPU201", "            with tf.control_dependencies([self._opt.apply_gradients([(a.read_value(), v) for a, v in accumulators])]):", "            with tf.control_dependencies([v.assign_sub(0.1 * a.read_value()) for a, v in accumulators]):"),
    ("TPU227", "score = tf.squeeze(tf.layers.dense(net, 1), axis=-1)", "score = tf.layers.dense(net, 1)"),
    ("TPU224", "    per_example = class_losses", "    tf.identity(tf.metrics.mean(class_losses)[1], name=\"train_loss\")\n    per_example = class_losses"),
    ("TPU111", "[tf.reshape(step, [1]), tf.reshape(tf.reduce_mean(class_losses), [1])]", "[step, tf.reshape(tf.reduce_mean(class_losses), [1])]"),
    ("TPU119", "            \"weight\": np.ones(count, np.float32),", "            \"weight\": np.ones(count, np.float32),\n            \"id\": [\"example %d\" % n for n in range(count)],"),
]
