"""ViT-S/16 in JAX, for published.py: one core's train step, from shapes alone.

Our own code. Sizes, batch a core and number types are as published; images arrive on the core.
"""

import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

HALF = jnp.bfloat16


def adam(loss_of, params, *batch):
    """A jitted train step with Adam's moments, and its arguments."""

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, *batch):
        params, first, second = state
        grads = jax.grad(loss_of)(params, *batch)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
        new = jax.tree.map(
            lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, first, second
        )
        return new, first, second

    return step, ((params, params, params), *batch)


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def _entropy(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
    return -jnp.mean(picked)


def norm(x):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def _layer(x, weights):
    """Attention and a perceptron of two matrices."""
    q, k, v = (jnp.einsum("bsd,dhc->bshc", norm(x), weights[name].astype(HALF)) for name in "qkv")
    scores = jnp.einsum("bshc,bthc->bhst", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    shares = jax.nn.softmax(scores)
    mixed = jnp.einsum("bhst,bthc->bshc", shares.astype(HALF), v)
    x = x + jnp.einsum("bshc,hcd->bsd", mixed, weights["out"].astype(HALF))
    return x + jax.nn.relu(norm(x) @ weights["up"].astype(HALF)) @ weights["down"].astype(HALF)


def _layers(count, width, heads, head, up):
    return {name: shape(count, width, heads, head) for name in "qkv"} | {
        "out": shape(count, heads, head, width),
        "up": shape(count, width, up),
        "down": shape(count, up, width),
    }


def step_of(batch):
    """ViT-S/16: 12 layers of 384, 6 heads, 196 patches of 16 pixels."""
    params = {
        "patch": shape(16 * 16 * 3, 384),
        "layers": _layers(12, 384, 6, 64, 1536),
        "head": shape(384, 1000),
    }

    def loss(params, images, labels):
        patches = images.reshape(batch, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5)
        x = patches.reshape(batch, 196, -1) @ params["patch"].astype(HALF)
        for n in range(12):
            x = _layer(x, jax.tree.map(lambda a, n=n: a[n], params["layers"]))
        return _entropy(x.mean(1).astype(jnp.float32) @ params["head"], labels)

    images = shape(batch, 224, 224, 3, dtype=HALF)
    return adam(loss, params, images, shape(batch, dtype=jnp.int32))
