"""The years of pmap: replicate, shard, pmean, unreplicate; statistics averaged in the step."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import jax_utils
from flax.training import common_utils, train_state


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(10)(nn.gelu(nn.Dense(128)(x)))


@functools.partial(jax.pmap, axis_name="batch", donate_argnums=(0,))
def p_train_step(state, batch, dropout_rng):
    dropout_rng, new_rng = jax.random.split(dropout_rng)

    def loss_fn(params):
        kept = jax.random.bernoulli(dropout_rng, 0.9, batch["x"].shape)
        logits = state.apply_fn({"params": params}, jnp.where(kept, batch["x"], 0.0))
        onehot = common_utils.onehot(batch["y"], 10)
        return optax.softmax_cross_entropy(logits, onehot).mean()

    loss, grad = jax.value_and_grad(loss_fn)(state.params)
    grad = jax.lax.pmean(grad, "batch")
    metrics = jax.lax.pmean({"loss": loss}, axis_name="batch")
    return state.apply_gradients(grads=grad), metrics, new_rng


def main():
    rng = jax.random.PRNGKey(0)
    model = Net()
    params = model.init(rng, jnp.ones((1, 32)))["params"]
    schedule = optax.linear_schedule(0.0, 1e-2, 10)
    tx = optax.sgd(schedule, momentum=0.9)
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)
    state = jax_utils.replicate(state)
    dropout_rngs = jax.random.split(rng, jax.local_device_count())
    per_device, numbers = 16, np.random.default_rng(0)
    size = per_device * jax.device_count()
    for step in range(20):
        batch = {
            "x": numbers.normal(size=(size, 32)).astype("float32"),
            "y": numbers.integers(0, 10, size),
        }
        state, metrics, dropout_rngs = p_train_step(state, common_utils.shard(batch), dropout_rngs)
        print(step, jax_utils.unreplicate(metrics)["loss"])


if __name__ == "__main__":
    main()
