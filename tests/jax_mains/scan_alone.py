"""Gradient descent with momentum in lax.scan, which compiles its body: nothing here calls jax.jit."""

import jax
import jax.numpy as jnp
from jax import lax


def valley(point, weights):
    return jnp.sum(weights * (point - 1) ** 2)


def roll(carry, weights):
    point, speed = carry
    height, slope = jax.value_and_grad(valley)(point, weights)
    speed = 0.9 * speed - 0.02 * slope
    return (point + speed, speed), height


weights = jnp.exp(jax.random.normal(jax.random.key(0), (500, 16)))
start = jnp.linspace(-2.0, 2.0, 16), jnp.zeros(16)
(end, _), heights = lax.scan(roll, start, weights)
print(heights[0], heights[-1], end)
