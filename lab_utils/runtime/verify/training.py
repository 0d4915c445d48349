"""The flowers model's training step in Keras 3 on JAX, and a matmul: timed here, and the step's least time.

The least time is that of a core of a TPU, by that TPU's compiler, which needs no TPU. It is asked in a
process of its own: the compiler may end it, and a chip that is here belongs to the measurement.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils import runtime
from lab_utils.runtime import chips

CLASSES, STEPS = 5, 10
_ROUNDS = 16  # matmuls, one after the other
MEASURED = "measured here"
COMPUTED = "computed by the TPU compiler, with quoted peaks"


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
    state, *data = jax.device_put((state, images, targets), program.input_shardings[0])
    losses, seconds = [], []
    for count in (1, STEPS):
        start = time.perf_counter()
        for _ in range(count):
            loss, state = program(state, *data)
            losses.append(loss)
        float(loss)  # waits until all is done
        seconds.append((time.perf_counter() - start) / count)
    figures = [
        figure("compilation", compiled, "s", MEASURED),
        figure("first step", seconds[0] * 1e3, "ms", MEASURED),
        figure("step", seconds[1] * 1e3, "ms", MEASURED),
        figure("images a second, all cores", batch * len(devices) / seconds[1], "1/s", MEASURED),
    ]
    return figures, [round(float(loss), 4) for loss in losses]


def matmul(device: Any, size: int) -> dict[str, Any]:
    """The FLOP/s of square matmuls, one after the other: bfloat16 on a TPU."""
    import jax

    dtype = "bfloat16" if device.platform == "tpu" else "float32"
    scale = 1 / math.sqrt(size)
    left, right = (
        jax.device_put(np.random.default_rng(seed).normal(0, scale, (size, size)), device)
        for seed in (0, 1)
    )
    left, right = left.astype(dtype), right.astype(dtype)
    product = jax.jit(lambda x, w: jax.lax.fori_loop(0, _ROUNDS, lambda _, y: y @ w, x)[0, 0])
    float(product(left, right))
    start = time.perf_counter()
    float(product(left, right))
    flops = 2 * size**3 * _ROUNDS / (time.perf_counter() - start)
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


def least_time(kind: str, batch: int, image_size: int, dtype: str) -> float | None:
    """Seconds, from the compiler's FLOP and bytes and published peaks; None where it cannot compile.

    Args:
        kind: as JAX names the device; one that chips.py does not list cannot be compiled for.
        batch: images a core.
        image_size: side in pixels.
        dtype: as `keras_model.network` takes it.
    """
    command = [sys.executable, "-m", __name__, kind, str(batch), str(image_size), dtype]
    variables = runtime.NO_CHIP | {"JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"}
    child = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    return json.loads(child.stdout.splitlines()[-1]) if child.returncode == 0 else None


def compute(kind: str, batch: int, image_size: int, dtype: str) -> float:
    """As `least_time`, in this process; raises whatever JAX or libtpu raise."""
    import jax

    from lab_utils.dry_run.inspect import compile_stablehlo

    chip = chips.of_jax_kind(kind)
    step, *arguments = flowers(batch, image_size, dtype)
    shapes: Any = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
    # Not jax.jit(...).lower(...).compile() for the topology: jax 0.7.2 with libtpu 0.0.21.1 ends there.
    lowered = jax.jit(step).trace(*shapes).lower(lowering_platforms=("tpu",))
    cost = compile_stablehlo(lowered.as_text(), chip.example, cores=1)["cost"]
    return chip.roofline(cost["flops"], cost["bytes"]).seconds


if __name__ == "__main__":
    print(json.dumps(compute(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
