"""Equinox: a filtered jit over a model with activations in it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


@eqx.filter_value_and_grad
def compute_loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def main(steps=30, seed=5):
    data_key, model_key = jax.random.split(jax.random.PRNGKey(seed))
    model = eqx.nn.MLP(8, 1, 64, 2, key=model_key)
    optim = optax.adamw(3e-3)
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def make_step(model, opt_state, x, y):
        loss, grads = compute_loss(model, x, y)
        updates, opt_state = optim.update(grads, opt_state, eqx.filter(model, eqx.is_inexact_array))
        return loss, eqx.apply_updates(model, updates), opt_state

    for step in range(steps):
        data_key, key = jax.random.split(data_key)
        x = jax.random.normal(key, (128, 8))
        loss, model, opt_state = make_step(model, opt_state, x, x.prod(1, keepdims=True))
        print(f"step={step}, loss={loss.item():.4f}")


if __name__ == "__main__":
    main()
