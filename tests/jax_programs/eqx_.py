"""Equinox: filter_jit with static parts, partition and combine under jax.jit, BatchNorm's State."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from jax_programs import Step, program


def examples(batch=64):
    return jnp.zeros((batch, 1, 28, 28)), jnp.zeros((batch,), jnp.int32)


class Cnn(eqx.Module):
    layers: list
    name: str = eqx.field(static=True, default="cnn")

    def __init__(self, key):
        one, two, three = jax.random.split(key, 3)
        self.layers = [
            eqx.nn.Conv2d(1, 8, kernel_size=4, key=one),
            eqx.nn.MaxPool2d(kernel_size=2),
            jax.nn.relu,
            jnp.ravel,
            eqx.nn.Linear(4608, 128, key=two),
            jax.nn.sigmoid,
            eqx.nn.Dropout(0.1),
            eqx.nn.Linear(128, 10, key=three),
            jax.nn.log_softmax,
        ]

    def __call__(self, x, key):
        for layer in self.layers:
            x = layer(x, key=key) if isinstance(layer, eqx.nn.Dropout) else layer(x)
        return x


@eqx.filter_value_and_grad
def loss_of(model, x, y, key):
    keys = jax.random.split(key, x.shape[0])
    predicted = jax.vmap(model)(x, keys)
    return -jnp.mean(jnp.take_along_axis(predicted, y[:, None], axis=1))


@program("TPU241", "TPU343")
def filter_jit(fault):
    """The step of Equinox's MNIST example."""
    model = eqx.filter_eval_shape(Cnn, jax.random.PRNGKey(0))
    optim = optax.adamw(3e-4)
    opt_state = eqx.filter_eval_shape(lambda m: optim.init(eqx.filter(m, eqx.is_array)), model)

    @eqx.filter_jit
    def make_step(model, opt_state, x, y, key):
        loss, grads = loss_of(model, x, y, key)
        if fault == "TPU343" and loss > 10:  # <- TPU343
            loss = loss / 2
        if fault == "TPU241":
            jax.debug.print("loss {}", loss)  # <- TPU241
        updates, opt_state = optim.update(grads, opt_state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), opt_state, loss

    return Step(
        make_step, (model, opt_state, *examples(), jax.random.PRNGKey(1)), topology="v5e:1x1"
    )


@program("TPU341")
def donated(fault):
    """filter_jit that takes the memory of what it replaces."""
    model = eqx.filter_eval_shape(Cnn, jax.random.PRNGKey(0))
    optim = optax.sgd(optax.exponential_decay(1e-2, 100, 0.9), momentum=0.9)
    opt_state = eqx.filter_eval_shape(
        lambda m: optim.init(eqx.filter(m, eqx.is_inexact_array)), model
    )

    @eqx.filter_jit(donate="all" if fault == "TPU341" else "all-except-first")  # <- TPU341
    def step(data, model, opt_state):
        x, y, key = data
        loss, grads = loss_of(model, x, y, key)
        updates, opt_state = optim.update(grads, opt_state)
        return eqx.apply_updates(model, updates), opt_state, loss

    data = (*examples(), jax.random.key(1))
    return Step(step, (data, model, opt_state), topology="v5e:1x1")


@program("TPU242")
def partitioned(fault):
    """eqx.partition outside, eqx.combine inside of jax.jit; gradients in float32 of bfloat16 weights."""

    def in_bfloat16(key):
        model = eqx.nn.MLP(32, 8, 128, 3, key=key)
        return jax.tree.map(
            lambda a: a.astype(jnp.bfloat16) if eqx.is_inexact_array(a) else a, model
        )

    model = eqx.filter_eval_shape(in_bfloat16, jax.random.key(0))
    is_shape = lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)  # noqa: E731
    params, static = eqx.partition(model, is_shape)

    @jax.jit
    def step(params, batch):
        def loss_fn(params):
            model = eqx.combine(params, static)
            return jnp.mean(jax.vmap(model)(batch).astype(jnp.float32) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        rate = jnp.float32(0.1)
        new = jax.tree.map(lambda p, g: p - rate * g, params, grads)  # <- TPU242
        if fault != "TPU242":
            new = jax.tree.map(lambda p, n: n.astype(p.dtype), params, new)
        return new, loss

    return Step(step, (params, jnp.zeros((64, 32), jnp.bfloat16)), topology="v5e:1x1")


class WithNorm(eqx.Module):
    linear: eqx.nn.Linear
    norm: eqx.nn.BatchNorm

    def __init__(self, key):
        self.linear = eqx.nn.Linear(16, 32, key=key)
        self.norm = eqx.nn.BatchNorm(32, axis_name="batch", mode="batch")

    def __call__(self, x, state):
        return self.norm(self.linear(x), state)


@program()
def stateful(fault):
    """BatchNorm with eqx.nn.State, vmapped with an axis name."""
    model, state = eqx.nn.make_with_state(WithNorm)(jax.random.key(0))
    optim = optax.adam(1e-3)
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    def compute_loss(model, state, xs):
        out, state = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
            xs, state
        )
        return jnp.mean(out**2), state

    @eqx.filter_jit
    def make_step(model, state, opt_state, xs):
        grads, state = eqx.filter_grad(compute_loss, has_aux=True)(model, state, xs)
        updates, opt_state = optim.update(grads, opt_state)
        return eqx.apply_updates(model, updates), state, opt_state

    return Step(make_step, (model, state, opt_state, jnp.zeros((64, 16))), topology="v5e:1x1")
