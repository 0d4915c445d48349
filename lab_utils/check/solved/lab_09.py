"""Made from solutions/source/09_todays_api.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (the Estimator of lab 02 is needed at the end)


import tempfile

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
held_out, kept = order[:360], order[360:]
scaled = (digits.images / 16).astype(np.float32)  # float32 [N, 8, 8] from 0 to 1
pixels = {"train": scaled[kept], "eval": scaled[held_out]}
labels = digits.target.astype(np.int32)
classes = {"train": labels[kept], "eval": labels[held_out]}


def make_strategy(use_tpu, tpu="local"):
    """Where the model lives: on this machine's device, or on every core of the TPU of that name."""
    # TODO 9a: the default strategy, or the TPU's
    if not use_tpu:
        return tf.distribute.get_strategy()
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def make_dataset(split, per_core, strategy):
    """(float32 [B, 8, 8] from 0 to 1, int32 [B]), B fixed: per_core for each of the replicas."""
    dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
    if split == "train":
        dataset = dataset.shuffle(2048, seed=1).repeat()
    # TODO 9b: full batches for all replicas together
    return dataset.batch(per_core * strategy.num_replicas_in_sync, drop_remainder=True).prefetch(1)


def make_model(strategy, make_optimizer, steps_per_execution=1):
    """The digits model, compiled, with a copy of its variables on each replica."""
    # TODO 9c: build and compile in the strategy's scope
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input((8, 8)),
                keras.layers.Reshape((8, 8, 1)),
                keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
                keras.layers.MaxPooling2D(2),
                keras.layers.Flatten(),
                keras.layers.Dense(64, activation="relu"),
                keras.layers.Dense(10),
            ]
        )
        model.compile(
            make_optimizer(),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            steps_per_execution=steps_per_execution,
            jit_compile=False,
        )
    return model


def replica_loss(labels, logits, global_batch):
    """int32 [b], float32 [b, 10] of one replica -> its part of the global mean, a scalar."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    # TODO 9d: the part that sums to the mean over the global batch
    return tf.reduce_sum(losses) / global_batch


def make_callbacks(folder):
    """Callbacks for fit: a run that was stopped goes on from what they saved in folder."""
    # TODO 9e: what lets a stopped run go on
    return [keras.callbacks.BackupAndRestore(folder)]


RATE = 3e-3


def make_adam():
    """The Estimator's Adam, in Keras."""
    # TODO 9f: the same updates as tf.compat.v1.train.AdamOptimizer(RATE)
    return keras.optimizers.Adam(RATE, epsilon=1e-8)


import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def block_loss(weights, x, target):
    """{"inner": [w, 4 w], "outer": [4 w, w]}, float32 [B, w], float32 [B, w] -> the mean squared error."""
    hidden = jax.nn.relu(x @ weights["inner"])
    return jnp.mean((hidden @ weights["outer"] - target) ** 2)


def step(weights, x, target):
    """One step of gradient descent: (new weights, loss)."""
    loss, gradients = jax.value_and_grad(block_loss)(weights, x, target)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


def data_parallel(step, devices):
    """step(weights, x, target), jitted: the batch split over the devices, the weights on each."""
    # TODO 9g: a mesh of the devices, and shardings for jax.jit
    mesh = Mesh(np.array(devices), ("cores",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    split = NamedSharding(mesh, PartitionSpec("cores"))
    return jax.jit(
        step, in_shardings=(everywhere, split, split), out_shardings=(everywhere, everywhere)
    )


def tensor_parallel(step, devices):
    """step(weights, x, target), jitted: the hidden units split over the devices, the batch on each."""
    # TODO 9h: a sharding for each of the two matrices
    mesh = Mesh(np.array(devices), ("cores",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    units = {
        "inner": NamedSharding(mesh, PartitionSpec(None, "cores")),
        "outer": NamedSharding(mesh, PartitionSpec("cores", None)),
    }
    return jax.jit(
        step, in_shardings=(units, everywhere, everywhere), out_shardings=(units, everywhere)
    )


def all_reduce_bytes(batch, width):
    """(bytes data-parallel, bytes tensor-parallel) of one device and step."""
    # TODO 9i: gradients in one case, outputs in the other
    weights = 2 * width * 4 * width
    return 4 * weights, 4 * batch * width


def all_reduce_seconds(bytes_, devices, link):
    """Bytes of the array, devices in the ring, bytes/s of a link one way -> seconds, at least."""
    # TODO 9j: two rounds of n - 1 pieces each, in both directions at once
    piece = bytes_ / devices
    return 2 * (devices - 1) * piece / (2 * link)
