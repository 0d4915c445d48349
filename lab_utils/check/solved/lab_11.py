"""Made from solutions/source/11_keras_images.ipynb by `python -m lab_utils.build`: change it there."""

import tempfile

from lab_utils import runtime

runtime.quiet()  # before TensorFlow is imported

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

tf.get_logger().setLevel("ERROR")
PER_CORE = 128  # examples that a core of the TPU gets in a step


digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
held_out, kept = order[:360], order[360:]
pixels = digits.images.astype(np.uint8)[..., None]  # counts from 0 to 16
classes = digits.target.astype(np.int32)

moves = [
    layers.RandomTranslation(0.12, 0.12, fill_mode="constant", seed=1),
    layers.RandomRotation(0.02, fill_mode="constant", seed=2),
]


def augmented(images):
    """uint8 [B, 8, 8, 1] -> the same shape and type, each moved and turned at random."""
    images = tf.cast(images, tf.float32)
    for move in moves:
        images = move(images, training=True)
    return tf.cast(tf.round(images), tf.uint8)


def make_train_dataset(images, labels, global_batch):
    """uint8 [N, 8, 8, 1], int32 [N] -> a dataset of (images, labels), [global_batch, ...] each."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    # TODO 11a: full batches without end, changed on the host
    dataset = dataset.shuffle(2048, seed=1).repeat().batch(global_batch, drop_remainder=True)
    return dataset.map(lambda images, labels: (augmented(images), labels)).prefetch(1)


def make_model(dtype):
    """A model from uint8 [B, 8, 8, 1] to logits, float32 [B, 10]; between them the policy `dtype`."""
    images = keras.Input((8, 8, 1), dtype="uint8")
    net = layers.Rescaling(1 / 16, dtype=dtype)(images)
    net = layers.Conv2D(32, 3, padding="same", activation="relu", dtype=dtype)(net)
    net = layers.MaxPooling2D(2, dtype=dtype)(net)
    net = layers.Flatten(dtype=dtype)(net)
    # TODO 11b: a hidden layer in dtype, logits in float32, and the keras.Model
    net = layers.Dense(64, activation="relu", dtype=dtype)(net)
    logits = layers.Dense(10, dtype="float32")(net)
    return keras.Model(images, logits)


def make_compiled(strategy, dtype, learning_rate, steps_per_execution=1):
    """A compiled model on the strategy's devices; learning_rate is a number or a schedule."""
    # TODO 11c: make_model and compile in the strategy's scope
    with strategy.scope():
        model = make_model(dtype)
        model.compile(
            optimizer=keras.optimizers.SGD(learning_rate, momentum=0.9),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=["accuracy"],
            steps_per_execution=steps_per_execution,
        )
    return model


def make_eval_dataset(images, labels, global_batch):
    """uint8 [N, 8, 8, 1], int32 [N] -> (images, labels, float32 weights), [global_batch, ...] each."""
    # TODO 11d: fill up to a multiple of global_batch with weight 0
    missing = -len(labels) % global_batch
    weights = np.concatenate([np.ones(len(labels)), np.zeros(missing)]).astype(np.float32)
    images = np.concatenate([images, np.zeros((missing, *images.shape[1:]), images.dtype)])
    labels = np.concatenate([labels, np.zeros(missing, labels.dtype)])
    dataset = tf.data.Dataset.from_tensor_slices((images, labels, weights))
    return dataset.batch(global_batch, drop_remainder=True)


def make_schedule(rate, cores, steps):
    """The learning rate over `steps` steps, for `cores` times the batch that `rate` was found for."""
    # TODO 11e: warm up to cores * rate in steps // 10, then a cosine to 0
    warm_up = steps // 10
    return keras.optimizers.schedules.CosineDecay(
        rate, steps - warm_up, warmup_target=cores * rate, warmup_steps=warm_up
    )
