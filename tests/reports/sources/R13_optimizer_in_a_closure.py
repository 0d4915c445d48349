import os

import jax
import jax.numpy as jnp
import optax
from flax import nnx

FAULTY = bool(os.environ.get("FAULTY"))


class Learner:
    def __init__(self):
        self.model = nnx.Linear(8, 1, rngs=nnx.Rngs(0))
        self.optimizer = nnx.Optimizer(self.model, optax.adamw(1e-3), wrt=nnx.Param)

        @jax.jit
        def closed(x, y):
            grads = nnx.grad(lambda model: jnp.mean((model(x) - y) ** 2))(self.model)
            self.optimizer.update(self.model, grads)

        @nnx.jit
        def handed(model, optimizer, x, y):
            grads = nnx.grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
            optimizer.update(model, grads)

        self.closed, self.handed = closed, handed

    def learn(self, x, y):
        if FAULTY:
            self.closed(x, y)
        else:
            self.handed(self.model, self.optimizer, x, y)


learner = Learner()
for number in range(5):
    rows = jax.random.normal(jax.random.key(number), (64, 8))
    learner.learn(rows, rows.sum(1, keepdims=True))
