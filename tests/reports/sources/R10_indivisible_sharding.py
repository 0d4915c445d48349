import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = Mesh(np.array(jax.devices()), ("data",))


def train(weights, batch):  # <- TPU343
    return weights - 0.1 * jax.grad(lambda w: jnp.mean(jnp.square(batch @ w)))(weights)


step = jax.jit(train, in_shardings=(NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))))


def port():
    rows = 100 if os.environ.get("FAULTY") else 104
    return step, (np.eye(64, dtype=np.float32), np.ones((rows, 64), np.float32))
