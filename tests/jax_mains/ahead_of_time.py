"""A step that is lowered and compiled before the loop, with a static argument; the loop calls the result."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, static_argnames="kind", static_argnums=3, donate_argnums=0)
def improve(params, x, y, kind):
    def loss_fn(params):
        hidden = getattr(jnp, kind)(x @ params["in"])
        return jnp.mean((hidden @ params["out"] - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


key = jax.random.key(2)
params = {"in": jax.random.normal(key, (8, 32)) / 4, "out": jnp.zeros((32, 1))}
x = jax.random.normal(key, (96, 8))
lowered = improve.lower(params, x, x[:, :1], "tanh")
compiled = lowered.compile()
print(compiled.cost_analysis() is not None, len(lowered.as_text()) > 100)
for number in range(20):
    x = jax.random.normal(jax.random.fold_in(key, number), (96, 8))
    params, loss = compiled(params, x, x[:, :1])
    print(number, loss)
