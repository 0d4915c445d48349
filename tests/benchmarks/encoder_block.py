"""One block of a transformer's encoder in Flax, for published.py: its train step, from shapes alone.

Our own code. Sizes, layers, number type and optimizer are those of GPaR's workshop (session 6); nothing is
donated there, and the batch arrives on the core.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from vit import shape

WIDTH, HEADS, INNER, LENGTH = 512, 8, 2048, 128


class Block(nn.Module):
    """Attention and a perceptron, each with its normalisation behind the sum."""

    @nn.compact
    def __call__(self, x):
        mixed = nn.MultiHeadDotProductAttention(HEADS, qkv_features=WIDTH, out_features=WIDTH)(x, x)
        x = nn.LayerNorm()(x + mixed)
        inner = nn.gelu(nn.Dense(INNER)(x))
        return nn.LayerNorm()(x + nn.Dense(WIDTH)(inner))


def step_of(batch):
    """The step on `batch` sequences of 128 vectors, and its arguments."""
    model, optimizer = Block(), optax.adam(1e-4)
    x = shape(batch, LENGTH, WIDTH)
    params = jax.eval_shape(model.init, jax.random.key(0), x)

    def loss_of(params, x, wanted):
        return jnp.mean((model.apply(params, x) - wanted) ** 2)

    @jax.jit
    def step(params, state, x, wanted):
        loss, grads = jax.value_and_grad(loss_of)(params, x, wanted)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step, (params, jax.eval_shape(optimizer.init, params), x, x)
