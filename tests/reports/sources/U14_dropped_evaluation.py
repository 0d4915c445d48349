import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax.jax_utils import pad_shard_unpad, replicate
from flax.training.common_utils import shard

net = nn.Dense(8)
rows = np.random.RandomState(0).rand(300, 16).astype(np.float32)
labels = rows.argmax(1) % 8
params = net.init(jax.random.key(0), rows[:1])


@functools.partial(jax.pmap, axis_name="cores")
def train_step(params, x, y):
    def loss_of(params):
        log_p = jax.nn.log_softmax(net.apply(params, x))
        return -jnp.mean(jnp.take_along_axis(log_p, y[:, None], 1))

    grads = jax.lax.pmean(jax.grad(loss_of)(params), "cores")
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


@jax.pmap
def predict_step(params, x):
    return net.apply(params, x).argmax(-1)


params = replicate(params)
for _ in range(10):
    params = train_step(params, shard(rows[:128]), shard(labels[:128]))

right = total = 0
if os.environ.get("FAULTY"):
    for first in range(0, len(rows) - 127, 128):
        classes = predict_step(params, shard(rows[first : first + 128])).reshape(-1)
        right += (classes == labels[first : first + 128]).sum()
        total += 128
else:
    predict = pad_shard_unpad(predict_step, static_argnums=(0,))
    for first in range(0, len(rows), 128):
        classes = predict(params, rows[first : first + 128], min_device_batch=16)
        right += (classes == labels[first : first + 128]).sum()
        total += len(classes)
print(right / total)
