"""Masked language modelling with masks drawn on the device, also in evaluation: version 1 behaviour throughout."""

import argparse
import copy

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

VOCAB, LENGTH, HIDDEN, PREDICTIONS, MASK_ID = 50, 16, 16, 3, 1


class PretrainingConfig(object):
    def __init__(self, **kwargs):
        self.num_train_steps = 1000
        self.iterations_per_loop = 200
        self.save_checkpoints_steps = 1000
        self.num_tpu_cores = 8
        self.train_batch_size = 32
        self.eval_batch_size = 16
        self.learning_rate = 5e-4
        self.use_tpu = True
        self.update(kwargs)

    def update(self, kwargs):
        for k, v in kwargs.items():
            self.__dict__[k] = v


def get_shape_list(tensor):
    shape = tensor.shape.as_list()
    dynamic = tf.shape(tensor)
    return [dynamic[i] if dim is None else dim for i, dim in enumerate(shape)]


def mask(features):
    input_ids = features["input_ids"]
    B, L = get_shape_list(input_ids)
    candidates = tf.cast(features["input_mask"], tf.float32)
    sample_logits = tf.log(candidates + 1e-9)
    noise = -tf.log(-tf.log(tf.random.uniform([B, L], 1e-6, 1.0 - 1e-6)))
    _, positions = tf.nn.top_k(sample_logits + noise, k=PREDICTIONS)
    shift = tf.expand_dims(L * tf.range(B), -1)
    flat_positions = tf.reshape(positions + shift, [-1, 1])
    masked_lm_ids = tf.gather_nd(tf.reshape(input_ids, [-1]), flat_positions)
    masked_lm_ids = tf.reshape(masked_lm_ids, [B, -1])
    updates = tf.reduce_sum(tf.one_hot(positions, L, dtype=tf.int32), axis=1)
    updated = tf.where(tf.equal(updates, 1), MASK_ID * tf.ones_like(input_ids), input_ids)
    weights = tf.ones([B, PREDICTIONS], tf.float32)
    return updated, positions, masked_lm_ids, weights


class PretrainingModel(object):
    def __init__(self, config, features, is_training):
        self.ids, self.positions, self.masked_ids, self.weights = mask(features)
        with tf.variable_scope("embeddings"):
            table = tf.get_variable("word_embeddings", [VOCAB, HIDDEN])
            x = tf.nn.embedding_lookup(table, self.ids)
        hidden_size = x.shape[-1].value
        with tf.variable_scope("layer_0"):
            x = x + tf.layers.dense(
                tf.nn.dropout(x, keep_prob=0.9 if is_training else 1.0),
                hidden_size,
                kernel_initializer=tf.truncated_normal_initializer(stddev=0.02),
            )
        B, L, D = get_shape_list(x)
        flat = tf.reshape(self.positions + tf.expand_dims(L * tf.range(B), -1), [-1])
        relevant = tf.gather(tf.reshape(x, [B * L, D]), flat)
        logits = tf.matmul(relevant, table, transpose_b=True)
        logits = tf.reshape(logits, [B, PREDICTIONS, VOCAB])
        log_probs = tf.nn.log_softmax(logits)
        oh_labels = tf.one_hot(self.masked_ids, depth=VOCAB, dtype=tf.float32)
        label_log_probs = -tf.reduce_sum(log_probs * oh_labels, axis=-1)
        numerator = tf.reduce_sum(self.weights * label_log_probs)
        denominator = tf.reduce_sum(self.weights) + 1e-6
        self.total_loss = numerator / denominator
        self.per_example_loss = label_log_probs
        self.preds = tf.argmax(log_probs, axis=-1, output_type=tf.int32)


def model_fn_builder(config):
    def model_fn(features, labels, mode, params):
        model = PretrainingModel(config, features, mode == tf.estimator.ModeKeys.TRAIN)
        if mode == tf.estimator.ModeKeys.TRAIN:
            step = tf.train.get_or_create_global_step()
            rate = tf.train.polynomial_decay(config.learning_rate, step, config.num_train_steps, 0.0)
            rate *= tf.minimum(1.0, tf.cast(step, tf.float32) / 100.0)
            optimizer = tf.train.AdamOptimizer(rate)
            if config.use_tpu:
                optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            tvars = tf.trainable_variables()
            grads = tf.gradients(model.total_loss, tvars)
            (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
            train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=step)  # <- TPU201 TPU215
            return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=model.total_loss, train_op=train_op)
        if mode == tf.estimator.ModeKeys.EVAL:

            def metric_fn(ids, preds, weights, loss):
                return {
                    "masked_lm_accuracy": tf.metrics.accuracy(
                        labels=tf.reshape(ids, [-1]),
                        predictions=tf.reshape(preds, [-1]),
                        weights=tf.reshape(weights, [-1]),
                    ),
                    "masked_lm_loss": tf.metrics.mean(
                        values=tf.reshape(loss, [-1]), weights=tf.reshape(weights, [-1])
                    ),
                }

            eval_metrics = (metric_fn, [model.masked_ids, model.preds, model.weights, model.per_example_loss])
            return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=model.total_loss, eval_metrics=eval_metrics)  # <- TPU111
        raise ValueError("Only TRAIN and EVAL modes are supported")

    return model_fn


def get_input_fn(config, is_training):
    def input_fn(params):
        batch_size = params["batch_size"]
        random = np.random.RandomState(0)
        ids = random.randint(2, VOCAB, [200, LENGTH])
        d = tf.data.Dataset.from_tensor_slices({"input_ids": ids, "input_mask": np.ones_like(ids)})
        if is_training:
            d = d.repeat().shuffle(buffer_size=100)

        def to_int32(example):
            return {k: tf.cast(v, tf.int32) for k, v in example.items()}

        return d.map(to_int32).batch(batch_size, drop_remainder=True)

    return input_fn


def main(data_dir):
    args = argparse.Namespace(hparams={"train_batch_size": 32})
    config = PretrainingConfig(**copy.deepcopy(args.hparams))
    run_config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/electra",
        save_checkpoints_steps=config.save_checkpoints_steps,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=config.iterations_per_loop,
            num_shards=config.num_tpu_cores,
            tpu_job_name=None,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=config.use_tpu,
        model_fn=model_fn_builder(config=config),
        config=run_config,
        train_batch_size=config.train_batch_size,
        eval_batch_size=config.eval_batch_size,
    )
    return estimator, get_input_fn(config, True), {"eval_input_fn": get_input_fn(config, False)}


FAULTS = [
    ("TPU201", "            if config.use_tpu:\n                optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "zip(grads, tvars), global_step=step)", "zip(grads, tvars))"),
    ("TPU111", "model.weights, model.per_example_loss])", "model.weights, model.total_loss])"),
    ("TPU223", "keep_prob=0.9 if is_training else 1.0", "keep_prob=0.9"),
    ("TPU120", "return {k: tf.cast(v, tf.int32) for k, v in example.items()}", "return {k: tf.cast(v, tf.int32) for k, v in example.items()} | {'length': tf.constant(LENGTH, tf.int16)}"),
]
