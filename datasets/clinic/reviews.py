"""Is a film review friendly? A recurrent network over words, ported by the person who wrote it in 2017."""

import numpy as np
import tensorflow.compat.v1 as tf

VOCABULARY, GROUPS, MAX_WORDS, UNITS = 64, 16, 8, 16
WORD_GROUPS = (np.arange(VOCABULARY) * 7 % GROUPS).astype(np.int32)  # 0 to GROUPS - 1, by word


def reviews(count, seed):
    """Word ids (1 to 63, of differing number) and a label, one review after another."""
    random = np.random.RandomState(seed)
    for _ in range(count):
        words = random.randint(1, VOCABULARY, random.randint(2, MAX_WORDS + 1))
        yield words.astype(np.int32), np.int32(words[0] % 2)


def dataset_of(count, seed):
    signature = (tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32))
    return tf.data.Dataset.from_generator(lambda: reviews(count, seed), output_signature=signature)


def train_input_fn(params):
    dataset = dataset_of(256, seed=1).shuffle(256).repeat()
    return dataset.padded_batch(params["batch_size"], ([MAX_WORDS], []), drop_remainder=True)


def eval_input_fn(params):
    dataset = dataset_of(128, seed=2)
    return dataset.padded_batch(params["batch_size"], ([MAX_WORDS], []), drop_remainder=True)


class ReviewModel:
    """Embeds words and their groups, reads them in order, and judges at the end."""

    def __init__(self, keep_prob):
        self.keep_prob = keep_prob

    def embed(self, words):
        table = tf.get_variable("words", [VOCABULARY, UNITS])
        groups = tf.get_variable("groups", [GROUPS, UNITS])
        of_word = tf.gather(tf.constant(WORD_GROUPS), words)
        return tf.gather(table, words) + tf.gather(groups, of_word)

    def recur(self, inputs, mask):
        width = inputs.shape[-1]
        with tf.variable_scope("cell"):
            kernel = tf.get_variable("kernel", [2 * width, UNITS])
            bias = tf.get_variable("bias", [UNITS], initializer=tf.zeros_initializer())
        state = tf.zeros([inputs.shape[0], UNITS])
        for step in range(inputs.shape[1]):
            new = tf.tanh(tf.matmul(tf.concat([inputs[:, step], state], 1), kernel) + bias)
            state = tf.where(mask[:, step], new, state)  # past the end of a review nothing changes
        return state

    def __call__(self, words, training):
        mask = words > 0
        state = self.recur(self.embed(words), mask)
        if training:
            state = tf.nn.dropout(state, rate=1.0 - self.keep_prob)
        return tf.layers.dense(state, 2, name="verdict")


def metric_fn(labels, logits):
    return {
        "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1)),
        "precision": tf.metrics.precision(labels, tf.argmax(logits, 1)),
    }


def model_fn(features, labels, mode, params):
    logits = ReviewModel(params["keep_prob"])(features, mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )
    optimizer = tf.train.RMSPropOptimizer(params["learning_rate"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients = [tf.clip_by_norm(gradient, 5.0) for gradient in gradients]
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/reviews",
        save_checkpoints_steps=200,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=200),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        params={"keep_prob": 0.8, "learning_rate": 0.003},
    )
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


WARD = {
    "others": {
        "a Python loop cannot be compiled for a TPU": (
            "The loop runs while the graph is built, which gives 8 copies of the cell with fixed shapes."
        ),
        "past the end of a review, the padding changes the result": (
            "There, tf.where keeps the state of the last word."
        ),
        "the gradients are not all-reduced over the cores": (
            "The optimizer is wrapped on a TPU, and apply_gradients is called on the wrapper."
        ),
        "precision cannot be computed on a TPU": "metric_fn runs on the host, which has every op.",
        "a generator cannot feed a TPU": (
            "The generator runs on the host. That is slow, but it works if the program runs on the host of the TPU."
        ),
    },
    "healthy": {
        "for step in range(": (
            "The loop is unrolled while the graph is built, which gives 8 copies of the cell with fixed shapes."
        ),
        "state = tf.where(mask[:, step]": "tf.where with three arguments keeps the shape, and padding changes nothing.",
        '"precision": tf.metrics.precision(': "metric_fn runs on the host, which has every op.",
        "from_generator(": (
            "The generator runs on the host. That is slow, but it works if the program runs on the host of the TPU."
        ),
        "gradients = [tf.clip_by_norm(": (
            "Each gradient is clipped by its own norm before the all-reduce, which is allowed, and usual."
        ),
        "return tf.gather(table, words)": "A TPU has Gather.",
    },
    "faults": [
        {
            "rule": "TPU102",
            "right": 'shuffle(256).repeat()\n    return dataset.padded_batch(params["batch_size"], ([MAX_WORDS], []), drop_remainder=True)',
            "wrong": 'shuffle(256).repeat()\n    return dataset.padded_batch(params["batch_size"], ([None], []), drop_remainder=True)',
            "why": "each batch is as wide as its longest example",
            "comment": "padded_batch pads to the longest of each batch unless it is told a length.",
        },
        {
            "rule": "TPU130",
            "right": "width = inputs.shape[-1]\n",
            "wrong": "width = inputs.shape[-1].value\n",
            "why": "this worked only in TensorFlow 1",
            "comment": "With TensorFlow 2, a dimension is a Python number and has no .value.",
        },
        {
            "rule": "TPU202",
            "right": "        of_word = tf.gather(tf.constant(WORD_GROUPS), words)\n",
            "wrong": """        pairs = tf.lookup.KeyValueTensorInitializer(np.arange(VOCABULARY, dtype=np.int32), WORD_GROUPS)
        of_word = tf.lookup.StaticHashTable(pairs, 0).lookup(words)
        of_word.set_shape(words.shape)
""",
            "at": ("of_word = tf.lookup.StaticHashTable(", "pairs = tf.lookup"),
            "why": "a TPU does not have this op",
            "comment": "Hash tables exist only on the host, so look up in input_fn, or gather from a constant.",
        },
        {
            "rule": "TPU223",
            "right": "        if training:\n            state = tf.nn.dropout(",
            "wrong": "        if self.keep_prob < 1.0:\n            state = tf.nn.dropout(",
            "at": ("if self.keep_prob < 1.0", "state = tf.nn.dropout("),
            "why": "evaluation draws random numbers in the model",
            "comment": "Dropout belongs only in training. Here, each evaluation gives a different accuracy.",
            "silent": True,
        },
        {
            "rule": "TPU205",
            "right": '    optimizer = tf.train.RMSPropOptimizer(params["learning_rate"])\n',
            "wrong": '    loss = tf.Print(loss, [tf.reduce_max(logits)], "largest logit: ")\n    optimizer = tf.train.RMSPropOptimizer(params["learning_rate"])\n',
            "at": ("loss = tf.Print(",),
            "why": "printing needs the host, but this line runs on a core",
            "comment": "A core has no terminal, so remove the line, or send the number through host_call.",
        },
        {
            "rule": "TPU115",
            "right": "tf.train.get_global_step())\n    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)\n",
            "wrong": 'tf.train.get_global_step())\n    hooks = [tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)]\n    return tf.estimator.tpu.TPUEstimatorSpec(\n        mode, loss=loss, train_op=train_op, training_hooks=hooks\n    )\n',
            "at": ("hooks = [", "mode, loss=loss, train_op=train_op, training_hooks=hooks"),
            "why": "a hook asks for a tensor that never leaves the core",
            "comment": "Hooks run on the host between loops, and TPUEstimator itself logs the loss.",
        },
    ],
}
