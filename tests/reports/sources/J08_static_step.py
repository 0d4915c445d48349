import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_num_cpu_devices", 8)
FAULTY = bool(os.environ.get("FAULTY"))


@functools.partial(  # <- TPU243
    jax.pmap,
    axis_name="cores",
    in_axes=(0, 0, None),
    static_broadcasted_argnums=2 if FAULTY else (),
)
def step(weights, batch, number):
    gradient = jax.grad(lambda w: jnp.mean(jnp.square(batch @ w)))(weights)
    return weights - 0.1 * jax.lax.pmean(gradient, "cores") / (1 + number)


def port():
    numbers = [0, 1, 2] if FAULTY else [np.int32(n) for n in range(3)]
    weights, batch = np.ones((8, 64, 64), np.float32), np.ones((8, 32, 64), np.float32)
    return step, (weights, batch, iter(numbers))
