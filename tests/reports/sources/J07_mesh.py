import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))


def loss(weights, batch):
    return jax.lax.pmean(jnp.mean(jnp.square(batch @ weights)), "data")


@jax.jit
def step(weights, batch):
    shares = jax.shard_map(loss, mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
    return weights - 0.1 * jax.grad(shares)(weights, batch)  # <- TPU343


def port():
    rows = 1 if os.environ.get("FAULTY") else 256
    return step, (jnp.eye(64), np.ones((rows, 64), np.float32)), {"mesh_axes": {"data": 8}}
