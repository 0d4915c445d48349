"""ResNet-50 in Flax, for published.py: one core's train step in bfloat16, from shapes alone.

Our own code. Network, batch a core, number types and optimizer are those of Flax's ImageNet example with
configs/tpu.py; images arrive on the core. Without the mean of the gradients over the cores.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from vit import HALF, shape


class _Block(nn.Module):
    """A bottleneck, its stride in the convolution of 3 by 3."""

    filters: int
    strides: tuple[int, int]

    @nn.compact
    def __call__(self, x):
        conv = functools.partial(nn.Conv, use_bias=False, dtype=HALF)
        norm = functools.partial(
            nn.BatchNorm, use_running_average=False, momentum=0.9, epsilon=1e-5, dtype=HALF
        )
        y = nn.relu(norm()(conv(self.filters, (1, 1))(x)))
        y = nn.relu(norm()(conv(self.filters, (3, 3), self.strides)(y)))
        y = norm(scale_init=nn.initializers.zeros)(conv(4 * self.filters, (1, 1))(y))
        if x.shape != y.shape:
            x = norm()(conv(4 * self.filters, (1, 1), self.strides)(x))
        return nn.relu(x + y)


class ResNet50(nn.Module):
    """Images [batch, 224, 224, 3] to the logits of 1,000 classes."""

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(64, (7, 7), (2, 2), padding=[(3, 3), (3, 3)], use_bias=False, dtype=HALF)(x)
        x = nn.BatchNorm(use_running_average=False, momentum=0.9, epsilon=1e-5, dtype=HALF)(x)
        x = nn.max_pool(nn.relu(x), (3, 3), strides=(2, 2), padding="SAME")
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for n in range(blocks):
                x = _Block(64 * 2**stage, (2, 2) if stage and not n else (1, 1))(x)
        return nn.Dense(1000, dtype=HALF)(jnp.mean(x, (1, 2))).astype(jnp.float32)


def step_of(batch):
    """The step on `batch` images, and its arguments."""
    model, optimizer = ResNet50(), optax.sgd(0.1, momentum=0.9, nesterov=True)
    images = shape(batch, 224, 224, 3, dtype=HALF)
    variables = jax.eval_shape(model.init, jax.random.key(0), images)
    params, averages = variables["params"], variables["batch_stats"]

    def loss_of(params, averages, images, labels):
        logits, new = model.apply(
            {"params": params, "batch_stats": averages}, images, mutable=["batch_stats"]
        )
        entropy = jnp.mean(optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 1000)))
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params) if leaf.ndim > 1)
        return entropy + 1e-4 * 0.5 * squares, (new["batch_stats"], logits)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, images, labels):
        params, moments, averages = state
        grad = jax.value_and_grad(loss_of, has_aux=True)
        (loss, (averages, logits)), grads = grad(params, averages, images, labels)
        updates, moments = optimizer.update(grads, moments, params)
        right = jnp.mean(jnp.argmax(logits, -1) == labels)
        return (optax.apply_updates(params, updates), moments, averages), loss, right

    state = (params, jax.eval_shape(optimizer.init, params), averages)
    return step, (state, images, shape(batch, dtype=jnp.int32))
