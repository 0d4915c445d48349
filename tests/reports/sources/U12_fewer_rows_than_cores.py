import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax.jax_utils import replicate
from flax.training.common_utils import shard

count = 4 if os.environ.get("FAULTY") else 8
net = nn.Dense(4)
rows = np.random.RandomState(0).rand(count, 77).astype(np.float32)
params = net.init(jax.random.key(0), rows)


@functools.partial(jax.pmap, axis_name="cores")
def step(params, batch):
    grads = jax.grad(lambda p: jnp.mean(net.apply(p, batch) ** 2))(params)
    grads = jax.lax.pmean(grads, "cores")
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


params = replicate(params)
batch = shard(rows)
for _ in range(10):
    params = step(params, batch)
