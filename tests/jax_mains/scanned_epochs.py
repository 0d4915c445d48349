"""A whole epoch in one jitted call: lax.scan over batches that lie on the device."""

import jax
import jax.numpy as jnp
import optax

tx = optax.adam(1e-2)


def loss_fn(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2)


@jax.jit
def train_epoch(carry, xs, ys):
    def body(carry, batch):
        params, opt_state = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        updates, opt_state = tx.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), loss

    carry, losses = jax.lax.scan(body, carry, (xs, ys))
    return carry, losses.mean()


key = jax.random.key(1)
xs = jax.random.normal(key, (20, 64, 8))
ys = xs.sum(-1, keepdims=True)
params = {"a": jax.random.normal(key, (8, 32)) / 3, "b": jnp.zeros((32, 1))}
carry = params, tx.init(params)
for epoch in range(5):
    carry, loss = train_epoch(carry, xs, ys)
    print(epoch, loss)
