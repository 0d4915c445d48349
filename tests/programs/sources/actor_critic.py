"""Reinforcement learning from recorded games: a value and a policy, a target network, two optimizers by scope.

Records are parsed in batches; discounted returns are computed on the core by scan; hooks come with the call.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from absl import flags

from programs import records

FLAGS = flags.FlagValues()
flags.DEFINE_float("gamma", 0.97, "discount", flag_values=FLAGS)
flags.DEFINE_float("entropy_cost", 0.01, "", flag_values=FLAGS)
flags.DEFINE_integer("unroll", 6, "steps of a record", flag_values=FLAGS)
flags.DEFINE_integer("target_period", 10, "", flag_values=FLAGS)
flags.DEFINE_boolean("use_tpu", True, "", flag_values=FLAGS)

SIDE, ACTIONS = 8, 5
_FEATURES = {
    "frames": tf.FixedLenFeature([], tf.string),
    "actions": tf.FixedLenFeature([6], tf.int64),
    "rewards": tf.FixedLenFeature([6], tf.float32),
    "behaviour": tf.FixedLenFeature([6 * ACTIONS], tf.float32),
}


def torso(frames, scope, reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        merged = tf.reshape(frames, [-1, SIDE, SIDE, 1])
        h = tf.layers.conv2d(merged / 255.0, 8, 3, 2, activation=tf.nn.relu, name="conv0")
        h = tf.layers.flatten(h)
        return tf.reshape(tf.layers.dense(h, 24, tf.nn.relu, name="fc"), [-1, FLAGS.unroll, 24])


def value_head(h, scope, reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        return tf.squeeze(tf.layers.dense(h, 1, name="value"), -1)


def discounted(rewards, bootstrap):
    reversed_rewards = tf.reverse(tf.transpose(rewards), [0])
    returns = tf.scan(lambda acc, r: r + FLAGS.gamma * acc, reversed_rewards, initializer=bootstrap)
    return tf.transpose(tf.reverse(returns, [0]))


def copy_every(source, target, step, period):
    pairs = list(zip(sorted(source, key=lambda v: v.name), sorted(target, key=lambda v: v.name)))
    due = tf.cast(tf.equal(tf.mod(step, period), 0), tf.float32)
    return tf.group(*[t.assign(due * s + (1.0 - due) * t) for s, t in pairs])  # <- TPU215


def model_fn(features, labels, mode, params):
    del labels, params
    frames = tf.cast(features["frames"], tf.float32)
    hidden = torso(frames, "online")
    logits = tf.layers.dense(hidden, ACTIONS, name="policy")
    if mode == tf.estimator.ModeKeys.PREDICT:
        policy = tf.nn.softmax(logits)
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions={"policy": policy, "greedy": tf.argmax(logits, 2)})
    values = value_head(hidden, "online")
    target_values = tf.stop_gradient(value_head(torso(frames, "target"), "target"))
    returns = tf.stop_gradient(discounted(features["rewards"], target_values[:, -1]))
    log_pi = tf.nn.log_softmax(logits)
    taken = tf.one_hot(features["actions"], ACTIONS)
    chosen = tf.reduce_sum(log_pi * taken, -1)
    behaviour = tf.reduce_sum(tf.nn.log_softmax(features["behaviour"]) * taken, -1)
    rhos = tf.minimum(1.0, tf.exp(tf.stop_gradient(chosen) - behaviour))
    policy_loss = -tf.reduce_mean(rhos * chosen * tf.stop_gradient(returns - values))
    entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_pi) * log_pi, -1))
    value_loss = tf.losses.huber_loss(returns, values)
    loss = policy_loss + 0.5 * value_loss - FLAGS.entropy_cost * entropy
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(returns, values, chosen):
            return {"value_error": tf.metrics.mean_squared_error(returns, values), "log_pi": tf.metrics.mean(chosen)}

        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(metric_fn, [returns, values, chosen]))
    global_step = tf.train.get_global_step()
    of_policy = tf.trainable_variables("policy")
    of_torso = tf.trainable_variables("online")
    slow = tf.train.RMSPropOptimizer(1e-4, decay=0.99, epsilon=0.1)
    fast = tf.train.MomentumOptimizer(1e-3, 0.9, use_nesterov=True)
    if FLAGS.use_tpu:
        slow, fast = map(tf.tpu.CrossShardOptimizer, (slow, fast))
    update_torso = slow.minimize(loss, var_list=of_torso)
    update_policy = fast.minimize(loss, var_list=of_policy, global_step=global_step)
    with tf.control_dependencies([update_torso, update_policy]):
        train_op = copy_every(of_torso, tf.trainable_variables("target"), global_step, FLAGS.target_period)
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def parse_batch(serialized):
    parsed = tf.io.parse_example(serialized, _FEATURES)
    frames = tf.io.decode_raw(parsed["frames"], tf.uint8)
    parsed["frames"] = tf.reshape(tf.cast(frames, tf.int32), [-1, FLAGS.unroll, SIDE, SIDE])
    parsed["actions"] = tf.cast(parsed["actions"], tf.int32)
    parsed["behaviour"] = tf.reshape(parsed["behaviour"], [-1, FLAGS.unroll, ACTIONS])
    return parsed


def pipeline(pattern, train):
    def input_fn(params):
        batch_size = params["batch_size"]
        files = tf.data.Dataset.list_files(pattern, shuffle=train, seed=None if train else 0)
        ds = files.apply(tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, cycle_length=2, sloppy=train))
        if train:
            ds = ds.apply(tf.data.experimental.shuffle_and_repeat(64))
        ds = ds.batch(batch_size, drop_remainder=True)
        ds = ds.map(parse_batch)  # <- TPU101

        def with_shapes(parsed):
            for tensor in parsed.values():
                tensor.set_shape([batch_size] + tensor.shape.as_list()[1:])
            return parsed

        return ds.map(with_shapes).prefetch(4)

    return input_fn


def game(random):
    return {
        "frames": random.randint(0, 255, 6 * SIDE * SIDE).astype(np.uint8).tobytes(),
        "actions": random.randint(0, ACTIONS, 6),
        "rewards": random.randn(6),
        "behaviour": random.randn(6 * ACTIONS),
    }


def main(data_dir):
    if not FLAGS.is_parsed():
        FLAGS.mark_as_parsed()
    for shard in range(2):
        records.write("%s/games-%d.tfrecord" % (data_dir, shard), 40, game)
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/actor",
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=100, per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn, config=config, use_tpu=FLAGS.use_tpu, train_batch_size=64, eval_batch_size=64, predict_batch_size=8
    )
    return estimator, pipeline(data_dir + "/games-*.tfrecord", True), {"eval_input_fn": pipeline(data_dir + "/games-*.tfrecord", False)}


FAULTS = [
    ("TPU201", "        slow, fast = map(tf.tpu.CrossShardOptimizer, (slow, fast))\n    update_torso = slow.minimize(loss, var_list=of_torso)\n", "        fast = tf.tpu.CrossShardOptimizer(fast)\n    update_torso = slow.minimize(loss, var_list=of_torso)  # <- TPU201\n"),
    ("TPU215", "var_list=of_policy, global_step=global_step)", "var_list=of_policy)"),
    ("TPU101", "            for tensor in parsed.values():\n                tensor.set_shape([batch_size] + tensor.shape.as_list()[1:])\n            return parsed\n", "            return parsed\n"),
    ("TPU119", "    parsed[\"actions\"] = tf.cast(parsed[\"actions\"], tf.int32)\n", "    parsed[\"actions\"] = tf.as_string(parsed[\"actions\"])\n"),
    ("TPU205", "    entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_pi) * log_pi, -1))\n", "    log_pi = tf.Print(log_pi, [log_pi])\n    entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_pi) * log_pi, -1))\n"),
    ("TPU224", "    value_loss = tf.losses.huber_loss(returns, values)\n", "    value_loss = tf.losses.huber_loss(returns, values)\n    value_loss += 0.0 * tf.metrics.mean(values)[1]\n"),
]
