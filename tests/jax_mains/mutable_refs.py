"""Parameters of type jax.Ref, which the step changes in place, on a mesh that splits the batch."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))


@jax.jit
def improve(params, x, y):
    def loss_fn(values):
        return jnp.mean((jnp.tanh(x @ values["in"]) @ values["out"] - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(jax.tree.map(lambda ref: ref[...], params))
    for name, grad in grads.items():
        params[name][...] -= 0.1 * grad
    return loss


def main():
    rng = np.random.default_rng(0)
    start = {"in": rng.normal(size=(16, 64)) / 4, "out": rng.normal(size=(64, 1)) / 8}
    params = {
        name: jax.new_ref(jax.device_put(jnp.float32(value), NamedSharding(mesh, P())))
        for name, value in start.items()
    }
    for step in range(10):
        x = rng.normal(size=(8 * mesh.size, 16)).astype("float32")
        x, y = jax.device_put((x, x.sum(1, keepdims=True)), NamedSharding(mesh, P("data")))
        print(step, improve(params, x, y))


if __name__ == "__main__":
    main()
