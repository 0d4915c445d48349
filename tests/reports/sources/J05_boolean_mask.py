import os

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, batch):
    mask = batch[0] > 0.5
    if os.environ.get("FAULTY"):
        weights = weights.at[:4, mask].set(0.0)  # <- TPU343
    else:
        weights = weights.at[:4].set(jnp.where(mask, 0.0, weights[:4]))
    return weights - 0.1 * jax.grad(lambda w: jnp.mean(jnp.square(batch @ w)))(weights)


def port():
    return step, (jnp.eye(64), np.ones((256, 64), np.float32))
