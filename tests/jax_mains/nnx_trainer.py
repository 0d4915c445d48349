"""Flax NNX in a Trainer class: the model and the optimizer are changed in place by nnx.jit."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(16, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.second = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.second(self.dropout(nnx.relu(self.first(x))))


@nnx.jit
def fit_batch(model, optimizer, x, y):
    def loss_fn(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


class Trainer:
    def __init__(self):
        self.model = Net(nnx.Rngs(0))
        self.optimizer = nnx.Optimizer(self.model, optax.adamw(1e-3), wrt=nnx.Param)

    def train(self, steps):
        for step in range(steps):
            x = jax.random.normal(jax.random.key(step), (64, 16))
            loss = fit_batch(self.model, self.optimizer, x, x.sum(1, keepdims=True))
            print(step, loss)


if __name__ == "__main__":
    Trainer().train(30)
