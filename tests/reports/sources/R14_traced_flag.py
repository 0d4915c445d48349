import functools
import os

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, training):
        x = nn.relu(nn.Dense(64)(x))
        x = nn.Dropout(0.2, deterministic=not training)(x)  # <- TPU343
        return nn.Dense(1)(x)


net, optimizer = Net(), optax.adam(1e-3)


def update(params, state, key, x, y, training):
    def loss_of(params):
        values = net.apply(params, x, training, rngs={"dropout": key})
        return jnp.mean((values - y) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    changes, state = optimizer.update(grads, state)
    return optax.apply_updates(params, changes), state, loss


static = () if os.environ.get("FAULTY") else ("training",)
step = functools.partial(jax.jit, static_argnames=static)(update)
params = net.init(jax.random.key(0), jnp.ones((1, 8)), False)
state = optimizer.init(params)
for number in range(5):
    key = jax.random.key(number)
    x = jax.random.normal(key, (64, 8))
    params, state, loss = step(params, state, key, x, x[:, :1], training=True)
