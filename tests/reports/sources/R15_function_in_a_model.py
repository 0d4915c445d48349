import os

import equinox as eqx
import jax
import jax.numpy as jnp

jit = jax.jit if os.environ.get("FAULTY") else eqx.filter_jit
model = eqx.nn.MLP(8, 1, 64, 2, jax.nn.gelu, key=jax.random.key(0))


@jit
def step(model, x, y):
    def loss_of(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    loss, grads = eqx.filter_value_and_grad(loss_of)(model)
    return eqx.apply_updates(model, jax.tree.map(lambda grad: -0.01 * grad, grads)), loss


for number in range(5):
    x = jax.random.normal(jax.random.key(number), (64, 8))
    model, loss = step(model, x, x.sum(1, keepdims=True))
