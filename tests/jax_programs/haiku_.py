"""Haiku: transform_with_state, a NamedTuple of the training state, jmp's mixed precision."""

import functools
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import numpy as np
import optax

from jax_programs import Step, program


class TrainingState(NamedTuple):
    params: hk.Params
    avg_params: hk.Params
    net_state: hk.State
    opt_state: optax.OptState
    loss_scale: jmp.LossScale


@program("TPU240")
def mixed_precision(fault):
    policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
    hk.mixed_precision.set_policy(hk.nets.MLP, policy)

    def forward(images, is_training):
        x = hk.Flatten()(images)
        x = hk.nets.MLP([128, 64])(x)
        x = hk.BatchNorm(True, True, 0.9)(x, is_training)
        return hk.Linear(10)(x)

    net = hk.without_apply_rng(hk.transform_with_state(forward))
    optimiser = optax.chain(optax.clip(1.0), optax.lamb(1e-3))

    def loss_fn(params, net_state, loss_scale, images, labels):
        logits, net_state = net.apply(params, net_state, images, is_training=True)
        onehot = jax.nn.one_hot(labels, 10)
        loss = -jnp.sum(onehot * jax.nn.log_softmax(logits)) / labels.shape[0]
        return loss_scale.scale(loss), (loss, net_state)

    @functools.partial(jax.jit, donate_argnums=0)
    def update(state, images, labels):
        grads, (loss, net_state) = jax.grad(loss_fn, has_aux=True)(
            state.params, state.net_state, state.loss_scale, images, labels
        )
        grads = state.loss_scale.unscale(grads)
        finite = jmp.all_finite(grads)
        scale = state.loss_scale.adjust(finite)
        updates, opt_state = optimiser.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        params = jmp.select_tree(finite, params, state.params)
        if fault == "TPU240":
            with jax.enable_x64(True):
                loss = loss * np.float64(0.5)  # <- TPU240
        average = optax.incremental_update(params, state.avg_params, step_size=0.001)
        return TrainingState(params, average, net_state, opt_state, scale), loss

    images, labels = jnp.zeros((64, 28, 28)), jnp.zeros((64,), jnp.int32)
    make = functools.partial(net.init, is_training=True)
    params, net_state = jax.eval_shape(make, jax.random.PRNGKey(0), images)
    opt_state = jax.eval_shape(optimiser.init, params)
    state = TrainingState(
        params, params, net_state, opt_state, jmp.DynamicLossScale(jnp.float32(2**15))
    )
    return Step(update, (state, images, labels), topology="v5e:1x1")
