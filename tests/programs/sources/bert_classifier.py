"""Sentence classification by a transformer: model_fn_builder, an optimizer of its own, exact evaluation.

Builders of closures, num_shards set, a scaffold_fn that restores, padded evaluation with is_real_example.
"""

import collections
import re

import numpy as np
import tensorflow.compat.v1 as tf

from programs import records

SEQ_LENGTH, VOCAB, HIDDEN, HEADS, LAYERS, NUM_LABELS = 16, 64, 32, 2, 1, 2


def gelu(x):
    return x * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def dropout(input_tensor, dropout_prob):
    if dropout_prob is None or dropout_prob == 0.0:
        return input_tensor
    return tf.nn.dropout(input_tensor, rate=dropout_prob)


def layer_norm(input_tensor, name=None):
    mean, variance = tf.nn.moments(input_tensor, [-1], keepdims=True)
    with tf.variable_scope(name, default_name="LayerNorm"):
        gamma = tf.get_variable("gamma", [HIDDEN], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [HIDDEN], initializer=tf.zeros_initializer())
    return tf.nn.batch_normalization(input_tensor, mean, variance, beta, gamma, 1e-12)


def create_initializer(stddev=0.02):
    return tf.truncated_normal_initializer(stddev=stddev)


def dense(x, size, name, activation=None):
    return tf.layers.dense(x, size, activation, kernel_initializer=create_initializer(), name=name)


def attention_layer(x, mask, dropout_prob):
    batch_size, length = x.shape.as_list()[:2]

    def heads(y):
        y = tf.reshape(y, [batch_size, length, HEADS, HIDDEN // HEADS])
        return tf.transpose(y, [0, 2, 1, 3])

    query, key, value = (heads(dense(x, HIDDEN, name)) for name in ("query", "key", "value"))
    scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(HIDDEN // HEADS)
    scores += (1.0 - tf.cast(mask[:, None, None, :], tf.float32)) * -10000.0
    context = tf.matmul(dropout(tf.nn.softmax(scores), dropout_prob), value)
    return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [batch_size, length, HIDDEN])


def encoder(input_ids, input_mask, segment_ids, is_training):
    prob = 0.1 if is_training else 0.0
    with tf.variable_scope("bert"):
        with tf.variable_scope("embeddings"):
            table = tf.get_variable("word_embeddings", [VOCAB, HIDDEN], initializer=create_initializer())
            types = tf.get_variable("token_type_embeddings", [2, HIDDEN], initializer=create_initializer())
            places = tf.get_variable("position_embeddings", [SEQ_LENGTH, HIDDEN])
            output = tf.gather(table, input_ids)
            output += tf.matmul(tf.one_hot(segment_ids, 2), types)
            output += places
            output = dropout(layer_norm(output), prob)
        with tf.variable_scope("encoder"):
            for layer in range(LAYERS):
                with tf.variable_scope("layer_%d" % layer):
                    attention = dropout(dense(attention_layer(output, input_mask, prob), HIDDEN, "out"), prob)
                    output = layer_norm(attention + output)
                    inner = dense(output, 4 * HIDDEN, "intermediate", gelu)
                    output = layer_norm(dropout(dense(inner, HIDDEN, "output"), prob) + output)
        return dense(tf.squeeze(output[:, 0:1, :], axis=1), HIDDEN, "pooler", tf.tanh)


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    def __init__(
        self,
        learning_rate,
        weight_decay_rate=0.0,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=None,
        name="AdamWeightDecayOptimizer",
    ):
        super().__init__(False, name)
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.exclude_from_weight_decay = exclude_from_weight_decay

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            m, v = (
                tf.get_variable(
                    name=param_name + slot,
                    shape=param.shape.as_list(),
                    dtype=tf.float32,
                    trainable=False,
                    initializer=tf.zeros_initializer(),
                )
                for slot in ("/adam_m", "/adam_v")
            )
            next_m = tf.multiply(self.beta_1, m) + tf.multiply(1.0 - self.beta_1, grad)
            next_v = tf.multiply(self.beta_2, v) + tf.multiply(1.0 - self.beta_2, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + self.epsilon)
            if not any(re.search(r, param_name) for r in self.exclude_from_weight_decay or ()):
                update += self.weight_decay_rate * param
            next_param = param - self.learning_rate * update
            assignments.extend([param.assign(next_param), m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps, use_tpu):
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.constant(value=init_lr, shape=[], dtype=tf.float32)
    learning_rate = tf.train.polynomial_decay(
        learning_rate, global_step, num_train_steps, end_learning_rate=0.0, power=1.0, cycle=False
    )
    if num_warmup_steps:
        global_steps_int = tf.cast(global_step, tf.int32)
        warmup_steps_int = tf.constant(num_warmup_steps, dtype=tf.int32)
        warmup_percent_done = tf.cast(global_steps_int, tf.float32) / tf.cast(warmup_steps_int, tf.float32)
        is_warmup = tf.cast(global_steps_int < warmup_steps_int, tf.float32)
        learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * init_lr * warmup_percent_done
    optimizer = AdamWeightDecayOptimizer(
        learning_rate=learning_rate,
        weight_decay_rate=0.01,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
    )
    if use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)  # <- TPU201
    new_global_step = global_step + 1
    train_op = tf.group(train_op, [global_step.assign(new_global_step)])  # <- TPU215
    return train_op


def get_assignment_map_from_checkpoint(tvars, init_checkpoint):
    initialized, assignment_map = {}, collections.OrderedDict()
    names = {re.match("^(.*):\\d+$", var.name).group(1) for var in tvars}
    for name, _ in tf.train.list_variables(init_checkpoint):
        if name in names:
            assignment_map[name] = name
            initialized[name] = initialized[name + ":0"] = 1
    return assignment_map, initialized


def create_model(is_training, input_ids, input_mask, segment_ids, labels, num_labels):
    output_layer = encoder(input_ids, input_mask, segment_ids, is_training)
    hidden_size = output_layer.shape[-1]
    output_weights = tf.get_variable(
        "output_weights", [num_labels, hidden_size], initializer=create_initializer()
    )
    output_bias = tf.get_variable("output_bias", [num_labels], initializer=tf.zeros_initializer())
    with tf.variable_scope("loss"):
        if is_training:
            output_layer = tf.nn.dropout(output_layer, rate=0.1)
        logits = tf.nn.bias_add(tf.matmul(output_layer, output_weights, transpose_b=True), output_bias)
        probabilities = tf.nn.softmax(logits, axis=-1)
        log_probs = tf.nn.log_softmax(logits, axis=-1)
        one_hot_labels = tf.one_hot(labels, depth=num_labels, dtype=tf.float32)
        per_example_loss = -tf.reduce_sum(one_hot_labels * log_probs, axis=-1)
        loss = tf.reduce_mean(per_example_loss)
        return loss, per_example_loss, logits, probabilities


def model_fn_builder(num_labels, init_checkpoint, learning_rate, num_train_steps, use_tpu):
    def model_fn(features, labels, mode, params):
        tf.logging.info("*** Features ***")
        for name in sorted(features.keys()):
            tf.logging.info("  name = %s, shape = %s" % (name, features[name].shape))
        input_ids = features["input_ids"]
        input_mask = features["input_mask"]
        segment_ids = features["segment_ids"]
        label_ids = features["label_ids"]
        is_real_example = None
        if "is_real_example" in features:
            is_real_example = tf.cast(features["is_real_example"], dtype=tf.float32)
        else:
            is_real_example = tf.ones(tf.shape(label_ids), dtype=tf.float32)
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        total_loss, per_example_loss, logits, probabilities = create_model(
            is_training, input_ids, input_mask, segment_ids, label_ids, num_labels
        )
        tvars = tf.trainable_variables()
        scaffold_fn = None
        if init_checkpoint:
            assignment_map, _ = get_assignment_map_from_checkpoint(tvars, init_checkpoint)
            if use_tpu:

                def tpu_scaffold():
                    tf.train.init_from_checkpoint(init_checkpoint, assignment_map)
                    return tf.train.Scaffold()

                scaffold_fn = tpu_scaffold
            else:
                tf.train.init_from_checkpoint(init_checkpoint, assignment_map)

        if mode == tf.estimator.ModeKeys.TRAIN:
            train_op = create_optimizer(
                total_loss, learning_rate, num_train_steps, num_train_steps // 10, use_tpu
            )
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode, loss=total_loss, train_op=train_op, scaffold_fn=scaffold_fn
            )
        if mode == tf.estimator.ModeKeys.EVAL:

            def metric_fn(per_example_loss, label_ids, logits, is_real_example):
                predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
                accuracy = tf.metrics.accuracy(
                    labels=label_ids, predictions=predictions, weights=is_real_example
                )
                loss = tf.metrics.mean(values=per_example_loss, weights=is_real_example)
                return {"eval_accuracy": accuracy, "eval_loss": loss}

            eval_metrics = (metric_fn, [per_example_loss, label_ids, logits, is_real_example])
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode, loss=total_loss, eval_metrics=eval_metrics, scaffold_fn=scaffold_fn
            )
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode=mode, predictions={"probabilities": probabilities}, scaffold_fn=scaffold_fn
        )

    return model_fn


def file_based_input_fn_builder(input_file, seq_length, is_training, drop_remainder):
    name_to_features = {
        "input_ids": tf.FixedLenFeature([seq_length], tf.int64),
        "input_mask": tf.FixedLenFeature([seq_length], tf.int64),
        "segment_ids": tf.FixedLenFeature([seq_length], tf.int64),
        "label_ids": tf.FixedLenFeature([], tf.int64),
        "is_real_example": tf.FixedLenFeature([], tf.int64),
    }

    def _decode_record(record, name_to_features):
        example = tf.parse_single_example(record, name_to_features)
        for name in list(example.keys()):
            t = example[name]
            if t.dtype == tf.int64:
                t = tf.cast(t, tf.int32)
            example[name] = t
        return example

    def input_fn(params):
        batch_size = params["batch_size"]
        d = tf.data.TFRecordDataset(input_file)
        if is_training:
            d = d.repeat()
            d = d.shuffle(buffer_size=100)
        d = d.apply(  # <- TPU101
            tf.data.experimental.map_and_batch(
                lambda record: _decode_record(record, name_to_features),
                batch_size=batch_size,
                drop_remainder=drop_remainder,
            )
        )
        return d

    return input_fn


def example(random):
    length = random.randint(4, SEQ_LENGTH)
    mask = np.arange(SEQ_LENGTH) < length
    return {
        "input_ids": random.randint(1, VOCAB, SEQ_LENGTH) * mask,
        "input_mask": mask,
        "segment_ids": (np.arange(SEQ_LENGTH) > length // 2) * mask,
        "label_ids": random.randint(0, NUM_LABELS),
        "is_real_example": 1,
    }


def main(data_dir):
    train_file = records.write(f"{data_dir}/bert_train.tf_record", 60, example)
    eval_file = records.write(f"{data_dir}/bert_eval.tf_record", 32, example)
    is_per_host = tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2
    run_config = tf.estimator.tpu.RunConfig(
        cluster=None,
        master=None,
        model_dir="/tmp/bert_output",
        save_checkpoints_steps=1000,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=1000, num_shards=8, per_host_input_for_training=is_per_host
        ),
    )
    model_fn = model_fn_builder(NUM_LABELS, None, 5e-5, 1000, use_tpu=True)
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=True,
        model_fn=model_fn,
        config=run_config,
        train_batch_size=32,
        eval_batch_size=8,
        predict_batch_size=8,
    )
    train_input_fn = file_based_input_fn_builder(train_file, SEQ_LENGTH, True, drop_remainder=True)
    eval_input_fn = file_based_input_fn_builder(eval_file, SEQ_LENGTH, False, drop_remainder=True)
    predict_input_fn = file_based_input_fn_builder(eval_file, SEQ_LENGTH, False, drop_remainder=True)
    return (
        estimator,
        train_input_fn,
        {"eval_input_fn": eval_input_fn, "predict_input_fn": predict_input_fn},
    )


FAULTS = [
    ("TPU201", "    if use_tpu:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "tf.group(train_op, [global_step.assign(new_global_step)])", "tf.group(train_op)"),
    ("TPU101", "                drop_remainder=drop_remainder,\n", ""),
    ("TPU112", "[per_example_loss, label_ids, logits, is_real_example])\n            return", "[per_example_loss, label_ids, logits])\n            return"),
    ("TPU104", "def model_fn(features, labels, mode, params):", "def model_fn(features, labels, mode):"),
]
