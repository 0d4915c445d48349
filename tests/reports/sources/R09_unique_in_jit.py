import os

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(table, batch):
    size = None if os.environ.get("FAULTY") else 64
    words = jnp.unique(batch, size=size, fill_value=0)  # <- TPU343
    return table.at[words].add(-0.1)


def port():
    return step, (jnp.ones((100, 8)), np.arange(64, dtype=np.int32))
