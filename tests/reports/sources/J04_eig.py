import os

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, batch):
    symmetric = weights.T @ weights
    if os.environ.get("FAULTY"):
        radius = jnp.abs(jnp.linalg.eig(symmetric)[0]).max()  # <- TPU343
    else:
        radius = jnp.abs(jnp.linalg.eigh(symmetric)[0]).max()
    gradient = jax.grad(lambda w: jnp.mean(jnp.square(batch @ w)))(weights)
    return (weights - 0.1 * gradient) / radius


def port():
    return step, (jnp.eye(32), np.ones((256, 32), np.float32))
