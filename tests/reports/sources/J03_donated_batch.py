import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

DONATED = (0, 1) if os.environ.get("FAULTY") else (0,)


@functools.partial(jax.jit, donate_argnums=DONATED)  # <- TPU341
def step(state, batch):
    def cost(state):
        return jnp.mean(jnp.square(batch["image"] @ state - batch["label"][:, None]))

    return state - 0.1 * jax.grad(cost)(state)


def port():
    batch = {"image": np.ones((256, 64), np.float32), "label": np.ones((256,), np.float32)}
    return step, (jnp.eye(64), batch)
