"""Linear regression by hand, with a key that is split in the loop and a decaying rate."""

import jax
import jax.numpy as jnp


def predict(params, x):
    return x @ params["w"] + params["b"]


@jax.jit
def update(params, key, rate):
    x = jax.random.normal(key, (256, 32))
    y = x.sum(axis=1, keepdims=True)
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


if __name__ == "__main__":
    key = jax.random.PRNGKey(0)
    params = {"w": 0.1 * jax.random.normal(key, (32, 1)), "b": jnp.zeros(1)}
    for step in range(200):
        key, use = jax.random.split(key)
        params, loss = update(params, use, 0.1 * 0.99**step)
        if step % 50 == 0:
            print(step, float(loss))
    assert loss < 1e-3, loss
