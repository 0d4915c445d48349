"""A beginner's loop: jax.grad is called step by step, and nothing is jitted."""

import jax
import jax.numpy as jnp

x = jnp.linspace(-1, 1, 128)[:, None]
y = 3 * x + 1


def loss(params):
    return jnp.mean((x * params["slope"] + params["start"] - y) ** 2)


params = {"slope": jnp.zeros((1,)), "start": jnp.zeros((1,))}
for step in range(100):
    value, grads = jax.value_and_grad(loss)(params)
    params = {name: params[name] - 0.1 * grads[name] for name in params}
    print(step, value)
