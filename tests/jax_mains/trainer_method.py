"""A class whose step is a jitted method with the object as a static argument."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np


class Regression:
    def __init__(self, width, rate):
        self.width, self.rate = width, rate

    def init(self):
        return {"w": jnp.zeros((self.width, 1)), "count": jnp.zeros((), jnp.int32)}

    @functools.partial(jax.jit, static_argnums=(0,))
    def loss(self, params, x, y):
        return jnp.mean((x @ params["w"] - y) ** 2)

    @functools.partial(jax.jit, static_argnums=(0,))
    def step(self, params, x, y):
        grads = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(params["w"])
        return {"w": params["w"] - self.rate * grads, "count": params["count"] + 1}


def run():
    model, rng = Regression(8, 0.1), np.random.default_rng(0)
    params = model.init()
    started = time.time()
    while params["count"] < 50 and time.time() - started < 60:
        x = rng.normal(size=(32, 8)).astype(np.float32)
        y = x @ np.arange(8, dtype=np.float32)[:, None]
        params = model.step(params, x, y)
        print(model.loss(params, x, y))


if __name__ == "__main__":
    run()
