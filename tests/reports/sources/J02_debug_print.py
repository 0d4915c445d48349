import os

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, batch):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.square(batch @ w)))(weights)
    if os.environ.get("FAULTY"):
        jax.debug.print("loss {}", loss)  # <- TPU241
    return weights - 0.1 * gradient


def port():
    return step, (jnp.eye(64), np.ones((256, 64), np.float32))
