import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_num_cpu_devices", 8)


@functools.partial(jax.pmap, axis_name="cores")
def step(weights, batch):
    def cost(weights):
        own = jnp.mean(jnp.square(batch @ weights))
        return jax.lax.psum(own, "cores") if os.environ.get("FAULTY") else own

    return weights - 0.1 * jax.lax.pmean(jax.grad(cost)(weights), "cores")  # <- TPU403


def port():
    return step, (np.ones((8, 64, 64), np.float32), np.random.rand(8, 32, 64).astype(np.float32))
