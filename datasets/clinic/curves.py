"""Names the machine by its hum: curves of 32 numbers from four machines."""

import numpy as np
import tensorflow.compat.v1 as tf

CURVE, MACHINES, NUM_TRAIN, NUM_EVAL = 32, 4, 512, 256


def curves(count, seed):
    random = np.random.RandomState(seed)
    machine = random.randint(0, MACHINES, count).astype(np.int32)
    phase = random.uniform(0, 6.28, [count, 1])
    hum = np.sin((machine[:, None] + 1) * np.linspace(0, 6.28, CURVE) + phase)
    return hum.astype(np.float32), machine


def train_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(curves(NUM_TRAIN, seed=1))
    dataset = dataset.shuffle(NUM_TRAIN).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(curves(NUM_EVAL, seed=2))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 64, tf.nn.relu)
    logits = tf.layers.dense(net, MACHINES)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (metric_fn, [labels, logits])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)

    momentum = tf.train.MomentumOptimizer(params["learning_rate"], 0.9)
    optimizer = tf.tpu.CrossShardOptimizer(momentum) if params["use_tpu"] else momentum
    gradients = []
    for gradient, variable in optimizer.compute_gradients(loss):
        faster = 2.0 if "bias" in variable.name else 1.0  # biases learn twice as fast
        gradients.append((faster * gradient, variable))
    train_op = optimizer.apply_gradients(gradients, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/curves",
        save_checkpoints_steps=500,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        params={"learning_rate": 0.05},
    )
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


WARD = {
    "others": (
        "the batch size should be that of params, and here it is not",
        "the metrics are computed on the TPU, and they belong on the host",
        "gradients may not be changed before they are applied",
        "the optimizer is wrapped on a CPU too",
        "checkpoints do not coincide with the ends of loops",
    ),
    "healthy": {
        "optimizer = tf.tpu.CrossShardOptimizer(momentum) if": "The wrapper is there, on a TPU only, as it should be. Who uses it?",
        "in optimizer.compute_gradients(loss)": "The wrapper divides the loss by the number of cores here: that is its first half.",
        "gradients.append((faster * gradient": "Doubling a gradient before the sum is as good as after it.",
        "save_checkpoints_steps=500": "500 is a multiple of the loop of 100.",
        "metrics = (metric_fn, [labels, logits])": "A function and its tensors: the host counts.",
        'dataset.batch(params["batch_size"]': "A full batch of the size that TPUEstimator asks for.",
    },
    "faults": [
        {
            "rule": "TPU201",
            "right": "train_op = optimizer.apply_gradients(",
            "wrong": "train_op = momentum.apply_gradients(",
            "why": "each core updates its copy of the model with its own gradients",
            "comment": "The wrapper sums the gradients in its apply_gradients, and this line calls that of the optimizer inside.",
            "silent": True,
        },
    ],
}
