"""ResNet-50 v2 in JAX, for published.py: one core's train step in float32, from shapes alone.

Our own code. Network, batch a core, number type and optimizer are those of Haiku's ImageNet example;
images arrive on the core. Without the mean of the gradients over the cores.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from vit import shape

STAGES = ((256, 3, 1), (512, 4, 2), (1024, 6, 2), (2048, 3, 2))  # channels, blocks, stride
DECAY, WEIGHT_DECAY, MOMENTUM = 0.9, 1e-4, 0.9


def _conv(x, kernel, stride=1):
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _norm(x, weights, averages):
    """Batch normalisation and relu; the averages that come after it."""
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
    scale = weights["scale"] * lax.rsqrt(variance + 1e-5)
    new = {"mean": mean, "variance": variance}
    new = jax.tree.map(lambda old, now: DECAY * old + (1 - DECAY) * now, averages, new)
    return jax.nn.relu((x - mean) * scale + weights["offset"]), new


def _block(x, weights, averages, stride):
    """A bottleneck with its normalisations in front of its convolutions."""
    new = {}
    before, new["norm0"] = _norm(x, weights["norm0"], averages["norm0"])
    shortcut = _conv(before, weights["short"], stride) if "short" in weights else x
    y = _conv(before, weights["conv0"])
    y, new["norm1"] = _norm(y, weights["norm1"], averages["norm1"])
    y = _conv(y, weights["conv1"], stride)
    y, new["norm2"] = _norm(y, weights["norm2"], averages["norm2"])
    return shortcut + _conv(y, weights["conv2"]), new


def _strides():
    return [stride if n == 0 else 1 for _, blocks, stride in STAGES for n in range(blocks)]


def _loss(params, averages, images, labels):
    x, new = _conv(images, params["stem"], 2), {"blocks": []}
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for weights, old, stride in zip(params["blocks"], averages["blocks"], _strides(), strict=True):
        x, now = _block(x, weights, old, stride)
        new["blocks"].append(now)
    x, new["last"] = _norm(x, params["last"], averages["last"])
    logits = jnp.mean(x, (1, 2)) @ params["head"] + params["bias"]
    entropy = -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 1000) * jax.nn.log_softmax(logits), -1))
    kernels = [leaf for leaf in jax.tree.leaves(params) if leaf.ndim > 1]
    return entropy + WEIGHT_DECAY * 0.5 * sum(jnp.sum(k * k) for k in kernels), new


@functools.partial(jax.jit, donate_argnums=0)
def _step(state, images, labels):
    params, trace, averages = state
    gradients, averages = jax.grad(_loss, has_aux=True)(params, averages, images, labels)
    trace = jax.tree.map(lambda t, g: g + MOMENTUM * t, trace, gradients)
    params = jax.tree.map(  # Nesterov's form
        lambda p, t, g: p - 0.1 * (g + MOMENTUM * t), params, trace, gradients
    )
    return params, trace, averages


def step_of(batch):
    """The step on `batch` images of 224 pixels, and its arguments."""

    def both(channels, names):
        return {name: shape(channels) for name in names}

    params = {"stem": shape(7, 7, 3, 64), "blocks": []}
    averages, last = {"blocks": []}, 64
    for channels, blocks, _ in STAGES:
        inner = channels // 4
        for n in range(blocks):
            norms = {"norm0": last, "norm1": inner, "norm2": inner}
            block = {name: both(size, ("scale", "offset")) for name, size in norms.items()}
            block |= {
                "conv0": shape(1, 1, last, inner),
                "conv1": shape(3, 3, inner, inner),
                "conv2": shape(1, 1, inner, channels),
            }
            if n == 0:
                block["short"] = shape(1, 1, last, channels)
            params["blocks"].append(block)
            averages["blocks"].append(
                {name: both(size, ("mean", "variance")) for name, size in norms.items()}
            )
            last = channels
    params |= {
        "last": both(last, ("scale", "offset")),
        "head": shape(last, 1000),
        "bias": shape(1000),
    }
    averages["last"] = both(last, ("mean", "variance"))
    images = shape(batch, 224, 224, 3)
    return _step, ((params, params, averages), images, shape(batch, dtype=jnp.int32))
