"""bfloat16 activations, gradients gathered over micro-batches, a schedule, an average of the weights."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax


class State(NamedTuple):
    params: dict
    ema: dict
    opt: optax.OptState
    key: jax.Array


schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)
tx = optax.adamw(schedule)


def loss_fn(params, x, y, key):
    h = jax.nn.silu(x.astype(jnp.bfloat16) @ params["up"].astype(jnp.bfloat16))
    h = jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0)
    return jnp.mean(((h @ params["down"].astype(jnp.bfloat16)).astype(jnp.float32) - y) ** 2)


@functools.partial(jax.jit, static_argnames="micro", donate_argnames="state")
def train_step(state, batch, *, micro):
    key, use = jax.random.split(state.key)
    parts = jax.tree.map(lambda a: a.reshape(micro, -1, *a.shape[1:]), batch)

    def one(total, part):
        loss, grads = jax.value_and_grad(loss_fn)(state.params, part["x"], part["y"], use)
        return jax.tree.map(jnp.add, total, grads), loss

    zeros = jax.tree.map(jnp.zeros_like, state.params)
    grads, losses = jax.lax.scan(one, zeros, parts)
    grads = jax.tree.map(lambda g: g / micro, grads)
    updates, opt = tx.update(grads, state.opt, state.params)
    params = optax.apply_updates(state.params, updates)
    ema = optax.incremental_update(params, state.ema, 0.01)
    return State(params, ema, opt, key), {"loss": losses.mean(), "norm": optax.global_norm(grads)}


def main():
    rng = np.random.default_rng(0)
    params = {
        "up": jnp.asarray(rng.normal(size=(32, 128)) / 6, jnp.float32),
        "down": jnp.asarray(rng.normal(size=(128, 4)) / 12, jnp.float32),
    }
    state = State(params, jax.tree.map(jnp.copy, params), tx.init(params), jax.random.key(0))
    for number in range(12):
        x = rng.normal(size=(256, 32)).astype("float32")
        state, metrics = train_step(state, {"x": x, "y": x[:, :4]}, micro=4)
        print(number, {name: float(value) for name, value in metrics.items()})


if __name__ == "__main__":
    main()
