import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.compat.v1.estimator import tpu


def curves(count, seed):
    """Hums of four machines, 32 numbers each, and which machine it is."""
    random = np.random.RandomState(seed)
    machine = random.randint(0, 4, count).astype(np.int32)
    phase = random.uniform(0, 6.28, [count, 1])
    hum = np.sin((machine[:, None] + 1) * np.linspace(0, 6.28, 32) + phase)
    return hum.astype(np.float32), machine


def train_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(curves(512, seed=1)).shuffle(512).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(curves(256, seed=2))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(tf.layers.dense(features, 64, tf.nn.relu), 4)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    momentum = tf.train.MomentumOptimizer(params["learning_rate"], 0.9)
    optimizer = tf.tpu.CrossShardOptimizer(momentum) if params["use_tpu"] else momentum
    gradients = []
    for gradient, variable in optimizer.compute_gradients(loss):
        faster = 2.0 if "bias" in variable.name else 1.0  # biases learn twice as fast
        gradients.append((faster * gradient, variable))
    train_op = optimizer.apply_gradients(gradients, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    loop = tpu.TPUConfig(iterations_per_loop=100)
    config = tpu.RunConfig(model_dir="run/curves", save_checkpoints_steps=500, tpu_config=loop)
    sizes = {"train_batch_size": 64, "eval_batch_size": 64}
    params = {"learning_rate": 0.05}
    estimator = tpu.TPUEstimator(model_fn, config=config, params=params, use_tpu=False, **sizes)
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


WARD = {
    "others": {
        "the metrics are computed on the TPU, but they belong on the host": (
            "metric_fn runs on the host, with the tensors that eval_metrics lists."
        ),
        "gradients may not be changed before they are applied": (
            "Doubling the gradient of each core doubles their sum, so it may be done before the sum as well as "
            "after it."
        ),
        "the optimizer is wrapped on a CPU too": "It is wrapped only if params['use_tpu'].",
        "a checkpoint is due in the middle of a loop": "500 is a multiple of the loop of 100.",
    },
    "healthy": {
        "optimizer = tf.tpu.CrossShardOptimizer(momentum) if": (
            "The optimizer is wrapped only on a TPU, as it should be. But which line uses the wrapper?"
        ),
        "in optimizer.compute_gradients(loss)": (
            "Here, the wrapper divides the loss by the number of cores, which is the first half of its work."
        ),
        "gradients.append((faster * gradient": "Doubling a gradient before the sum is as good as after it.",
        "save_checkpoints_steps=500": "500 is a multiple of the loop of 100.",
        "eval_metrics=(metric_fn, [labels, logits])": (
            "The spec lists a function and its tensors, so the host counts."
        ),
        'dataset.batch(params["batch_size"]': "This makes full batches of the size that TPUEstimator asks for.",
    },
    "faults": [
        {
            "rule": "TPU201",
            "right": "train_op = optimizer.apply_gradients(",
            "wrong": "train_op = momentum.apply_gradients(",
            "why": "each core updates its copy of the model with its own gradients",
            "comment": (
                "The wrapper sums the gradients in its own apply_gradients, but this line calls apply_gradients of "
                "the inner optimizer."
            ),
            "silent": True,
        },
    ],
}
