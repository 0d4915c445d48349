"""The flowers model in Keras 3 on JAX as a pure function of its state, to be timed and compiled.

Keras takes one backend a process: KERAS_BACKEND=jax has to be set before it is imported.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def train_step(model: Any, optimizer: Any, loss: Any) -> tuple[Callable, tuple]:
    """One step as a pure function of the state, as jax.jit wants it.

    Returns:
        `step(state, images, targets) -> (loss, state)` and the first state, a tuple of lists of arrays:
        trained weights, other weights, the optimizer's slots. images: uint8 [B, S, S, 3]; targets: float32
        [B, classes], one-hot. Where the batch is split over devices, XLA sums the gradients over them: the
        step of the whole batch, batch statistics included.
    """
    import jax

    optimizer.build(model.trainable_variables)

    def loss_of(trained, others, images, targets):
        logits, others, penalties = model.stateless_call(
            trained, others, images, training=True, return_losses=True
        )
        return loss(targets, logits) + sum(penalties), others

    def step(state, images, targets):
        trained, others, slots = state
        (value, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            trained, others, images, targets
        )
        trained, slots = optimizer.stateless_apply(slots, gradients, trained)
        return value, (trained, others, slots)

    variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    return step, tuple([variable.value for variable in group] for group in variables)


def data_parallel(step: Callable, devices: list[Any]) -> Any:
    """`step` jitted for those devices: the state on each of them, the batch split over them."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(devices), ("batch",))
    everywhere, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("batch",)))
    return jax.jit(
        step, in_shardings=(everywhere, split, split), out_shardings=(everywhere, everywhere)
    )
