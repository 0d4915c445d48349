"""A mesh of explicit axes: the sharding of an array is a part of its type, and jax.jit names none."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

ROWS, COLUMNS, RATE = 64, 12, 0.05


@jax.jit
def descend(weights, rows, targets):
    def squares(weights):
        hidden = jax.nn.tanh(rows @ weights["first"])
        return jnp.mean((hidden @ weights["second"] - targets) ** 2)

    loss, slopes = jax.value_and_grad(squares)(weights)
    return jax.tree.map(lambda old, slope: old - RATE * slope, weights, slopes), loss


def main():
    mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(AxisType.Explicit,))
    everywhere = NamedSharding(mesh, PartitionSpec())
    shared = NamedSharding(mesh, PartitionSpec("rows"))
    first, second = jax.random.split(jax.random.key(0))
    weights = {
        "first": 0.1 * jax.random.normal(first, (COLUMNS, 32)),
        "second": 0.1 * jax.random.normal(second, (32, 1)),
    }
    weights = jax.device_put(weights, everywhere)
    with jax.set_mesh(mesh):
        for step in range(20):
            rows = jax.random.normal(jax.random.key(step), (ROWS, COLUMNS))
            targets = rows.max(1, keepdims=True)
            rows, targets = jax.device_put((rows, targets), shared)
            weights, loss = descend(weights, rows, targets)
            print(step, loss)


if __name__ == "__main__":
    main()
