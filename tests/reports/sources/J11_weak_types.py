import os

import jax
import jax.numpy as jnp
import numpy as np

FAULTY = bool(os.environ.get("FAULTY"))


@jax.jit
def step(state, batch):
    gradient = jax.grad(lambda w: jnp.mean(jnp.square(batch @ w)))(state["weights"])
    size = state["size"] * jnp.float32(0.99)  # <- TPU242
    return {"weights": state["weights"] - size * gradient, "size": size}


def port():
    size = 0.1 if FAULTY else jnp.float32(0.1)
    return step, ({"weights": jnp.eye(64), "size": size}, np.ones((256, 64), np.float32))
