"""Two networks, each with a step of its own: which one is meant must be said."""

import jax
import jax.numpy as jnp
import optax

tx = optax.adam(1e-3)


def generate(g, z):
    return jnp.tanh(z @ g)


def score(d, x):
    return (x @ d).mean()


@jax.jit
def d_step(d, opt, g, real, z):
    grads = jax.grad(lambda d: score(d, generate(g, z)) - score(d, real))(d)
    updates, opt = tx.update(grads, opt)
    return optax.apply_updates(d, updates), opt


@jax.jit
def g_step(g, opt, d, z):
    grads = jax.grad(lambda g: -score(d, generate(g, z)))(g)
    updates, opt = tx.update(grads, opt)
    return optax.apply_updates(g, updates), opt


d, g = jnp.ones((4, 1)), jnp.ones((2, 4))
d_opt, g_opt = tx.init(d), tx.init(g)
for number in range(10):
    real, z = jax.random.normal(jax.random.key(number), (64, 4)), jnp.ones((64, 2))
    d, d_opt = d_step(d, d_opt, g, real, z)
    g, g_opt = g_step(g, g_opt, d, z)
