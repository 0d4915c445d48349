"""MLP-Mixer-B/16 in Flax, for published.py: one core's train step in float32, from shapes alone.

Our own code. Sizes, batch a core, number type and optimizer are those of big_vision's mlp_mixer_i1k.py;
images arrive on the core, already mixed. Without stochastic depth, and without the mean over the cores.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from vit import shape

BLOCKS, WIDTH, TOKENS, CHANNELS = 12, 768, 384, 3072


class _Perceptron(nn.Module):
    inner: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(self.inner)(x)))


class Mixer(nn.Module):
    """Images [batch, 224, 224, 3] to the logits of 1,000 classes."""

    @nn.compact
    def __call__(self, images):
        x = nn.Conv(WIDTH, (16, 16), (16, 16))(images)
        x = x.reshape(x.shape[0], -1, WIDTH)
        for _ in range(BLOCKS):
            mixed = _Perceptron(TOKENS)(jnp.swapaxes(nn.LayerNorm()(x), 1, 2))
            x = x + jnp.swapaxes(mixed, 1, 2)
            x = x + _Perceptron(CHANNELS)(nn.LayerNorm()(x))
        return nn.Dense(1000)(jnp.mean(nn.LayerNorm()(x), 1))


def step_of(batch):
    """The step on `batch` images, and its arguments."""
    model = Mixer()
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(),
        optax.add_decayed_weights(1e-4),
        optax.scale(-1e-3),
    )
    images = shape(batch, 224, 224, 3)
    params = jax.eval_shape(model.init, jax.random.key(0), images)

    def loss_of(params, images, wanted):
        logits = model.apply(params, images)
        return jnp.mean(jnp.sum(optax.sigmoid_binary_cross_entropy(logits, wanted), -1))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, images, wanted):
        params, moments = state
        loss, grads = jax.value_and_grad(loss_of)(params, images, wanted)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments), loss

    return step, ((params, jax.eval_shape(optimizer.init, params)), images, shape(batch, 1000))
