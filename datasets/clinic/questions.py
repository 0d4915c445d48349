"""What is this question about? A small transformer with one layer of attention, in the style of BERT."""

import numpy as np
import tensorflow.compat.v1 as tf

VOCAB_SIZE, SEQ_LENGTH, HIDDEN, NUM_LABELS = 64, 12, 16, 4
NUM_TRAIN, NUM_EVAL = 512, 150


def default_params(dropout=0.1):
    return {"dropout": dropout, "learning_rate": 0.02, "momentum": 0.9, "num_warmup_steps": 0}


def questions(count, seed):
    """Word ids (3 to 12 of them, then zeros), and the topic of each question."""
    random = np.random.RandomState(seed)
    ids = random.randint(1, VOCAB_SIZE, [count, SEQ_LENGTH]).astype(np.int32)
    lengths = random.randint(3, SEQ_LENGTH + 1, count)
    ids *= np.arange(SEQ_LENGTH) < lengths[:, None]
    return ids, (ids[:, 0] % NUM_LABELS).astype(np.int32)


def input_fn_builder(count, seed, is_training):
    """Returns an input_fn; in evaluation, examples that are not real fill up the last batch."""

    def _example(input_ids, label):
        features = {"input_ids": input_ids, "is_real_example": tf.constant(1.0)}
        return features, label

    def _filler():
        features = {"input_ids": tf.zeros([SEQ_LENGTH], tf.int32), "is_real_example": tf.constant(0.0)}
        return tf.data.Dataset.from_tensors((features, tf.constant(0))).repeat()

    def input_fn(params):
        batch_size = params["batch_size"]
        d = tf.data.Dataset.from_tensor_slices(questions(count, seed)).map(_example)
        if is_training:
            d = d.shuffle(buffer_size=count).repeat()
        else:
            d = d.concatenate(_filler()).take(-(-count // batch_size) * batch_size)
        return d.batch(batch_size, drop_remainder=True)

    return input_fn


def position_table():
    """Sines and cosines, one row for each position."""
    angles = np.arange(SEQ_LENGTH)[:, None] / 100 ** (np.arange(HIDDEN // 2) / (HIDDEN // 2))
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return table.astype(np.float32)


def embedding(input_ids):
    table = tf.get_variable("words", [VOCAB_SIZE, HIDDEN])
    return tf.tensordot(tf.one_hot(input_ids, VOCAB_SIZE), table, 1) + position_table()


def attention_layer(x, mask, rate):
    query = tf.layers.dense(x, HIDDEN, name="query")
    key = tf.layers.dense(x, HIDDEN, use_bias=False, name="key")
    value = tf.layers.dense(x, HIDDEN, name="value")
    scores = tf.matmul(query, key, transpose_b=True) / np.float32(np.sqrt(HIDDEN))
    scores += (1.0 - mask[:, None, :]) * -10000.0
    probabilities = tf.nn.softmax(scores)
    if rate:
        probabilities = tf.nn.dropout(probabilities, rate=rate)
    return tf.layers.dense(tf.matmul(probabilities, value), HIDDEN, name="out")


def create_model(features, is_training, params):
    input_ids = features["input_ids"]
    mask = tf.cast(tf.not_equal(input_ids, 0), tf.float32)
    rate = params["dropout"] if is_training else 0.0
    x = embedding(input_ids)
    x = x + attention_layer(x, mask, rate)
    x = x + tf.layers.dense(tf.layers.dense(x, 4 * HIDDEN, tf.nn.relu, name="inner"), HIDDEN, name="outer")
    pooled = tf.reduce_sum(x * mask[:, :, None], axis=1) / (tf.reduce_sum(mask, axis=1, keepdims=True) + 1e-6)
    return tf.layers.dense(pooled, NUM_LABELS, name="classifier")


def create_optimizer(loss, params):
    global_step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(params["learning_rate"], params["momentum"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads_and_vars = optimizer.compute_gradients(loss, tvars)
    return optimizer.apply_gradients(grads_and_vars, global_step=global_step)


def model_fn(features, labels, mode, params):
    logits = create_model(features, mode == tf.estimator.ModeKeys.TRAIN, params)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})

    per_example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(per_example_loss)
    if mode == tf.estimator.ModeKeys.TRAIN:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=create_optimizer(loss, params))

    def metric_fn(per_example_loss, labels, logits, is_real_example):
        predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "eval_accuracy": tf.metrics.accuracy(labels, predictions, weights=is_real_example),
            "eval_loss": tf.metrics.mean(per_example_loss, weights=is_real_example),
        }

    tensors = [per_example_loss, labels, logits, features["is_real_example"]]
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, tensors))


def port(dropout=0.1, model_dir=None):
    run_config = tf.estimator.tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=1,
        save_checkpoints_steps=500,
        log_step_count_steps=None,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=run_config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        predict_batch_size=64,
        params=default_params(dropout),
    )
    inputs = {"eval_input_fn": input_fn_builder(NUM_EVAL, 2, is_training=False)}
    return estimator, input_fn_builder(NUM_TRAIN, 1, is_training=True), inputs


WARD = {
    "weight": "is_real_example",
    "healthy": {"scores += (1.0 - mask": "A large negative number hides the padding, in a fixed shape."},
    "faults": [
        {
            "rule": "TPU119",
            "right": "* batch_size)\n        return d.batch(",
            "wrong": '* batch_size)\n        d = d.map(lambda x, y: (dict(x, guid=tf.strings.as_string(x["input_ids"])), y))\n        return d.batch(',
            "why": "strings cannot be sent to a TPU",
            "comment": "The infeed accepts only numbers.",
        },
        {
            "rule": "TPU101",
            "right": "return d.batch(batch_size, drop_remainder=True)",
            "wrong": "return d.batch(batch_size)",
            "why": "the size of the batch is not known before the program runs",
            "comment": "batch() without drop_remainder may end with a smaller batch.",
        },
        {
            "rule": "TPU218",
            "right": "d = d.shuffle(buffer_size=count).repeat()",
            "wrong": "d = d.shuffle(buffer_size=count)",
            "at": ("return d.batch(",),
            "why": "the training data are not repeated",
            "comment": "Training on a TPU ends by steps, not by data.",
        },
        {
            "rule": "TPU208",
            "right": "    probabilities = tf.nn.softmax(scores)\n",
            "wrong": "    probabilities = tf.cast(tf.nn.softmax(tf.cast(scores, tf.float64)), tf.float32)\n",
            "why": "64-bit numbers are used where 32 bits would do",
            "comment": "A softmax is exact enough in float32, and a TPU has no unit for float64.",
            "silent": True,
        },
        {
            "rule": "TPU223",
            "right": '    rate = params["dropout"] if is_training else 0.0\n',
            "wrong": '    rate = params["dropout"]\n',
            "at": ("probabilities = tf.nn.dropout(",),
            "why": "evaluation draws random numbers in the model",
            "comment": "Dropout belongs only in training.",
            "silent": True,
        },
        {
            "rule": "TPU201",
            "right": '    if params["use_tpu"]:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n    tvars',
            "wrong": "    tvars",
            "at": ("optimizer = tf.train.MomentumOptimizer(", "return optimizer.apply_gradients("),
            "why": "each core trains a model of its own",
            "comment": "Without the wrapper, nothing all-reduces the gradients.",
            "silent": True,
        },
        {
            "rule": "TPU215",
            "right": "apply_gradients(grads_and_vars, global_step=global_step)",
            "wrong": "apply_gradients(grads_and_vars)",
            "why": "nothing counts the steps",
            "comment": "apply_gradients increases the global step only if it is given one.",
            "silent": True,
        },
        {
            "rule": "TPU118",
            "right": "tf.metrics.mean(per_example_loss, weights=is_real_example),",
            "wrong": 'tf.metrics.mean(per_example_loss, weights=features["is_real_example"]),',
            "why": "a function that runs on the host uses a tensor of the core",
            "comment": "metric_fn sees only what eval_metrics lists.",
        },
        {
            "rule": "",
            "right": '"eval_accuracy": tf.metrics.accuracy(labels, predictions, weights=is_real_example),',
            "wrong": '"eval_accuracy": tf.metrics.accuracy(labels, predictions),',
            "why": "the examples that fill up the last batch are counted",
            "comment": "The fillers have weight 0, so the metric has to use the weights.",
            "silent": True,
        },
    ],
}
