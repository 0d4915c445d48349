"""How many stars will this user give this film? Embeddings and a small network, all in closures."""

import numpy as np
import tensorflow.compat.v1 as tf

USERS, FILMS, RATINGS, HELD_OUT, WIDTH = 96, 48, 512, 128, 8


def ratings(count, seed):
    random = np.random.RandomState(seed)
    users = random.randint(0, USERS, count).astype(np.int32)
    films = random.randint(0, FILMS, count).astype(np.int32)
    stars = (1 + (users * 3 + films) % 5).astype(np.float32)
    return {"user": users, "film": films}, stars


def make_input_fn(training):
    """Returns the input function of training or of evaluation."""

    def input_fn(params):
        count, seed = (RATINGS, 1) if training else (HELD_OUT, 2)
        dataset = tf.data.Dataset.from_tensor_slices(ratings(count, seed))
        if training:
            dataset = dataset.shuffle(count).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def predict_input_fn(params):
    features, _ = ratings(HELD_OUT, 2)
    dataset = tf.data.Dataset.from_tensor_slices(features)
    return dataset.batch(params["batch_size"], drop_remainder=True)


def make_model_fn(width, learning_rate):
    """Returns the model function of a network of that width."""

    def stars_of(features):
        regularise = tf.keras.regularizers.l2(1e-5)
        users = tf.get_variable("users", [USERS, width], regularizer=regularise)
        films = tf.get_variable("films", [FILMS, width], regularizer=regularise)
        user = tf.nn.embedding_lookup(users, features["user"])
        film = tf.nn.embedding_lookup(films, features["film"])
        both = tf.concat([user, film, user * film], axis=1)
        hidden = tf.layers.dense(both, 32, tf.nn.relu, name="hidden")
        return tf.squeeze(tf.layers.dense(hidden, 1, name="stars"), axis=1)

    def metric_fn(stars, given):
        return {
            "rmse": tf.metrics.root_mean_squared_error(given, stars),
            "off_by_one": tf.metrics.mean(tf.cast(tf.abs(given - stars) < 1.0, tf.float32)),
        }

    def model_fn(features, labels, mode, params):
        stars = stars_of(features)
        if mode == tf.estimator.ModeKeys.PREDICT:
            predictions = {"stars": stars, "watch": tf.cast(stars > 3.5, tf.int32)}
            return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)

        error = tf.reduce_mean(tf.square(stars - labels))
        loss = error + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        if mode == tf.estimator.ModeKeys.EVAL:
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode, loss=loss, eval_metrics=(metric_fn, [stars, labels])
            )

        def scaffold_fn():
            saver = tf.train.Saver(max_to_keep=3)
            return tf.train.Scaffold(saver=saver)

        optimizer = tf.train.AdagradOptimizer(learning_rate)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn
        )

    return model_fn


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/films",
        save_checkpoints_steps=400,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        make_model_fn(WIDTH, 0.05),
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        predict_batch_size=64,
    )
    inputs = {"eval_input_fn": make_input_fn(False), "predict_input_fn": predict_input_fn}
    return estimator, make_input_fn(True), inputs


WARD = {
    "columns": ("stars", "watch"),
    "others": {
        "an embedding is too small for the matrix unit": (
            "A lookup in a table is a Gather op, which does not use the matrix unit."
        ),
        "regularisation losses are not all-reduced": (
            "Each core adds the regularisation to its loss, and the gradients of that loss are all-reduced."
        ),
        "a comparison gives booleans, which cannot leave the core": (
            "tf.cast turns them into int32, or the host computes them, in metric_fn."
        ),
        "a closure cannot be a model function": "TPUEstimator accepts any function with the right arguments.",
        "the optimizer has no TPU version": (
            "CrossShardOptimizer wraps any optimizer of TensorFlow 1, and this one too."
        ),
    },
    "healthy": {
        "error + tf.add_n(tf.get_collection": "Each core adds the regularisation to its loss, as it should.",
        "tf.nn.embedding_lookup(": "A lookup is a Gather op, and the memory of each core holds small tables.",
        "def make_model_fn(": "TPUEstimator accepts any function with the right arguments.",
        '"off_by_one": tf.metrics.mean(': "metric_fn runs on the host.",
        "optimizer = tf.train.AdagradOptimizer(": "Any optimizer of TensorFlow 1 can be wrapped, and this one is.",
    },
    "faults": [
        {
            "rule": "TPU227",
            "right": '        return tf.squeeze(tf.layers.dense(hidden, 1, name="stars"), axis=1)\n',
            "wrong": '        return tf.layers.dense(hidden, 1, name="stars")\n',
            "at": ("error = tf.reduce_mean(tf.square(", 'return tf.layers.dense(hidden, 1, name="stars")'),
            "why": "every prediction is compared with every label",
            "comment": (
                "[B, 1] minus [B] gives [B, B], and this loss is lowest if every prediction is the mean of all "
                "labels."
            ),
            "silent": True,
        },
        {
            "rule": "TPU226",
            "right": 'params["batch_size"], drop_remainder=True)\n\n    return input_fn',
            "wrong": "64, drop_remainder=True)\n\n    return input_fn",
            "at": ("return dataset.batch(64",),
            "why": "the size of a batch does not follow what TPUEstimator asks for",
            "comment": (
                "With a fixed number, the batch sizes in the constructor have no effect, and the program fails on "
                "other topologies."
            ),
        },
        {
            "rule": "TPU211",
            "right": "            dataset = dataset.shuffle(count).repeat()\n",
            "wrong": "            dataset = dataset.shuffle(count).repeat(3)\n",
            "at": ("dataset = dataset.shuffle(count).repeat(3)", "return dataset.batch("),
            "why": "the data run out before a loop of steps ends",
            "comment": (
                "The data give 24 batches, but a loop takes 100. On a TPU, the number of steps ends the training, "
                "so repeat the data without end."
            ),
        },
        {
            "rule": "TPU204",
            "right": 'predictions = {"stars": stars, "watch": tf.cast(stars > 3.5, tf.int32)}',
            "wrong": 'predictions = {"stars": stars, "watch": tf.cast(stars > 3.5, tf.int32)}\n            predictions["advice"] = tf.gather(["skip it", "watch it"], predictions["watch"])',
            "at": ('predictions["advice"] = tf.gather(',),
            "why": "text is made on a core, which has only numbers",
            "comment": "A core has no strings, so predict a number, and look up the words on the host.",
        },
        {
            "rule": "TPU117",
            "right": "            saver = tf.train.Saver(max_to_keep=3)\n            return tf.train.Scaffold(saver=saver)\n",
            "wrong": "            saver = tf.train.Saver(max_to_keep=3)\n            tf.train.Scaffold(saver=saver)\n",
            "at": ("def scaffold_fn():", "tf.train.Scaffold(saver=saver)"),
            "why": "a function that TPUEstimator calls on the host gives nothing back",
            "comment": "scaffold_fn has to return the Scaffold.",
        },
        {
            "rule": "TPU129",
            "right": "iterations_per_loop=100, num_shards=8)",
            "wrong": "iterations_per_loop=100, num_shards=4)",
            "at": ("tpu_config=tf.estimator.tpu.TPUConfig(",),
            "why": "a number of cores that this TPU does not have",
            "comment": (
                "A v2-8 has eight cores. It is better to leave num_shards out, since TPUEstimator asks the TPU."
            ),
        },
    ],
}
