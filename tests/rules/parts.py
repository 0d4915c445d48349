"""Parts that the ports share: a small right model, a right input_fn, a TPUEstimator around them."""

from lab_utils.estimator import tf, tpu, v1

TRAIN, EVAL, PREDICT = "train", "eval", "infer"
SIZE, CLASSES = 16, 4


def examples(count=256):
    features = tf.random.stateless_uniform([count, SIZE], (1, 2))
    labels = tf.random.stateless_uniform([count], (3, 4), maxval=CLASSES, dtype=tf.int32)
    return tf.data.Dataset.from_tensor_slices((features, labels))


def batched(dataset, params):
    return dataset.shuffle(64).repeat().batch(params["batch_size"], drop_remainder=True).prefetch(1)


def train_input(params):
    return batched(examples(), params)


def eval_input(params):
    return examples().batch(params["batch_size"], drop_remainder=True)


def predict_input(params):
    return examples().map(lambda features, labels: features).batch(params["batch_size"])


def receiver():
    features = v1.placeholder(tf.float32, [None, SIZE])
    return tf.estimator.export.TensorServingInputReceiver(features, features)


def logits_of(features):
    hidden = v1.layers.dense(features, 32, tf.nn.relu, name="hidden")
    return v1.layers.dense(hidden, CLASSES, name="logits")


def loss_of(labels, logits):
    return v1.losses.sparse_softmax_cross_entropy(labels, logits)


def metric_fn(labels, logits):
    return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))}


def minimize(loss, optimizer=None):
    optimizer = v1.tpu.CrossShardOptimizer(optimizer or v1.train.GradientDescentOptimizer(0.1))
    return optimizer.minimize(loss, v1.train.get_global_step())


def spec(mode, labels, logits, **extra):
    """The right spec for `mode`."""
    if mode == PREDICT:
        predictions = {"class": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = loss_of(labels, logits)
    if mode == EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss), **extra)


def model_fn(features, labels, mode, params):
    return spec(mode, labels, logits_of(features))


def estimator(model=model_fn, *, params=None, run_config=None, **settings):
    settings = {"use_tpu": False, "train_batch_size": 64, "eval_batch_size": 64} | settings
    config = tpu.RunConfig(
        model_dir=(run_config or {}).pop("model_dir", "never_written"),
        tpu_config=tpu.TPUConfig(
            **({"iterations_per_loop": 10} | (run_config or {}).pop("loop", {}))
        ),
        **(run_config or {}),
    )
    return tpu.TPUEstimator(model, config=config, params=params, **settings)
