import os

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, batch):
    precision = None if os.environ.get("FAULTY") else "highest"
    with jax.default_matmul_precision(precision):
        gradient = jax.grad(lambda w: jnp.mean(jnp.square(batch @ w - batch)))(weights)
    return weights - 0.1 * gradient


def port():
    return step, (jnp.eye(256), np.ones((1024, 256), np.float32))
