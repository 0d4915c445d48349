"""Equinox with eqx.filter_shard in the step alone: its arguments come from NumPy, without a sharding."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((jax.device_count(),), ("examples",), axis_types=(AxisType.Auto,))
optimizer = optax.sgd(0.1)


@eqx.filter_jit
def advance(net, state, x, y):
    net, state = eqx.filter_shard((net, state), NamedSharding(mesh, PartitionSpec()))
    x, y = eqx.filter_shard((x, y), NamedSharding(mesh, PartitionSpec("examples")))

    @eqx.filter_value_and_grad
    def distance(net):
        return jnp.mean((jax.vmap(net)(x) - y) ** 2)

    loss, slopes = distance(net)
    updates, state = optimizer.update(slopes, state)
    return eqx.apply_updates(net, updates), state, loss, net.use_bias


def main():
    net = eqx.nn.Linear(6, 3, key=jax.random.key(1))
    state = optimizer.init(eqx.filter(net, eqx.is_array))
    numbers = np.random.default_rng(0)
    for step in range(20):
        x = numbers.normal(size=(96, 6)).astype(np.float32)
        net, state, loss, _ = advance(net, state, x, np.cumsum(x, 1)[:, ::2])
        print(step, loss)


if __name__ == "__main__":
    main()
