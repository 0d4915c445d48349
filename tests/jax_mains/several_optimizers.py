"""Three optimizers side by side: one function makes the step of each."""

import jax
import jax.numpy as jnp
import optax

rows = jax.random.normal(jax.random.key(0), (64, 4))


def made_for(optimizer):
    @jax.jit
    def step(weights, state, rows):
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((rows @ w - 1) ** 2))(weights)
        change, state = optimizer.update(slope, state, weights)
        return optax.apply_updates(weights, change), state, loss

    weights = jnp.ones((4, 1))
    return step, weights, optimizer.init(weights)


racing = [made_for(each) for each in (optax.sgd(0.1, momentum=0.9), optax.adam(0.1))]
for number in range(20):
    for place, (step, weights, state) in enumerate(racing):
        weights, state, loss = step(weights, state, rows)
        racing[place] = step, weights, state
        print(number, place, loss)
