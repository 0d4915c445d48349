import functools
import os

import flax.linen as nn
import jax
import jax.numpy as jnp

net = nn.Dense(8)
params = net.init(jax.random.key(0), jnp.ones((1, 16)))
averages = params
if not os.environ.get("FAULTY"):
    averages = jax.tree.map(jnp.copy, params)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(params, averages, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((net.apply(p, x) - y) ** 2))(params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    averages = jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, averages, params)
    return params, averages, loss


for number in range(10):
    x = jax.random.normal(jax.random.key(number), (64, 16))
    params, averages, loss = step(params, averages, x, x[:, :8])  # <- TPU247
