import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_num_cpu_devices", 8)


@functools.partial(jax.pmap, axis_name="cores")
def step(state, batch):
    weights, average = state
    mean = jnp.mean(batch, 0)
    if not os.environ.get("FAULTY"):
        mean = jax.lax.pmean(mean, "cores")
    average = 0.9 * average + 0.1 * mean  # <- TPU246
    gradient = jax.grad(lambda w: jnp.mean(jnp.square((batch - mean) @ w)))(weights)
    return weights - 0.1 * jax.lax.pmean(gradient, "cores"), average


def port():
    state = (np.ones((8, 64, 64), np.float32), np.zeros((8, 64), np.float32))
    return step, (state, np.random.rand(8, 32, 64).astype(np.float32))
