"""What is measured: a matmul, and the flowers model's training step, in Keras 3 on JAX."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CLASSES, STEPS = 5, 10
MEASURED = "measured here"


def train(
    devices: list[Any], batch: int, image_size: int, dtype: str
) -> tuple[list[dict[str, Any]], list[float]]:
    """One step of the flowers model, and ten more; the figures, and the loss before each step.

    The pictures are noise in a colour of their class, the same in every run, so that the loss has to fall.
    """
    import jax

    from lab_utils.flowers import jax_port

    step, state, images, targets = flowers(batch * len(devices), image_size, dtype)
    start = time.perf_counter()
    program = jax_port.data_parallel(step, devices).lower(state, images, targets).compile()
    compiled = time.perf_counter() - start
    placed = [
        jax.device_put(each, where)
        for each, where in zip((state, images, targets), program.input_shardings[0], strict=True)
    ]
    state, *data = placed

    def run(state, count):
        losses = []
        start = time.perf_counter()
        for _ in range(count):
            loss, state = program(state, *data)
            losses.append(loss)
        losses = [round(float(loss), 4) for loss in losses]  # waits until all is done
        return state, losses, (time.perf_counter() - start) / count

    state, first, once = run(state, 1)
    state, others, each = run(state, STEPS)
    figures = [
        figure("compilation", compiled, "s", MEASURED),
        figure("first step", once * 1e3, "ms", MEASURED),
        figure("step", each * 1e3, "ms", MEASURED),
        figure("images a second, all cores", batch * len(devices) / each, "1/s", MEASURED),
    ]
    return figures, first + others


def matmul(device: Any, size: int, rounds: int = 16) -> dict[str, Any]:
    """The FLOP/s of `rounds` square matmuls, one after the other: bfloat16 on a TPU."""
    import jax

    dtype = "bfloat16" if device.platform == "tpu" else "float32"
    scale = 1 / math.sqrt(size)
    left, right = (
        jax.device_put(np.random.default_rng(seed).normal(0, scale, (size, size)), device)
        for seed in (0, 1)
    )
    left, right = left.astype(dtype), right.astype(dtype)
    product = jax.jit(lambda x, w: jax.lax.fori_loop(0, rounds, lambda _, y: y @ w, x)[0, 0])
    float(product(left, right))
    start = time.perf_counter()
    float(product(left, right))
    flops = 2 * size**3 * rounds / (time.perf_counter() - start)
    return figure(f"matmul, {dtype}", flops / 1e12, "TFLOP/s", MEASURED)


def flowers(images: int, image_size: int, dtype: str) -> tuple[Callable, Any, Any, Any]:
    """The step, its first state and a batch, each as `jax_port.train_step` has it."""
    import keras

    from lab_utils.flowers import jax_port, keras_model

    keras.utils.set_random_seed(0)
    model = keras_model.network(image_size, CLASSES, dtype=dtype, dropout=0.0)
    step, state = jax_port.train_step(
        model, keras_model.optimizer(0.05, 10 * STEPS), keras_model.loss()
    )
    rng = np.random.default_rng(0)
    labels = np.arange(images) % CLASSES
    colours = rng.integers(0, 192, (CLASSES, 1, 1, 3))
    noise = rng.integers(0, 64, (images, image_size, image_size, 3))
    pictures = (colours[labels] + noise).astype(np.uint8)
    return step, state, pictures, np.eye(CLASSES, dtype=np.float32)[labels]


def figure(name: str, value: float, unit: str, kind: str) -> dict[str, Any]:
    """A figure of the report, to four digits."""
    return {"name": name, "value": float(f"{value:.4g}"), "unit": unit, "kind": kind}
