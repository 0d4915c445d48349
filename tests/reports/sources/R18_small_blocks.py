import os

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def double(x_ref, y_ref):
    y_ref[...] = 2 * x_ref[...]


@jax.custom_vjp
def doubled(x):
    rows = 2 if os.environ.get("FAULTY") else 8
    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(  # <- TPU343
        double, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block, out_shape=shape
    )(x)


doubled.defvjp(lambda x: (doubled(x), None), lambda _, grad: (2 * grad,))


@jax.jit
def step(weights, batch):
    loss, grads = jax.value_and_grad(lambda w: jnp.mean(doubled(batch @ w) ** 2))(weights)
    return weights - 0.1 * grads, loss


weights = jnp.ones((128, 128))
for number in range(3):
    weights, loss = step(weights, jax.random.normal(jax.random.key(number), (64, 128)))
