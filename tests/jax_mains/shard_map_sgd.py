"""shard_map over all devices: each differentiates its own loss, and pmean joins loss and gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))


@jax.jit
@functools.partial(
    jax.shard_map, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P())
)
def train_step(params, x, y):
    def loss_fn(params):
        hidden = jnp.tanh(x @ params["in"])
        return jax.lax.pmean(jnp.mean((hidden @ params["out"] - y) ** 2), "data")

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


def main():
    rng = np.random.default_rng(1)
    params = {
        "in": jnp.asarray(rng.normal(size=(16, 64)) / 4, jnp.float32),
        "out": jnp.asarray(rng.normal(size=(64, 1)) / 8, jnp.float32),
    }
    rows = NamedSharding(mesh, P("data"))
    for step in range(20):
        x = rng.normal(size=(32 * mesh.size, 16)).astype("float32")
        x, y = jax.device_put((x, x.sum(1, keepdims=True)), rows)
        params, loss = train_step(params, x, y)
        print(step, loss)


if __name__ == "__main__":
    main()
