"""jit with NamedSharding: the batch over the devices, the parameters on all, the state a dataclass."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class TrainState:
    step: jax.Array
    params: dict
    opt_state: optax.OptState


optimizer = optax.lion(1e-4)


def loss_fn(params, batch):
    hidden = jax.nn.relu(batch["x"] @ params["w1"])
    return jnp.mean(jnp.square(hidden @ params["w2"] - batch["y"]))


def train_step(state, batch):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, batch)
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(state.step + 1, params, opt_state), loss


def main():
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    everywhere, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    step_fn = jax.jit(
        train_step,
        in_shardings=(everywhere, rows),
        out_shardings=(everywhere, everywhere),
        donate_argnums=0,
    )
    rng = np.random.default_rng(0)
    params = {
        "w1": rng.normal(size=(64, 256)).astype("float32") / 8,
        "w2": rng.normal(size=(256, 1)).astype("float32") / 16,
    }
    state = TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))
    state = jax.device_put(state, everywhere)
    for _ in range(10):
        x = rng.normal(size=(512, 64)).astype("float32")
        batch = jax.device_put({"x": x, "y": x.sum(1, keepdims=True)}, rows)
        state, loss = step_fn(state, batch)
        print(int(state.step), float(loss))


if __name__ == "__main__":
    main()
