import os

import jax
import jax.numpy as jnp
import optax

WIDTH = 12288 if os.environ.get("FAULTY") else 1024
optimizer = optax.adam(1e-3)


@jax.jit  # <- TPU303
def step(state, batch):
    weights, moments = state

    def cost(weights):
        for each in weights:
            x = jnp.tanh(batch @ each)
        return jnp.mean(jnp.square(x - batch))

    changes, moments = optimizer.update(jax.grad(cost)(weights), moments)
    return optax.apply_updates(weights, changes), moments


def port():
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)] * 8
    state = (weights, jax.eval_shape(optimizer.init, weights))
    return step, (state, jax.ShapeDtypeStruct((64, WIDTH), jnp.float32))
