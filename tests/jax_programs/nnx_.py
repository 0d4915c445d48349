"""Flax NNX: nnx.jit with a model and an optimizer that change, and jax.jit over a split state."""

import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from jax_programs import Step, program


class Net(nnx.Module):
    def __init__(self, width, classes, rngs):
        self.first = nnx.Linear(784, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.second = nnx.Linear(width, classes, rngs=rngs)

    def __call__(self, x):
        return self.second(self.dropout(nnx.relu(self.norm(self.first(x)))))


def loss_fn(model, batch):
    logits = model(batch["image"])
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
    return loss, logits


def digits(batch=128):
    return {"image": jnp.zeros((batch, 784)), "label": jnp.zeros((batch,), jnp.int32)}


@program("TPU241", "TPU240")
def nnx_jit(fault):
    """The step of Flax's NNX tutorial: model, optimizer and metrics are changed in place."""
    model = Net(256, 10, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3, 0.9), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))

    @nnx.jit
    def train_step(model, optimizer, metrics, batch):
        (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, batch)
        if fault == "TPU241":
            jax.debug.print("{}", loss)  # <- TPU241
        if fault == "TPU240":
            with jax.enable_x64(True):
                loss = jnp.asarray(loss, jnp.float64)  # <- TPU240
            loss = loss.astype(jnp.float32)
        metrics.update(loss=loss, logits=logits, labels=batch["label"])
        optimizer.update(model, grads)
        return loss

    return Step(train_step, (model, optimizer, metrics, digits()), topology="v5e:1x1")


@program("TPU244")
def split_state(fault):
    """nnx.split outside, nnx.merge inside of jax.jit."""
    model = Net(256, 10, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    graphdef, state = nnx.split((model, optimizer))
    table = jnp.zeros((2**12, 784)) if fault == "TPU244" else None

    @functools.partial(jax.jit, donate_argnums=1, static_argnums=0)  # <- TPU244
    def train_step(graphdef, state, batch):
        model, optimizer = nnx.merge(graphdef, state)
        model.train()
        if fault == "TPU244":
            batch = batch | {"image": batch["image"] + table[batch["label"]]}
        (loss, _), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, batch)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    return Step(train_step, (graphdef, state, digits()), topology="v5e:1x1")
