"""Message passing over padded molecules: edges with flat numbers, segment sums, several targets, a learned readout.

A config object in params; input_fn is a method of a data class, batches with padded_batch to full shapes.
"""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

NODES, EDGES, ATOM, TARGETS = 9, 16, 6, 3

GraphsTuple = collections.namedtuple("GraphsTuple", "nodes senders receivers edges node_mask edge_mask")


class Config(object):
    hidden = 16
    rounds = 3
    learning_rate = 1e-3
    weight_decay = 1e-5
    use_tpu = True


def mlp(x, sizes, scope):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        for i, size in enumerate(sizes):
            x = tf.layers.dense(x, size, activation=tf.nn.relu if i + 1 < len(sizes) else None, name="layer%d" % i)
    return x


def gather_nodes(nodes, index):
    # One gather for the whole batch: the numbers are shifted by each molecule's first node.
    batch = nodes.shape[0].value if hasattr(nodes.shape[0], "value") else nodes.shape[0]
    offsets = tf.range(batch)[:, tf.newaxis] * NODES
    flat = tf.reshape(nodes, [-1, nodes.shape[-1]])
    return tf.gather(flat, index + offsets), tf.reshape(index + offsets, [-1])


def message_round(graph, nodes, hidden, number):
    sent, _ = gather_nodes(nodes, graph.senders)
    received, ids = gather_nodes(nodes, graph.receivers)
    messages = mlp(tf.concat([sent, received, graph.edges], axis=-1), [hidden, hidden], "message_%d" % number)
    messages *= graph.edge_mask[..., tf.newaxis]
    total = tf.math.unsorted_segment_sum(tf.reshape(messages, [-1, hidden]), ids, num_segments=nodes.shape[0] * NODES)
    total = tf.reshape(total, [-1, NODES, hidden])
    gate = tf.sigmoid(tf.layers.dense(tf.concat([nodes, total], -1), hidden, name="gate_%d" % number))
    return (gate * nodes + (1.0 - gate) * tf.tanh(total)) * graph.node_mask[..., tf.newaxis]


def set_to_set(nodes, mask, hidden):
    state = tf.zeros([nodes.shape[0], hidden])
    query = tf.zeros([nodes.shape[0], 2 * hidden])
    cell = tf.nn.rnn_cell.LSTMCell(hidden, name="readout")
    carried = cell.zero_state(int(nodes.shape[0]), tf.float32)
    for _ in range(2):
        state, carried = cell(query, carried)
        scores = tf.einsum("bnh,bh->bn", nodes, state) + (1.0 - mask) * -1e9
        read = tf.einsum("bn,bnh->bh", tf.nn.softmax(scores), nodes)
        query = tf.concat([state, read], axis=1)
    return query


def model_fn(features, labels, mode, config, params):
    hp = params["config"]
    graph = GraphsTuple(**{name: features[name] for name in GraphsTuple._fields})
    nodes = mlp(graph.nodes, [hp.hidden], "embed")
    for number in range(hp.rounds):
        nodes = message_round(graph, nodes, hp.hidden, number)
    outputs = mlp(set_to_set(nodes, graph.node_mask, hp.hidden), [hp.hidden, TARGETS], "predict")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=dict(outputs=outputs))
    known = tf.cast(tf.not_equal(labels, -1.0), tf.float32)
    error = tf.abs(outputs - labels) * known
    loss = tf.reduce_sum(error) / (tf.reduce_sum(known) + 1e-6)
    loss += hp.weight_decay * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "bias" not in v.name])
    train_op, eval_metrics = None, None
    if mode == tf.estimator.ModeKeys.TRAIN:
        step = tf.train.get_global_step()
        opt = tf.train.AdamOptimizer(tf.train.exponential_decay(hp.learning_rate, step, 1000, 0.9, staircase=True))
        opt = tf.tpu.CrossShardOptimizer(opt) if hp.use_tpu else opt
        train_op = opt.minimize(loss, global_step=step)
    else:

        def metric_fn(error, known):  # <- TPU112
            names = ["mu", "alpha", "homo"]
            return {"mae_" + n: tf.metrics.mean(error[:, i], weights=known[:, i]) for i, n in enumerate(names)}

        eval_metrics = (metric_fn, {"error": error, "known": known})
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, eval_metrics=eval_metrics)


class Molecules(object):
    def __init__(self, split, count):
        self.split, self.count = split, count

    def _one(self, random):
        nodes, edges = random.randint(3, NODES), random.randint(4, EDGES)
        return {
            "nodes": random.rand(nodes, ATOM).astype(np.float32),
            "senders": random.randint(0, nodes, edges).astype(np.int32),
            "receivers": random.randint(0, nodes, edges).astype(np.int32),
            "edges": random.rand(edges, 2).astype(np.float32),
            "node_mask": np.ones(nodes, np.float32),
            "edge_mask": np.ones(edges, np.float32),
        }, random.randn(TARGETS).astype(np.float32)

    def generator(self):
        random = np.random.RandomState(len(self.split))
        for _ in range(self.count):
            yield self._one(random)

    def __call__(self, params):
        types = {"nodes": tf.float32, "senders": tf.int32, "receivers": tf.int32, "edges": tf.float32, "node_mask": tf.float32, "edge_mask": tf.float32}
        shapes = {"nodes": [None, ATOM], "senders": [None], "receivers": [None], "edges": [None, 2], "node_mask": [None], "edge_mask": [None]}
        full = {"nodes": [NODES, ATOM], "senders": [EDGES], "receivers": [EDGES], "edges": [EDGES, 2], "node_mask": [NODES], "edge_mask": [EDGES]}
        ds = tf.data.Dataset.from_generator(self.generator, (types, tf.float32), (shapes, [TARGETS]))
        if self.split == "train":
            ds = ds.cache().shuffle(64).repeat()
        return ds.padded_batch(params["batch_size"], (full, [TARGETS]), drop_remainder=True).prefetch(1)


def main(data_dir):
    run_config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/molecules", tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=200, num_shards=8)
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        config=run_config,
        params={"config": Config()},
        train_batch_size=64,
        eval_batch_size=32,
        predict_batch_size=32,
        use_tpu=Config.use_tpu,
    )
    return estimator, Molecules("train", 80), {"eval_input_fn": Molecules("validation", 64)}


FAULTS = [
    ("TPU201", "        opt = tf.tpu.CrossShardOptimizer(opt) if hp.use_tpu else opt\n        train_op = opt.minimize(loss, global_step=step)\n", "        train_op = opt.minimize(loss, global_step=step)\n"),
    ("TPU102", "        return ds.padded_batch(params[\"batch_size\"], (full, [TARGETS]), drop_remainder=True).prefetch(1)", "        return ds.padded_batch(params[\"batch_size\"], (shapes, [TARGETS]), drop_remainder=True).prefetch(1)"),
    ("TPU112", "eval_metrics = (metric_fn, {\"error\": error, \"known\": known})", "eval_metrics = (metric_fn, {\"errors\": error, \"known\": known})"),
    ("TPU216", "            ds = ds.cache().shuffle(64).repeat()\n        return ds.padded_batch(params[\"batch_size\"], (full, [TARGETS]), drop_remainder=True).prefetch(1)", "            ds = ds.cache().repeat()\n        return ds.padded_batch(params[\"batch_size\"], (full, [TARGETS]), drop_remainder=True).shuffle(4)"),
    ("TPU219", "opt.minimize(loss, global_step=step)", "tf.assign_add(step, 1)"),
    ("TPU120", "drop_remainder=True).prefetch(1)", "drop_remainder=True).map(lambda x, y: (dict(x, kind=tf.cast(x[\"senders\"], tf.uint16)), y))"),
]
