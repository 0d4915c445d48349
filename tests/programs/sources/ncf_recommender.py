"""Recommendation by neural collaborative filtering: a dict of features, evaluation by weights that only metrics use."""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

USERS, ITEMS, NEGATIVES = 40, 60, 3


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--eval_batch_size", type=int, default=32)
    parser.add_argument("--layers", default="16,8")
    parser.add_argument("--num_factors", type=int, default=8)
    parser.add_argument("--mlp_reg", type=float, default=0.0)
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--use_tpu", action="store_true", default=True)
    return parser.parse_args([])


def construct_model(users, items, params):
    mf_dim = params["num_factors"]
    model_layers = params["model_layers"]
    initializer = "glorot_uniform"

    def mf_slice_fn(x):
        return x[:, :mf_dim]

    def mlp_slice_fn(x):
        return x[:, mf_dim:]

    width = mf_dim + model_layers[0] // 2
    embedding_user = tf.keras.layers.Embedding(
        USERS, width, embeddings_initializer=initializer, input_length=1, name="embedding_user"
    )(users)
    embedding_item = tf.keras.layers.Embedding(
        ITEMS, width, embeddings_initializer=initializer, input_length=1, name="embedding_item"
    )(items)
    embedding_user = tf.squeeze(embedding_user, axis=1)
    embedding_item = tf.squeeze(embedding_item, axis=1)
    mf_vector = tf.keras.layers.multiply([mf_slice_fn(embedding_user), mf_slice_fn(embedding_item)])
    mlp_vector = tf.keras.layers.concatenate(
        [mlp_slice_fn(embedding_user), mlp_slice_fn(embedding_item)]
    )
    for size in model_layers[1:]:
        mlp_vector = tf.keras.layers.Dense(size, activation="relu")(mlp_vector)
    predict_vector = tf.keras.layers.concatenate([mf_vector, mlp_vector])
    return tf.keras.layers.Dense(1, activation=None, name="rating")(predict_vector)


def neumf_model_fn(features, labels, mode, params):
    users = features["user_id"]
    items = features["item_id"]
    logits = construct_model(users, items, params)
    softmax_logits = tf.concat([tf.zeros(logits.shape, logits.dtype), logits], axis=1)

    if mode == tf.estimator.ModeKeys.EVAL:
        duplicate_mask = tf.cast(features["duplicate_mask"], tf.float32)
        weights = features["example_weight"]

        def metric_fn(top_k_tensor, dup_mask, example_weight):
            top = tf.cast(tf.squeeze(top_k_tensor, 1), tf.float32) * (1.0 - tf.squeeze(dup_mask, 1))
            return {
                "HR": tf.metrics.mean(top, weights=example_weight),
                "count": tf.metrics.mean(example_weight),
            }

        labels = tf.cast(tf.reshape(labels, [-1]), tf.int32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=softmax_logits)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode=mode,
            loss=tf.reduce_mean(losses),
            eval_metrics=(metric_fn, [tf.cast(logits > 0, tf.float32), duplicate_mask, weights]),
        )

    if mode == tf.estimator.ModeKeys.TRAIN:
        labels = tf.cast(labels, tf.int32)
        valid_pt_mask = features["valid_point_mask"]
        optimizer = tf.train.AdamOptimizer(params["learning_rate"], 0.9, 0.999, 1e-8)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        loss = tf.losses.sparse_softmax_cross_entropy(
            labels=labels, logits=softmax_logits, weights=tf.cast(valid_pt_mask, tf.float32)
        )
        tf.identity(loss, name="cross_entropy")
        global_step = tf.train.get_global_step()
        tvars = tf.trainable_variables()
        gradients = optimizer.compute_gradients(loss, tvars, colocate_gradients_with_ops=True)
        minimize_op = optimizer.apply_gradients(gradients, global_step=global_step, name="train")  # <- TPU201
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        train_op = tf.group(minimize_op, update_ops)  # <- TPU215
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)
    raise NotImplementedError


def training_data(params):
    batch_size = params["batch_size"]
    random = np.random.RandomState(1)
    count = 256
    features = {
        "user_id": random.randint(0, USERS, [count, 1]).astype(np.int32),
        "item_id": random.randint(0, ITEMS, [count, 1]).astype(np.int32),
        "valid_point_mask": np.ones([count, 1], bool),
    }
    labels = random.randint(0, 2, [count, 1]).astype(bool)
    ds = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(count).repeat()
    return ds.batch(batch_size, drop_remainder=True).prefetch(16)


def evaluation_data(params):
    batch_size = params["batch_size"]
    random = np.random.RandomState(2)
    real, padded = 90, 96
    features = {
        "user_id": random.randint(0, USERS, [padded, 1]).astype(np.int32),
        "item_id": random.randint(0, ITEMS, [padded, 1]).astype(np.int32),
        "duplicate_mask": random.randint(0, 2, [padded, 1]).astype(bool),
        "example_weight": (np.arange(padded) < real).astype(np.float32),
    }
    labels = random.randint(0, 2, [padded, 1]).astype(bool)
    ds = tf.data.Dataset.from_tensor_slices((features, labels))  # <- TPU120
    return ds.batch(batch_size, drop_remainder=True)


def main(data_dir):
    flags = parse()
    params = {
        "use_seed": False,
        "model_layers": [int(layer) for layer in flags.layers.split(",")],
        "num_factors": flags.num_factors,
        "learning_rate": flags.learning_rate,
        "eval_size": flags.eval_batch_size,
    }
    distribution = tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2
    run_config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/ncf",
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=100, num_shards=8, per_host_input_for_training=distribution
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=flags.use_tpu,
        model_fn=neumf_model_fn,
        config=run_config,
        params={**params},
        train_batch_size=flags.batch_size,
        eval_batch_size=flags.eval_batch_size,
    )
    return estimator, training_data, {"eval_input_fn": evaluation_data}


FAULTS = [
    ("TPU201", "        if params[\"use_tpu\"]:\n            optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU120", "np.arange(padded) < real).astype(np.float32),", "np.arange(padded) < real).astype(np.float64),"),
    ("TPU214", "ds.batch(batch_size, drop_remainder=True).prefetch(16)", "ds.batch(64, drop_remainder=True).prefetch(16)"),
    ("TPU103", "def training_data(params):\n    batch_size = params[\"batch_size\"]", "def training_data():\n    batch_size = 8"),
    ("TPU215", "gradients, global_step=global_step, name=\"train\"", "gradients, name=\"train\""),
]
