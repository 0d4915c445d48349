"""Mistakes of steps that are written in JAX. Each is one right step, made worse where the flag says so."""

import contextlib
import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rules import Port, wrong

WIDTH, BATCH = 512, 4096
MESH = Mesh(np.array(jax.devices()[:1]), ("data",))


def on_mesh(*spec):
    """A sharding over the one axis of MESH."""
    return NamedSharding(MESH, PartitionSpec(*spec))


def shape(*dims, dtype=jnp.float32, spec=()):
    """An array of which only its shape is there."""
    return jax.ShapeDtypeStruct(dims, dtype, sharding=on_mesh(*spec))


def loss_of(params, features, labels):
    """A network of two layers, in bfloat16."""
    hidden = jax.nn.relu(features @ params["first"].astype(jnp.bfloat16))
    logits = (hidden @ params["second"].astype(jnp.bfloat16)).astype(jnp.float32)
    return jnp.mean((logits - labels) ** 2)


def descend(params, batch):
    """One step of gradient descent."""
    loss, gradients = jax.value_and_grad(loss_of)(params, *batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


def params(first=(), second=()):
    """The parameters' shapes."""
    return {
        "first": shape(WIDTH, WIDTH, spec=first),
        "second": shape(WIDTH, 8 * WIDTH, spec=second),
    }


def batch(examples=BATCH, spec=("data",)):
    """A batch's shapes."""
    features = shape(examples, WIDTH, dtype=jnp.bfloat16, spec=spec)
    return features, shape(examples, 8 * WIDTH, spec=spec)


@wrong("TPU240")
def sixty_four_bits(wrong):
    def step(params, batch):
        params, loss = descend(params, batch)
        dtype = jnp.float64 if wrong else jnp.float32
        with jax.enable_x64(True) if wrong else contextlib.nullcontext():
            exact = loss.astype(dtype)  # <- TPU240
        return params, exact.astype(jnp.float32)

    return Port(jax.jit(step, donate_argnums=0), (params(), batch()))


@wrong("TPU241")
def a_print_in_the_step(wrong):
    @jax.jit
    def step(params, batch):
        params, loss = descend(params, batch)
        if wrong:
            jax.debug.print("loss {}", loss)  # <- TPU241
        return params, loss

    return Port(step, (params(), batch()))


@wrong("TPU242")
def parameters_that_grow_wider(wrong):
    def step(weights, features):
        rate = jnp.float32(0.1)
        gradients = jax.grad(lambda w: jnp.sum(features @ w, dtype=jnp.float32))(weights)
        new = weights - rate * gradients  # <- TPU242
        return (new if wrong else new.astype(weights.dtype)), jnp.sum(gradients)

    weights = shape(WIDTH, 8, dtype=jnp.bfloat16)
    return Port(jax.jit(step), (weights, shape(BATCH, WIDTH, dtype=jnp.bfloat16)))


@wrong("TPU243")
def a_short_last_batch(wrong):
    def step(params, batch):  # <- TPU243
        return descend(params, batch)

    sizes = (BATCH, BATCH, 1000 if wrong else BATCH)
    return Port(jax.jit(step), (params(), iter([batch(size) for size in sizes])))


@wrong("TPU244")
def a_table_from_outside(wrong):
    table = np.zeros((2**13, 2**9), np.float32)

    def step(ids, given=None):  # <- TPU244
        return jnp.sum((jnp.asarray(table) if wrong else given)[ids])

    ids = shape(BATCH, dtype=jnp.int32)
    return Port(jax.jit(step), (ids,) if wrong else (ids, shape(*table.shape)))


def on_all(array):
    """The shape of an array for each device of this process."""
    return jax.ShapeDtypeStruct((jax.device_count(), *array.shape), array.dtype)


def on_each_core(step, state=None):
    """The step by pmap, with all devices of this process and some examples for each."""
    mapped = jax.pmap(step, axis_name="data", donate_argnums=0)
    return Port(mapped, jax.tree.map(on_all, (state or params(), batch(64))))


@wrong("TPU244")
def a_table_in_a_pmapped_step(wrong):
    table = np.zeros((2**12, WIDTH) if wrong else (2, WIDTH), np.float32)

    def step(params, batch):  # <- TPU244
        gradients = jax.grad(loss_of)(params, *batch)
        gradients["first"] += jnp.sum(jnp.asarray(table), 0)
        return jax.lax.pmean(jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), "data")

    return on_each_core(step)


@wrong("TPU245")
def gradients_without_a_mean(wrong):
    def step(params, batch):  # <- TPU245
        gradients = jax.grad(loss_of)(params, *batch)
        if not wrong:
            gradients = jax.lax.pmean(gradients, "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    return on_each_core(step)


@wrong("TPU245")
def one_matrix_of_two_is_joined(wrong):
    def step(params, batch):
        gradients = jax.grad(loss_of)(params, *batch)
        joined = jax.lax.pmean(gradients, "data")
        first = (gradients if wrong else joined)["first"]
        new = params["first"] - 0.1 * first  # <- TPU245
        return {"first": new, "second": params["second"] - 0.1 * joined["second"]}

    return on_each_core(step)


@wrong("TPU245")
def a_shard_map_that_checks_nothing(wrong):
    mesh = Mesh(np.array(jax.devices()), ("data",))
    specs = {"in_specs": (PartitionSpec(), PartitionSpec("data")), "out_specs": PartitionSpec()}

    @functools.partial(jax.shard_map, mesh=mesh, check_vma=False, **specs)  # <- TPU245
    def step(params, batch):
        gradients = jax.grad(loss_of)(params, *batch)
        if not wrong:
            gradients = jax.lax.pmean(gradients, "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (params(), batch(64)))
    return Port(jax.jit(step), shapes)


@wrong("TPU246")
def running_means_of_each_core(wrong):
    def step(state, batch):
        features, labels = batch
        mean = jnp.mean(features.astype(jnp.float32), 0)
        if not wrong:
            mean = jax.lax.pmean(mean, "data")
        gradients = jax.lax.pmean(jax.grad(loss_of)(state["params"], features, labels), "data")
        new = jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], gradients)
        return {"params": new, "mean": 0.9 * state["mean"] + 0.1 * mean}  # <- TPU246

    return on_each_core(step, {"params": params(), "mean": shape(WIDTH)})


@wrong("TPU243")
def a_static_rate_of_a_pmapped_step(wrong):
    static = 2 if wrong else ()

    @functools.partial(jax.pmap, axis_name="data", static_broadcasted_argnums=static)  # <- TPU243
    def step(params, batch, rate):
        gradients = jax.lax.pmean(jax.grad(loss_of)(params, *batch), "data")
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients)

    if not wrong:
        step = functools.partial(_with_an_array, step)
    state, examples = jax.tree.map(on_all, (params(), batch(64)))
    return Port(step, (state, examples, iter([0.1, 0.2])))


def _with_an_array(step, params, batch, rate):
    return step(params, batch, jnp.full(jax.device_count(), rate))


@wrong("TPU341")
def the_batch_is_donated(wrong):
    return Port(jax.jit(descend, donate_argnums=(0, 1) if wrong else 0), (params(), batch()))


@wrong("TPU342")
def no_mesh(wrong):
    if not wrong:
        return Port(jax.jit(descend, donate_argnums=0), (params(), batch()))
    bare = functools.partial(jax.tree.map, lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype))
    return Port(jax.jit(descend), bare((params(), batch())))


@wrong("TPU343")
def python_decides_by_a_value(wrong):
    def step(params, batch):
        params, loss = descend(params, batch)
        if wrong and loss > 10:
            loss = loss * 0
        return params, loss

    return Port(jax.jit(step), (params(), batch()))


def _of_width(width, examples):
    """A step of data parallelism whose layers have that width."""
    state = {"first": shape(width, width), "second": shape(width, width)}
    features = shape(examples, width, dtype=jnp.bfloat16, spec=("data",))
    return state, (features, shape(examples, width, spec=("data",)))


@wrong("TPU344")
def eight_examples_a_core_of_a_large_network(wrong):
    return Port(jax.jit(descend, donate_argnums=0), _of_width(4096, 64 if wrong else 2**15))


def _split(*dims):
    """The shape of an array that is split over its first axis that 8 divides, as many programs do it."""
    even = next((axis for axis, size in enumerate(dims) if size % 8 == 0), None)
    spec = () if even is None else (*[None] * even, "data")
    return shape(*dims, spec=spec)


@wrong("TPU345")
def a_vocabulary_that_stays_whole(wrong):
    def step(params, words, labels):
        def loss(params):
            hidden = params["table"][words].astype(jnp.bfloat16)
            logits = hidden @ params["out"].astype(jnp.bfloat16)
            return jnp.mean((logits.astype(jnp.float32) - labels) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    state = {"table": _split(50_257 if wrong else 50_264, 250), "out": _split(250, 8 * WIDTH)}
    words, labels = shape(BATCH, dtype=jnp.int32, spec=("data",)), batch()[1]
    return Port(jax.jit(step, donate_argnums=0), (state, words, labels))


@wrong("TPU345")
def a_result_that_a_constraint_does_not_split(wrong):
    def step(table, words):
        def loss(table):
            return jnp.mean(table[words] ** 2)

        value, gradients = jax.value_and_grad(loss)(table)
        new = table - 0.1 * gradients
        return jax.lax.with_sharding_constraint(new, on_mesh("data")), value  # <- TPU345

    words = shape(BATCH, dtype=jnp.int32, spec=("data",))
    return Port(jax.jit(step), (shape(50_257 if wrong else 50_264, WIDTH), words))


@wrong("TPU346")
def from_one_sharding_to_a_far_one(wrong):
    """The program of jax issue 21562, larger."""
    two = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("x", "y"))

    def over(*spec):
        return NamedSharding(two, PartitionSpec(*spec))

    near, between, far = over("y", None, "x"), over("y", "x"), over(None, ("x", "y"))

    def step(weights, a, b):
        d = a + b  # <- TPU346
        if not wrong:
            d = jax.lax.with_sharding_constraint(d, between)
        d = jax.lax.with_sharding_constraint(d, far)
        for _ in range(4):
            d = jnp.tanh(d @ weights["up"]) @ weights["down"]
        return jax.tree.map(lambda weight: 0.9 * weight, weights), d

    def of(how, *dims):
        return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=how)

    weights = {"up": of(over(), 512, 4096), "down": of(over(), 4096, 512)}
    examples = of(near, 256, 512, 512)
    return Port(jax.jit(step), (weights, examples, examples), mesh_axes={"x": 4, "y": 2})


@wrong("TPU258")
def dropout_with_one_key_for_all_cores(wrong):
    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole, rows = PartitionSpec(), PartitionSpec("data")
    specs = {"in_specs": (whole, rows, whole), "out_specs": (whole, whole)}

    @functools.partial(jax.shard_map, mesh=mesh, check_vma=False, **specs)
    def step(params, batch, key):
        features, labels = batch
        key, following = jax.random.split(key)
        if not wrong:
            key = jax.random.fold_in(key, jax.lax.axis_index("data"))
        kept = jax.random.bernoulli(key, 0.9, features.shape)  # <- TPU258
        gradients = jax.grad(loss_of)(params, jnp.where(kept, features, 0), labels)
        gradients = jax.lax.pmean(gradients, "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), following

    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (params(), batch(64)))
    return Port(jax.jit(step), (*shapes, jax.eval_shape(jax.random.key, 0)))


@wrong("TPU246")
def a_row_of_statistics_for_each_core(wrong):
    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole, rows = PartitionSpec(), PartitionSpec("data")
    state = {"params": whole, "mean": rows}
    specs = {"in_specs": (state, rows), "out_specs": state}

    @functools.partial(jax.shard_map, mesh=mesh, check_vma=False, **specs)
    def step(state, batch):
        mean = jnp.mean(batch[0].astype(jnp.float32), 0, keepdims=True)
        if not wrong:
            mean = jax.lax.pmean(mean, "data")
        gradients = jax.lax.pmean(jax.grad(loss_of)(state["params"], *batch), "data")
        new = jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], gradients)
        return {"params": new, "mean": 0.9 * state["mean"] + 0.1 * mean}  # <- TPU246

    state = {"params": params(), "mean": shape(jax.device_count(), WIDTH)}
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (state, batch(64)))
    return Port(jax.jit(step), shapes)


@wrong("TPU342")
def a_mesh_over_which_nothing_is_split(wrong):
    mesh = Mesh(np.array(jax.devices()), ("data",))

    def over(spec, arrays):
        sharding = NamedSharding(mesh, spec)
        return jax.tree.map(
            lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding), arrays
        )

    whole, rows = PartitionSpec(), PartitionSpec("data")
    examples = over(whole if wrong else rows, batch())
    return Port(jax.jit(descend, donate_argnums=0), (over(whole, params()), examples))


def averaged(params, averages, batch):
    """A step that also keeps running averages of its parameters."""
    gradients = jax.grad(lambda p: jnp.mean((batch @ p["kernel"]) ** 2))(params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    return params, jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, averages, params)


def small_arrays():
    """Parameters and a batch of `averaged`, with their values."""
    return {"kernel": jnp.ones((16, 8))}, jnp.ones((64, 16))


@wrong("TPU247")
def averages_that_are_the_parameters(wrong):
    params, batch = small_arrays()
    averages = params if wrong else jax.tree.map(jnp.copy, params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))  # <- TPU247
    def step(params, averages, batch):
        return averaged(params, averages, batch)

    return Port(step, (params, averages, batch))
