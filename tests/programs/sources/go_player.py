"""A network that plays a board game: params are all flags, labels a dict, moves turned at random in training."""

import functools

import numpy as np
import tensorflow.compat.v1 as tf
from absl import flags

FLAGS = flags.FlagValues()
flags.DEFINE_integer("train_batch_size", 64, "", flag_values=FLAGS)
flags.DEFINE_integer("conv_width", 8, "", flag_values=FLAGS)
flags.DEFINE_integer("trunk_layers", 2, "", flag_values=FLAGS)
flags.DEFINE_float("l2_strength", 1e-4, "", flag_values=FLAGS)
flags.DEFINE_float("value_cost_weight", 1.0, "", flag_values=FLAGS)
flags.DEFINE_float("sgd_momentum", 0.9, "", flag_values=FLAGS)
flags.DEFINE_string("work_dir", "gs://bucket/work", "", flag_values=FLAGS)
flags.DEFINE_bool("use_tpu", True, "", flag_values=FLAGS)
flags.DEFINE_integer("iterations_per_loop", 128, "", flag_values=FLAGS)
flags.DEFINE_integer("num_tpu_cores", 8, "", flag_values=FLAGS)
flags.DEFINE_integer("summary_steps", 256, "", flag_values=FLAGS)
FLAGS(["go"])

N, PLANES = 5, 4


def get_features_planes():
    return PLANES


def mg_conv2d_fn(params):
    return functools.partial(
        tf.layers.conv2d, filters=params["conv_width"], kernel_size=3, padding="same", use_bias=False
    )


def model_inference_fn(features, training, params):
    mg_batchn = functools.partial(
        tf.layers.batch_normalization,
        axis=-1,
        momentum=0.95,
        epsilon=1e-5,
        center=True,
        scale=True,
        fused=True,
        training=training,
    )
    mg_conv2d = mg_conv2d_fn(params)

    def mg_res_layer(inputs):
        first = mg_batchn(mg_conv2d(inputs))
        second = mg_batchn(mg_conv2d(tf.nn.relu(first)))
        return tf.nn.relu(inputs + second)

    shared = tf.nn.relu(mg_batchn(mg_conv2d(features)))
    for _ in range(params["trunk_layers"]):
        shared = mg_res_layer(shared)
    policy = tf.nn.relu(mg_batchn(tf.layers.conv2d(shared, 2, 1, use_bias=False), center=False, scale=False))
    logits = tf.layers.dense(tf.reshape(policy, [-1, 2 * N * N]), N * N + 1)
    value = tf.nn.relu(mg_batchn(tf.layers.conv2d(shared, 1, 1, use_bias=False)))
    value = tf.layers.dense(tf.layers.dense(tf.reshape(value, [-1, N * N]), 16, tf.nn.relu), 1)
    value_output = tf.nn.tanh(tf.reshape(value, [-1]), name="value_output")
    return tf.nn.softmax(logits, name="policy_output"), value_output, logits


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    policy_output, value_output, logits = model_inference_fn(features, training, params)
    policy_cost = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits_v2(
            logits=logits, labels=tf.stop_gradient(labels["pi_tensor"])
        )
    )
    value_cost = params["value_cost_weight"] * tf.reduce_mean(
        tf.square(value_output - labels["value_tensor"])
    )
    reg_vars = [v for v in tf.trainable_variables() if "bias" not in v.name and "beta" not in v.name]
    l2_cost = params["l2_strength"] * tf.add_n([tf.nn.l2_loss(v) for v in reg_vars])
    combined_cost = policy_cost + value_cost + l2_cost
    policy_entropy = -tf.reduce_mean(
        tf.reduce_sum(policy_output * tf.log(policy_output + 1e-9), axis=1)
    )
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.piecewise_constant(global_step, [100, 200], [0.01, 0.001, 0.0001])
    optimizer = tf.train.MomentumOptimizer(learning_rate, params["sgd_momentum"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        train_op = optimizer.minimize(combined_cost, global_step=global_step)  # <- TPU201 TPU220

    def eval_metrics_host_call_fn(
        policy_output, value_output, pi_tensor, policy_cost, value_cost, l2_cost, entropy, step,
        est_mode=tf.estimator.ModeKeys.TRAIN,
    ):
        with tf.variable_scope("metrics"):
            metric_ops = {
                "policy_cost": tf.metrics.mean(policy_cost),
                "value_cost": tf.metrics.mean(value_cost),
                "l2_cost": tf.metrics.mean(l2_cost),
                "policy_entropy": tf.metrics.mean(entropy),
                "policy_top_1": tf.metrics.mean(
                    tf.cast(tf.nn.in_top_k(policy_output, tf.argmax(pi_tensor, 1), 1), tf.float32)
                ),
            }
        if est_mode == tf.estimator.ModeKeys.EVAL:
            return metric_ops
        eval_step = tf.reduce_min(step)
        with tf.compat.v2.summary.create_file_writer(FLAGS.work_dir).as_default():
            with tf.compat.v2.summary.record_if(tf.equal(eval_step % params["summary_steps"], 0)):
                for metric_name, metric_op in metric_ops.items():
                    tf.compat.v2.summary.scalar(metric_name, metric_op[1], step=eval_step)
        return tf.summary.all_v2_summary_ops() + [metric_ops["policy_cost"][1]]

    metric_args = [
        policy_output,
        value_output,
        labels["pi_tensor"],
        tf.reshape(policy_cost, [1]),
        tf.reshape(value_cost, [1]),
        tf.reshape(l2_cost, [1]),
        tf.reshape(policy_entropy, [1]),
        tf.reshape(global_step, [1]),
    ]
    eval_metrics_only_fn = functools.partial(
        eval_metrics_host_call_fn, est_mode=tf.estimator.ModeKeys.EVAL
    )
    host_call_fn = functools.partial(eval_metrics_host_call_fn, est_mode=tf.estimator.ModeKeys.TRAIN)
    return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
        mode=mode,
        predictions={"policy_output": policy_output, "value_output": value_output},
        loss=combined_cost,
        train_op=train_op,
        eval_metrics=(eval_metrics_only_fn, metric_args),
        host_call=(host_call_fn, metric_args),
    )


def get_tpu_input_fn(batch_size, random_rotation=True):
    def _input_fn(params):
        random = np.random.RandomState(0)
        count = 256
        boards = random.randint(0, 2, [count, N, N, get_features_planes()]).astype(np.uint8)
        pi = random.rand(count, N * N + 1).astype(np.float32)
        outcome = random.choice([-1.0, 1.0], count).astype(np.float32)
        dataset = tf.data.Dataset.from_tensor_slices((boards, pi, outcome)).shuffle(256).repeat()

        def parse(x, pi, outcome):
            x = tf.cast(x, tf.float32)
            if random_rotation:
                x = tf.image.rot90(x, tf.random.uniform([], 0, 4, tf.int32))  # <- TPU212
                x.set_shape([N, N, get_features_planes()])
            return x, {"pi_tensor": pi, "value_tensor": outcome}

        return dataset.map(parse).batch(params["batch_size"], drop_remainder=True)

    return _input_fn


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir=FLAGS.work_dir,
        save_checkpoints_secs=300,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=FLAGS.iterations_per_loop, num_shards=FLAGS.num_tpu_cores
        ),
    )
    params = FLAGS.flag_values_dict()
    params = {k: v for k, v in params.items() if k not in ("model_dir",)}
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu,
        model_fn=model_fn,
        config=config,
        train_batch_size=FLAGS.train_batch_size * 1,
        eval_batch_size=FLAGS.train_batch_size * 1,
        params=params,
    )
    return estimator, get_tpu_input_fn(FLAGS.train_batch_size), {
        "eval_input_fn": get_tpu_input_fn(FLAGS.train_batch_size, random_rotation=False)
    }


FAULTS = [
    ("TPU201", "    if params[\"use_tpu\"]:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU111", "        tf.reshape(l2_cost, [1]),", "        l2_cost,"),
    ("TPU212", "get_tpu_input_fn(FLAGS.train_batch_size, random_rotation=False)", "get_tpu_input_fn(FLAGS.train_batch_size)"),
    ("TPU214", "batch(params[\"batch_size\"], drop_remainder=True)", "batch(batch_size // 2, drop_remainder=True)"),
    ("TPU220", "    with tf.control_dependencies(update_ops):", "    if True:"),
]
