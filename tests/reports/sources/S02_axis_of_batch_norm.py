import os

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, training):
        axis = "batch" if os.environ.get("FAULTY") else None
        x = nn.Dense(32)(x)
        x = nn.BatchNorm(use_running_average=not training, axis_name=axis)(x)
        return nn.Dense(1)(nn.relu(x))


net, optimizer = Net(), optax.sgd(0.1)


@jax.jit
def step(variables, state, x, y):
    def loss_of(params):
        everything = {"params": params, "batch_stats": variables["batch_stats"]}
        values, news = net.apply(everything, x, True, mutable=["batch_stats"])
        return jnp.mean((values - y) ** 2), news

    (loss, news), grads = jax.value_and_grad(loss_of, has_aux=True)(variables["params"])
    changes, state = optimizer.update(grads, state)
    return {"params": optax.apply_updates(variables["params"], changes), **news}, state, loss


variables = net.init(jax.random.key(0), jnp.ones((1, 8)), False)
state = optimizer.init(variables["params"])
for number in range(5):
    x = jax.random.normal(jax.random.key(number), (64, 8))
    variables, state, loss = step(variables, state, x, x[:, :1])
