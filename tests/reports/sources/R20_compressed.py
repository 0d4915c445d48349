import os

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, batch):
    def loss_of(weights):
        losses = jnp.square(batch @ weights)
        size = None if os.environ.get("FAULTY") else losses.shape[0]
        kept = jnp.compress(losses > 0.1, losses, size=size, fill_value=0)  # <- TPU343
        return jnp.sum(kept) / batch.shape[0]

    loss, grads = jax.value_and_grad(loss_of)(weights)
    return weights - 0.1 * grads, loss


weights = jnp.ones(8)
for number in range(3):
    weights, loss = step(weights, jax.random.normal(jax.random.key(number), (64, 8)))
