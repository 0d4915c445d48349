"""Language-model pretraining: factorized embeddings, layers that share weights, LAMB, accumulated gradients.

Masked positions are gathered with flat offsets; the metric_fn takes a list; files are read interleaved.
"""

import re

import numpy as np
import tensorflow.compat.v1 as tf

from programs import records

LENGTH, MASKED, VOCAB, EMBEDDING, HIDDEN, HEADS, LAYERS = 16, 4, 64, 16, 32, 2, 3


def get_shape_list(tensor, expected_rank=None):
    if expected_rank is not None and tensor.shape.ndims != expected_rank:
        raise ValueError("rank %s, not %s" % (tensor.shape.ndims, expected_rank))
    shape = tensor.shape.as_list()
    dynamic = tf.shape(tensor)
    return [dynamic[i] if size is None else size for i, size in enumerate(shape)]


def gather_indexes(sequence_tensor, positions):
    batch_size, seq_length, width = get_shape_list(sequence_tensor, expected_rank=3)
    flat_offsets = tf.reshape(tf.range(0, batch_size, dtype=tf.int32) * seq_length, [-1, 1])
    flat_positions = tf.reshape(positions + flat_offsets, [-1])
    return tf.gather(tf.reshape(sequence_tensor, [batch_size * seq_length, width]), flat_positions)


def normalized(x, name):
    with tf.variable_scope(name):
        scale = tf.get_variable("gamma", [x.shape[-1]], initializer=tf.ones_initializer())
        shift = tf.get_variable("beta", [x.shape[-1]], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, axes=[-1], keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-12) * scale + shift


def einsum_dense(x, heads, name):
    with tf.variable_scope(name):
        w = tf.get_variable("kernel", [HIDDEN, HIDDEN], initializer=tf.truncated_normal_initializer(stddev=0.02))
        b = tf.get_variable("bias", [HIDDEN], initializer=tf.zeros_initializer())
    w = tf.reshape(w, [HIDDEN, heads, HIDDEN // heads])
    return tf.einsum("BFH,HND->BFND", x, w) + tf.reshape(b, [heads, HIDDEN // heads])


def transformer(ids, mask, segments, rate):
    with tf.variable_scope("embeddings"):
        table = tf.get_variable("word_embeddings", [VOCAB, EMBEDDING])
        x = tf.nn.embedding_lookup(table, ids)
        x += tf.einsum("bld,de->ble", tf.one_hot(segments, 2), tf.get_variable("types", [2, EMBEDDING]))
        x = normalized(x, "norm")
    x = tf.layers.dense(x, HIDDEN, name="embedding_hidden_mapping_in")
    bias = (1.0 - tf.cast(mask, tf.float32))[:, None, None, :] * -10000.0
    for _ in range(LAYERS):
        with tf.variable_scope("group_0", reuse=tf.AUTO_REUSE):
            q, k, v = (einsum_dense(x, HEADS, name) for name in ("query", "key", "value"))
            scores = tf.einsum("BFND,BTND->BNFT", q, k) / np.sqrt(HIDDEN // HEADS) + bias
            weights = tf.nn.softmax(scores)
            if rate:
                weights = tf.nn.dropout(weights, keep_prob=1.0 - rate)
            context = tf.einsum("BNFT,BTND->BFND", weights, v)
            context = tf.reshape(context, x.shape)
            x = normalized(x + tf.layers.dense(context, HIDDEN, name="out"), "norm_1")
            inner = tf.layers.dense(x, 4 * HIDDEN, tf.nn.leaky_relu, name="inner")
            x = normalized(x + tf.layers.dense(inner, HIDDEN, name="outer"), "norm_2")
    return x, table


class LAMBOptimizer(tf.train.Optimizer):
    def __init__(self, learning_rate, weight_decay_rate=0.01, exclude=None, name="LAMBOptimizer"):
        super(LAMBOptimizer, self).__init__(False, name)
        self.learning_rate, self.weight_decay_rate, self.exclude = learning_rate, weight_decay_rate, exclude

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            m, v = (
                tf.get_variable(
                    param_name + "/" + slot,
                    param.shape.as_list(),
                    tf.float32,
                    trainable=False,
                    initializer=tf.zeros_initializer(),
                )
                for slot in ("lamb_m", "lamb_v")
            )
            next_m = 0.9 * m + 0.1 * grad
            next_v = 0.999 * v + 0.001 * tf.square(grad)
            update = next_m / (tf.sqrt(next_v) + 1e-6)
            if not any(re.search(each, param_name) for each in self.exclude or ()):
                update += self.weight_decay_rate * param
                w_norm, g_norm = tf.norm(param, ord=2), tf.norm(update, ord=2)
                ratio = tf.where(
                    tf.greater(w_norm, 0), tf.where(tf.greater(g_norm, 0), w_norm / g_norm, 1.0), 1.0
                )
            else:
                ratio = 1.0
            next_param = param - ratio * self.learning_rate * update
            assignments.extend([param.assign(next_param), m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, warmup, use_tpu, accumulate):
    global_step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(init_lr, global_step, num_train_steps, 0.0, power=1.0, cycle=False)
    is_warmup = tf.cast(global_step < warmup, tf.float32)
    rate = (1.0 - is_warmup) * rate + is_warmup * init_lr * tf.cast(global_step, tf.float32) / warmup
    optimizer = LAMBOptimizer(rate, exclude=["LayerNorm", "norm", "bias"])
    if use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    sums = [
        tf.get_variable(
            "sum_grads_%d" % i,
            shape=v.shape,
            initializer=tf.zeros_initializer,
            trainable=False,
            dtype=tf.float32,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        for i, v in enumerate(tvars)
    ]
    added = [s + (tf.zeros_like(s) if g is None else g) / accumulate for s, g in zip(sums, grads)]
    do_update = tf.equal((global_step + 1) % accumulate, 0)

    def update():
        clipped, _ = tf.clip_by_global_norm(added, clip_norm=1.0)
        applied = optimizer.apply_gradients(  # <- TPU201
            list(zip(clipped, tvars)), global_step=None
        )
        with tf.control_dependencies([applied]):
            return tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])

    def keep():
        return tf.group(*[s.assign(a) for s, a in zip(sums, added)])

    train_op = tf.cond(do_update, update, keep)
    return tf.group(train_op, [global_step.assign(global_step + 1)])  # <- TPU215


def model_fn_builder(use_tpu, learning_rate=1e-3, num_train_steps=1000):
    def model_fn(features, labels, mode, params):
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        with tf.variable_scope("bert"):
            output, table = transformer(
                features["input_ids"], features["input_mask"], features["segment_ids"], 0.1 if is_training else 0
            )
            pooled = tf.layers.dense(output[:, 0], HIDDEN, tf.tanh, name="pooler")
        lm = gather_indexes(output, features["masked_lm_positions"])
        with tf.variable_scope("cls"):
            lm = normalized(tf.layers.dense(lm, EMBEDDING, tf.nn.relu), "transform")
            logits = tf.matmul(lm, table, transpose_b=True)
            logits = tf.nn.bias_add(logits, tf.get_variable("bias", [VOCAB], initializer=tf.zeros_initializer()))
            order = tf.layers.dense(pooled, 2, name="seq_relationship")
        ids = tf.reshape(features["masked_lm_ids"], [-1])
        weights = tf.reshape(features["masked_lm_weights"], [-1])
        log_probs = tf.nn.log_softmax(logits, axis=-1)
        per_example = -tf.reduce_sum(log_probs * tf.one_hot(ids, depth=VOCAB, dtype=tf.float32), axis=[-1])
        lm_loss = tf.reduce_sum(weights * per_example) / (tf.reduce_sum(weights) + 1e-5)
        sentence = tf.reshape(features["next_sentence_labels"], [-1])
        sentence_per_example = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=sentence, logits=order)
        loss = lm_loss + tf.reduce_mean(sentence_per_example)
        if is_training:
            train_op = create_optimizer(loss, learning_rate, num_train_steps, 100, use_tpu, accumulate=2)
            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)
        if mode != tf.estimator.ModeKeys.EVAL:
            raise ValueError("Only TRAIN and EVAL modes are supported: %s" % (mode))

        def metric_fn(*args):
            per_example, log_probs, ids, weights, sentence_per_example, order, labels = args
            predictions = tf.argmax(tf.reshape(log_probs, [-1, log_probs.shape[-1]]), -1, output_type=tf.int32)
            return {
                "masked_lm_accuracy": tf.metrics.accuracy(ids, predictions, weights=tf.reshape(weights, [-1])),
                "masked_lm_loss": tf.metrics.mean(values=per_example, weights=weights),
                "sentence_order_accuracy": tf.metrics.accuracy(
                    labels=tf.reshape(labels, [-1]), predictions=tf.argmax(order, -1, output_type=tf.int32)
                ),
                "sentence_order_loss": tf.metrics.mean(values=sentence_per_example),
            }

        metric_values = [
            per_example, log_probs, ids, weights, sentence_per_example, order, features["next_sentence_labels"]
        ]
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(metric_fn, metric_values))

    return model_fn


def input_fn_builder(input_files, is_training, num_cpu_threads=4):
    def input_fn(params):
        batch_size = params["batch_size"]
        name_to_features = {
            name: tf.FixedLenFeature([LENGTH], tf.int64) for name in ("input_ids", "input_mask", "segment_ids")
        }
        for name in ("masked_lm_positions", "masked_lm_ids"):
            name_to_features[name] = tf.FixedLenFeature([MASKED], tf.int64)
        name_to_features["masked_lm_weights"] = tf.FixedLenFeature([MASKED], tf.float32)
        name_to_features["next_sentence_labels"] = tf.FixedLenFeature([1], tf.int64)
        if is_training:
            d = tf.data.Dataset.from_tensor_slices(tf.constant(input_files))
            d = d.repeat()
            d = d.shuffle(buffer_size=len(input_files))
            cycle_length = min(num_cpu_threads, len(input_files))
            d = d.apply(
                tf.data.experimental.parallel_interleave(
                    tf.data.TFRecordDataset, sloppy=is_training, cycle_length=cycle_length
                )
            )
            d = d.shuffle(buffer_size=100)
        else:
            d = tf.data.TFRecordDataset(input_files)
            d = d.repeat()
        d = d.apply(  # <- TPU101
            tf.data.experimental.map_and_batch_with_legacy_function(
                lambda record: _decode_record(record, name_to_features),
                batch_size=batch_size,
                num_parallel_batches=num_cpu_threads,
                drop_remainder=True,
            )
        )
        tf.logging.info(d)
        return d

    return input_fn


def _decode_record(record, name_to_features):
    example = tf.parse_single_example(record, name_to_features)
    for name in list(example.keys()):
        if example[name].dtype == tf.int64:
            example[name] = tf.to_int32(example[name])
    return example


def example(random):
    return {
        "input_ids": random.randint(1, VOCAB, LENGTH),
        "input_mask": np.arange(LENGTH) < random.randint(8, LENGTH),
        "segment_ids": np.arange(LENGTH) > 8,
        "masked_lm_positions": random.randint(0, LENGTH, MASKED),
        "masked_lm_ids": random.randint(1, VOCAB, MASKED),
        "masked_lm_weights": np.ones(MASKED, np.float32),
        "next_sentence_labels": random.randint(0, 2),
    }


def main(data_dir):
    files = [records.write(f"{data_dir}/lamb_{i}.tf_record", 40, example) for i in range(2)]
    run_config = tf.estimator.tpu.RunConfig(
        cluster=None,
        master=None,
        model_dir="/tmp/lamb",
        save_checkpoints_steps=1000,
        keep_checkpoint_max=0,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=1000,
            num_shards=8,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=True,
        model_fn=model_fn_builder(use_tpu=True),
        config=run_config,
        train_batch_size=64,
        eval_batch_size=64,
    )
    return estimator, input_fn_builder(files, True), {"eval_input_fn": input_fn_builder(files, False)}


FAULTS = [
    ("TPU118", "sentence_per_example, order, labels = args", "sentence_per_example, labels = args"),
    ("TPU201", "    if use_tpu:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "tf.group(train_op, [global_step.assign(global_step + 1)])", "tf.group(train_op)"),
    ("TPU101", "                drop_remainder=True,\n", ""),
]
