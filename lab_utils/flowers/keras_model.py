"""The flowers model in Keras 3, layer by layer the same as `model.inference`, for any of its backends.

Nothing here imports TensorFlow: under KERAS_BACKEND=jax the same lines make the JAX model. The names of
the layers are those of the Estimator's variables, so that weights carry over by name.
"""

import math
from typing import Any

import keras

from lab_utils.flowers import recipe


def network(
    image_size: int, classes: int, *, dtype: str = "float32", dropout: float = recipe.DROPOUT
) -> keras.Model:
    """From images to class scores.

    Args:
        image_size: side S of the images in pixels; a multiple of 16, at least 32.
        classes: number of classes.
        dtype: "float32", or "mixed_bfloat16" for activations in bfloat16 beside float32 variables.
        dropout: share of the pooled features dropped in training; 0 makes a training step repeatable.

    Returns:
        A model from uint8 [B, S, S, 3] to logits, float32 [B, classes]. Not compiled.
    """
    # Keras adds l2 * sum(w^2), TensorFlow half of it.
    decay = keras.regularizers.L2(recipe.WEIGHT_DECAY / 2)
    images = keras.Input((image_size, image_size, 3), dtype="uint8", name="image")
    x = keras.layers.Rescaling(1 / 127.5, offset=-1.0, dtype=dtype, name="scale")(images)
    side = image_size // 4  # as tf.nn.space_to_depth: channels by row, column, colour
    x = keras.layers.Reshape((side, 4, side, 4, 3), dtype=dtype, name="split")(x)
    x = keras.layers.Permute((1, 3, 2, 4, 5), dtype=dtype, name="permuted")(x)
    x = keras.layers.Reshape((side, side, 48), dtype=dtype, name="patches")(x)
    for index, filters in enumerate(recipe.WIDTHS):
        end = f"_{index}" if index else ""
        if index:
            x = keras.layers.MaxPooling2D(2, dtype=dtype, name=f"pool{end}")(x)
        x = keras.layers.Conv2D(
            filters,
            3,
            padding="same",
            use_bias=False,
            kernel_regularizer=decay,
            dtype=dtype,
            name=f"conv2d{end}",
        )(x)
        x = keras.layers.BatchNormalization(
            momentum=recipe.STATISTICS_MOMENTUM, dtype=dtype, name=f"batch_normalization{end}"
        )(x)
        x = keras.layers.ReLU(dtype=dtype, name=f"relu{end}")(x)
    x = keras.layers.GlobalAveragePooling2D(dtype=dtype, name="pool_all")(x)
    x = keras.layers.Dropout(dropout, dtype=dtype, name="dropout")(x)
    x = keras.layers.Dense(classes, kernel_regularizer=decay, dtype=dtype, name="dense")(x)
    logits = keras.layers.Activation("linear", dtype="float32", name="logits")(x)
    return keras.Model(images, logits, name="flowers")


def loss() -> keras.losses.Loss:
    """Cross-entropy with smoothed labels: takes one-hot labels [B, classes] and logits."""
    return keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=recipe.LABEL_SMOOTHING
    )


@keras.saving.register_keras_serializable("lab_utils")
class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly, then falls along half a cosine to zero at `train_steps`."""

    def __init__(self, highest: float, train_steps: int) -> None:
        self.highest, self.train_steps = highest, train_steps

    def __call__(self, step):
        """The rate of a step: float32 scalar."""
        progress = keras.ops.cast(step, "float32") / self.train_steps
        rise = keras.ops.minimum(1.0, progress / recipe.WARMUP + 1e-3)
        fall = 0.5 * (1.0 + keras.ops.cos(math.pi * keras.ops.minimum(1.0, progress)))
        return self.highest * rise * fall

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs."""
        return {"highest": self.highest, "train_steps": self.train_steps}


@keras.saving.register_keras_serializable("lab_utils")
class Momentum(keras.optimizers.SGD):
    """Nesterov momentum as tf.compat.v1.train.MomentumOptimizer has it.

    Keras multiplies the learning rate into what the momentum remembers, TensorFlow 1 into each step. The two
    agree while the rate stays as it is, and part while it rises or falls.
    """

    def update_step(self, gradient, variable, learning_rate) -> None:
        """m' = momentum * m + g; w' = w - rate * (momentum * m' + g)."""
        memory = self.momentums[self._get_variable_index(variable)]
        gradient = keras.ops.cast(gradient, variable.dtype)
        rate = keras.ops.cast(learning_rate, variable.dtype)
        self.assign(memory, self.momentum * memory + gradient)
        self.assign_sub(variable, rate * (self.momentum * memory + gradient))


def optimizer(highest: float, train_steps: int) -> keras.optimizers.Optimizer:
    """The Estimator port's optimizer, without CrossShardOptimizer: a strategy sums the gradients."""
    rate = LearningRate(highest, train_steps)
    return Momentum(rate, momentum=recipe.MOMENTUM, nesterov=True)
