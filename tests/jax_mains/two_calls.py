"""Gradients and update are two jitted functions, as in programs that gather gradients themselves."""

import jax
import jax.numpy as jnp
import optax

optimizer = optax.adagrad(0.1)


def loss_fn(params, x, y):
    return jnp.mean(jnp.abs(x @ params - y))


grad_fn = jax.jit(jax.value_and_grad(loss_fn))


@jax.jit
def apply(params, opt_state, grads):
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state


params = jnp.ones((8, 1))
opt_state = optimizer.init(params)
for number in range(10):
    x = jax.random.normal(jax.random.key(number), (64, 8))
    loss, grads = grad_fn(params, x, x[:, :1])
    params, opt_state = apply(params, opt_state, grads)
    print(number, loss)
