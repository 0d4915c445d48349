"""Where the code of the pages of JAX's rules belongs: a frame makes a step around a block."""

import contextlib
import functools
import math
from dataclasses import replace

import numpy as np

from rules import Port
from rules.snippets import Made, Snippet
from rules.wrong_jax import (
    MESH,
    Mesh,
    NamedSharding,
    PartitionSpec,
    averaged,
    batch,
    descend,
    jax,
    jnp,
    loss_of,
    on_each_core,
    on_mesh,
    params,
    shape,
    small_arrays,
)

_NAMES = {
    "jax": lambda: jax,
    "jnp": lambda: jnp,
    "np": lambda: np,
    "mesh": lambda: MESH,
    "Mesh": lambda: jax.sharding.Mesh,
    "NamedSharding": lambda: NamedSharding,
    "P": lambda: PartitionSpec,
    "update": lambda: descend,
}


def _in_step(**given):
    """The block stands in a step, whose results are what the block makes of the names in `given`."""

    def frame(snippet: Snippet) -> Port:
        def step(params, batch):
            loss, gradients = jax.value_and_grad(loss_of)(params, *batch)
            held = {
                "params": params,
                "loss": loss,
                "grads": gradients,
                "rate": 0.1,
                "numpy_weights": np.ones([8]),
            }
            names = _NAMES | {name: functools.partial(held.get, name) for name in held}
            with contextlib.ExitStack() as stack:
                stack.callback(jax.config.update, "jax_enable_x64", False)
                made = snippet.run(names)
                new = made.get("params", params)
                extra = [made.get(name) for name in given["of"] if made.get(name) is not None]
                return new, loss + sum(jnp.sum(each).astype(jnp.float32) for each in extra)

        state = params() if not given.get("narrow") else jax.tree.map(_narrow, params())
        return Port(jax.jit(step), (state, batch()))

    return frame


def _narrow(array):
    return jax.ShapeDtypeStruct(array.shape, jnp.bfloat16, sharding=array.sharding)


def _made_step(arguments, **names):
    """The block makes `step`, and perhaps calls it."""

    def frame(snippet: Snippet) -> Port:
        made: Made = snippet.run(_NAMES | names)
        return Port(made.get("step") or jax.jit(descend), arguments(made))

    return frame


def _calls(snippet: Snippet) -> Port:
    """The block calls `step` with one batch after another."""
    seen = []

    def note(state, *batch):
        seen.append((state, *batch))
        return state, 0.0

    batches = [jnp.zeros((size, 8)) for size in (64, 64, 17)]

    def pad_to(batch, size):
        return jnp.pad(batch, ((0, size - len(batch)), (0, 0))), jnp.ones(size)

    snippet.run(
        _NAMES
        | {
            "batches": lambda: batches,
            "step": lambda: note,
            "state": lambda: jnp.zeros(()),
            "pad_to": lambda: pad_to,
        }
    )

    def step(state, batch, weights=None):
        weights = jnp.ones(len(batch)) if weights is None else weights
        return state + jnp.sum(batch * weights[:, None]), jnp.zeros(())

    return Port(jax.jit(step), tuple(map(iter, zip(*seen, strict=True))))


def _example(made: Made) -> tuple:
    return params(), batch()


def _on_batch(made: Made) -> tuple:
    """The example with the batch as the block placed it."""
    placed = made.get("batch")
    if placed is None:
        return _bare((params(), batch()))
    return _bare(params()), placed


def _bare(arrays):
    return jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), arrays)


def _gradients(snippet: Snippet) -> Port:
    """The block makes the gradients of a core, of `loss`, `params` and `batch`."""

    def step(params, batch):
        names = {
            "loss": lambda: lambda params, batch: loss_of(params, *batch),
            "params": lambda: params,
            "batch": lambda: batch,
        }
        gradients = snippet.run(_NAMES | names).get("grads")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    return on_each_core(step)


class _TrainState(dict):
    """What the pages call `state`: parameters, and statistics of the batches."""

    def apply_gradients(self, grads, batch_stats):
        new = jax.tree.map(lambda p, g: p - 0.1 * g, self["params"], grads)
        return {"params": new, "batch_stats": batch_stats}


def _with_statistics(snippet: Snippet) -> Port:
    """The block makes the new `state` of a core, of `grads` and `updates`."""

    def step(state, batch):
        held = {
            "state": _TrainState(state),
            "grads": jax.grad(loss_of)(state["params"], *batch),
            "updates": {"batch_stats": jnp.mean(batch[0].astype(jnp.float32), 0)},
        }
        names = _NAMES | {name: functools.partial(held.get, name) for name in held}
        return snippet.run(names).get("state")

    width = batch()[0].shape[-1]
    return on_each_core(step, {"params": params(), "batch_stats": shape(width)})


def _with_a_key(snippet: Snippet) -> Port:
    """The block draws a `mask` for `features` with `key`, on each core."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole, rows = PartitionSpec(), PartitionSpec("data")

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(whole, rows, rows, whole),
        out_specs=whole,
        check_vma=False,
    )
    def step(params, features, labels, key):
        names = _NAMES | {"key": lambda: key, "features": lambda: features}
        features = features * snippet.run(names).get("mask")
        gradients = jax.lax.pmean(jax.grad(loss_of)(params, features, labels), "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    return Port(jax.jit(step), (*_bare((params(), *batch(64))), jax.eval_shape(jax.random.key, 0)))


def _with_averages(snippet: Snippet) -> Port:
    """The block makes `averages` of `params`, and the `step` of `train` that takes both."""
    state, examples = small_arrays()
    made = snippet.run(_NAMES | {"params": lambda: state, "train": lambda: averaged})
    return Port(made.get("step"), (state, made.get("averages"), examples))


def _ids(made: Made) -> tuple:
    ids = shape(64, dtype=jnp.int32)
    return (ids,) if made.get("table") is not None else (shape(4096, 768), ids)


def _of_a_batch(snippet: Snippet) -> Port:
    """The block makes the shape of a `batch` that is split over the mesh as `rows` says."""
    features = snippet.run(_NAMES | {"rows": lambda: on_mesh("data")}).get("batch")
    wide = shape(8192, 8192)
    labels = jax.ShapeDtypeStruct(features.shape, jnp.float32, sharding=features.sharding)
    return Port(
        jax.jit(descend, donate_argnums=0), ({"first": wide, "second": wide}, (features, labels))
    )


def _table(snippet: Snippet) -> Port:
    """The block lays the result `table` of a step over the mesh."""

    def step(words):
        table = jnp.ones((50_257, 128)) * words.sum()
        names = {"table": lambda: table, "math": lambda: math}
        whole = replace(
            snippet, text=snippet.text.replace("mesh.size", "8")
        )  # that of the topology
        return whole.run(_NAMES | names).get("table")

    return Port(jax.jit(step), (shape(4096, spec=("data",)),))


def _resharded(snippet: Snippet) -> Port:
    """The block lays `x` over a mesh of two axes in one way after the other."""
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("x", "y"))

    def step(x):
        names = {"x": lambda: x * 2, "mesh": lambda: mesh}
        return jnp.tanh(snippet.run(_NAMES | names).get("x"))

    whole = jax.ShapeDtypeStruct(
        (512, 512, 512), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("y", None, "x"))
    )
    return Port(jax.jit(step), (whole,), mesh_axes={"x": 4, "y": 2})


FRAMES = {
    "TPU240": _in_step(of=("scale",)),
    "TPU241": _made_step(
        _example,
        batches=lambda: (),
        update=lambda: lambda state, given: descend(state, given),
    ),
    "TPU242": _in_step(of=(), narrow=True),
    "TPU243": _calls,
    "TPU244": _made_step(_ids),
    "TPU245": _gradients,
    "TPU246": _with_statistics,
    "TPU247": _with_averages,
    "TPU258": _with_a_key,
    "TPU341": _made_step(_example),
    "TPU342": _made_step(
        _on_batch,
        batch=lambda: tuple(jnp.zeros(each.shape, each.dtype) for each in batch(64)),
    ),
    "TPU343": _in_step(of=("rate",)),
    "TPU344": _of_a_batch,
    "TPU345": _table,
    "TPU346": _resharded,
}
