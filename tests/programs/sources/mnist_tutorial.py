"""The tutorial of handwritten digits: a Keras model within model_fn, params={"data_dir": ...}, three modes."""

import tensorflow as tf

FLAGS = {"batch_size": 64, "learning_rate": 0.05, "iterations": 50, "enable_predict": True, "use_tpu": True}


def create_model(data_format="channels_last"):
    l = tf.keras.layers
    return tf.keras.Sequential(
        [
            l.Reshape(target_shape=[14, 14, 1], input_shape=(14 * 14,)),
            l.Conv2D(8, 5, padding="same", data_format=data_format, activation=tf.nn.relu),
            l.MaxPooling2D((2, 2), (2, 2), padding="same", data_format=data_format),
            l.Conv2D(16, 5, padding="same", data_format=data_format, activation=tf.nn.relu),
            l.Flatten(),
            l.Dense(32, activation=tf.nn.relu),
            l.Dropout(0.4),
            l.Dense(10),
        ]
    )


def metric_fn(labels, logits):
    accuracy = tf.compat.v1.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, axis=1))
    return {"accuracy": accuracy}


def model_fn(features, labels, mode, params):
    del params
    image = features
    if isinstance(image, dict):
        image = features["image"]
    model = create_model()
    if mode == tf.estimator.ModeKeys.PREDICT:
        logits = model(image, training=False)
        predictions = {
            "class_ids": tf.argmax(logits, axis=1),
            "probabilities": tf.nn.softmax(logits),
        }
        return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)

    logits = model(image, training=(mode == tf.estimator.ModeKeys.TRAIN))
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)

    if mode == tf.estimator.ModeKeys.TRAIN:
        learning_rate = tf.compat.v1.train.exponential_decay(
            FLAGS["learning_rate"],
            tf.compat.v1.train.get_global_step(),
            decay_steps=100000,
            decay_rate=0.96,
        )
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(learning_rate=learning_rate)
        if FLAGS["use_tpu"]:
            optimizer = tf.compat.v1.tpu.CrossShardOptimizer(optimizer)
        return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(
            mode=mode,
            loss=loss,
            train_op=optimizer.minimize(loss, tf.compat.v1.train.get_global_step()),  # <- TPU201 TPU215
        )

    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(
            mode=mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )


def dataset(count):
    def example(n):
        image = tf.random.stateless_uniform([14 * 14], tf.stack([n, n]))
        return image, tf.cast(n % 10, tf.int32)

    return tf.data.Dataset.range(count).map(example)


def train_input_fn(params):
    batch_size = params["batch_size"]
    data_dir = params["data_dir"]
    assert data_dir
    ds = dataset(256).cache().repeat().shuffle(buffer_size=256)
    return ds.batch(batch_size, drop_remainder=True)


def eval_input_fn(params):
    batch_size = params["batch_size"]
    return dataset(128).batch(batch_size, drop_remainder=True)


def predict_input_fn(params):
    batch_size = params["batch_size"]
    dataset_predict = dataset(20).take(20).batch(batch_size)
    return dataset_predict.map(lambda image, _: image)


def main(data_dir):
    run_config = tf.compat.v1.estimator.tpu.RunConfig(
        model_dir="/tmp/mnist",
        session_config=tf.compat.v1.ConfigProto(allow_soft_placement=True, log_device_placement=True),
        tpu_config=tf.compat.v1.estimator.tpu.TPUConfig(FLAGS["iterations"], 8),
    )
    estimator = tf.compat.v1.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        use_tpu=FLAGS["use_tpu"],
        train_batch_size=FLAGS["batch_size"],
        eval_batch_size=FLAGS["batch_size"],
        predict_batch_size=FLAGS["batch_size"],
        params={"data_dir": data_dir},
        config=run_config,
    )
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn, "predict_input_fn": predict_input_fn}


FAULTS = [
    ("TPU201", "        if FLAGS[\"use_tpu\"]:\n            optimizer = tf.compat.v1.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "optimizer.minimize(loss, tf.compat.v1.train.get_global_step())", "optimizer.minimize(loss)"),
    ("TPU110", "        return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(\n            mode=mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])\n        )", "        return tf.estimator.EstimatorSpec(\n            mode=mode, loss=loss, eval_metric_ops=metric_fn(labels, logits)\n        )"),
    ("TPU216", "    ds = dataset(256).cache().repeat().shuffle(buffer_size=256)\n    return ds.batch(batch_size, drop_remainder=True)", "    ds = dataset(256).cache().repeat()\n    return ds.batch(batch_size, drop_remainder=True).shuffle(buffer_size=256)"),
    ("TPU223", "model(image, training=(mode == tf.estimator.ModeKeys.TRAIN))", "model(image, training=True)"),
]
