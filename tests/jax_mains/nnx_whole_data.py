"""NNX on all data in each step, with noise for each row; frozen weights are as wide as the data are long."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


@nnx.jit
def fit(model, optimizer, rows, noise, scales, frozen):
    def loss_fn(model):
        seen = jnp.tanh((rows + scales[3] * noise) @ frozen["up"]) @ frozen["down"]
        return jnp.mean((model(seen) - noise) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


def main():
    model = nnx.Sequential(
        nnx.Linear(6, 32, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(32, 6, rngs=nnx.Rngs(1))
    )
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    random = np.random.default_rng(0)
    rows = jnp.asarray(random.normal(size=(96, 6)), jnp.float32)
    scales = jnp.linspace(0.1, 1, 40)
    frozen = {
        "up": jnp.asarray(random.normal(size=(6, 96)), jnp.float32),
        "down": jnp.asarray(random.normal(size=(96, 6)), jnp.float32),
    }
    for step in range(10):
        noise = jnp.asarray(random.normal(size=rows.shape), jnp.float32)
        print(step, fit(model, optimizer, rows, noise, scales, frozen))


if __name__ == "__main__":
    main()
