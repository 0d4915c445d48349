import os

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

SIZE = 1024 if os.environ.get("FAULTY") else 256


def gate(x_ref, y_ref, out_ref):
    out_ref[...] = x_ref[...] * jax.nn.sigmoid(y_ref[...])


@jax.custom_vjp
def gated(x, y):
    block = pl.BlockSpec((SIZE, SIZE), lambda i, j: (i, j))
    return pl.pallas_call(  # <- TPU309
        gate,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // SIZE, x.shape[1] // SIZE),
        in_specs=[block, block],
        out_specs=block,
    )(x, y)


def forward(x, y):
    return gated(x, y), (x, y)


def backward(saved, g):
    x, y = saved
    open_ = jax.nn.sigmoid(y)
    return g * open_, g * x * open_ * (1 - open_)


gated.defvjp(forward, backward)


@jax.jit
def step(params, batch):
    def loss_of(params):
        return jnp.mean(jnp.square(gated(batch @ params["x"], batch @ params["y"])))

    loss, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def port():
    weights = jax.ShapeDtypeStruct((512, 4096), jnp.float32)
    return step, ({"x": weights, "y": weights}, jax.ShapeDtypeStruct((4096, 512), jnp.float32))
