"""Steps in JAX: what is taken as one, how it is laid on a topology, and what is found in it."""

import functools
import os
import subprocess
import sys
import types

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from reading import findings_of  # noqa: E402
from rules.judging import jobs  # noqa: E402, F401

from lab_utils.dry_run import dry_run  # noqa: E402
from lab_utils.dry_run.compile import findings as compile_findings  # noqa: E402
from lab_utils.dry_run.compile.stage import compile_program  # noqa: E402
from lab_utils.dry_run.frontends.jax import JaxWorkload  # noqa: E402
from lab_utils.dry_run.frontends.jax_calls import (  # noqa: E402
    Call,
    examples,
    leaf_numbers,
    trace,
    traced_leaves,
)
from lab_utils.dry_run.frontends.recognise import is_jax  # noqa: E402
from lab_utils.dry_run.lower.errors import InputUnfit, NotJax  # noqa: E402
from lab_utils.dry_run.private import process  # noqa: E402

RUNNING = process.Running  # in whose place some tests put one process for all
MESH = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))


def shape(*dims, dtype=jnp.float32, spec=None):
    sharding = None if spec is None else NamedSharding(MESH, PartitionSpec(*spec))
    return jax.ShapeDtypeStruct(dims, dtype, sharding=sharding)


def loss_of(params, features, labels):
    hidden = jax.nn.relu(features @ params["first"])
    return jnp.mean((hidden @ params["second"] - labels) ** 2)


def descend(params, features, labels):
    loss, gradients = jax.value_and_grad(loss_of)(params, features, labels)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


PARAMS = {"first": shape(16, 32), "second": shape(32, 8)}
BATCH = shape(64, 16), shape(64, 8)


needs_pmap = pytest.mark.skipif(
    jax.__version_info__ < (0, 8), reason="jax.pmap is not judged before jax 0.8"
)


def found(step, data):
    """Rules that reading the step finds."""
    return [each.rule for each in findings_of(JaxWorkload(step, data, "v5e:2x4"))]


def test_a_jax_that_is_too_old_is_refused_and_a_newer_one_blames_no_step(monkeypatch):
    monkeypatch.setattr(process, "versions", lambda: {"jax": "0.7.1"})
    with pytest.raises(TypeError, match=r"too old.*pip install jax=="):
        dry_run(jax.jit(descend), (PARAMS, *BATCH), "v5e:1x1", cache=False, progress=False)
    monkeypatch.setattr(process, "versions", lambda: {"jax": "0.99.0"})
    assert found(jax.jit(descend), (PARAMS, *BATCH)) == []
    report = dry_run(jax.jit(lambda x: x.moved), BATCH[0], "v5e:1x1", cache=False, progress=False)
    assert report.verdict == "could not run" and not report.findings


class Trainer:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, params, features, labels):
        gradients = jax.grad(loss_of)(params, features, labels)
        return jax.tree.map(lambda p, g: p - self.rate * g, params, gradients)


RIGHT = {
    "a plain function": (descend, (PARAMS, *BATCH)),
    "an object that is called": (Trainer(0.1), (PARAMS, *BATCH)),
    "arrays of NumPy in float64": (
        jax.jit(descend),
        jax.tree.map(lambda a: np.ones(a.shape), (PARAMS, *BATCH)),
    ),
    "a function among the arguments": (
        lambda params, features, activation: activation(features @ params),
        (shape(16, 8), shape(64, 16), jnp.tanh),
    ),
    "batches of one shape": (jax.jit(descend), (PARAMS, iter([BATCH[0]] * 3), BATCH[1])),
    "one batch as the only argument": (jax.jit(lambda batch: batch[0].sum()), BATCH),
}


@pytest.mark.parametrize("habit", RIGHT)
def test_a_right_step_in_many_habits(habit):
    step, data = RIGHT[habit]
    assert is_jax(step, data)
    assert found(step, data) == []


def precise(rows, first, second):
    with jax.default_matmul_precision("highest"):
        return jnp.mean(rows @ first) + jnp.mean(jnp.dot(rows, second, precision="default"))


def narrow(rows, first, second):
    """As the compiler narrows a step of float32, so does it widen none."""
    return jnp.mean(rows.astype(jnp.bfloat16) @ first.astype(jnp.bfloat16)) + jnp.mean(
        rows @ second
    )


def scanned(rows, first, second):
    square = jax.lax.scan(lambda x, _: (jnp.tanh(x @ first), None), rows, length=9)[0]
    return jnp.mean(jax.lax.dot(square, second, precision=jax.lax.Precision.HIGH))


def counted(rows, first, second):
    """Its body holds a larger number than its condition compares with."""

    def body(state):
        number, x = state
        return number + 1, jnp.tanh(x @ first) + jax.lax.rem(number, 32_000)

    return jnp.mean(jax.lax.while_loop(lambda state: state[0] < 12_000, body, (0, rows))[1])


def limited_by_its_state(rows, first, second):
    """Its condition is a function that is called, and its limit comes with the state."""
    goes_on = jax.jit(lambda number, limit: number < limit)
    body = lambda state: (state[0] + 1, state[1] + (state[0] > 900), jnp.tanh(state[2] @ first))  # noqa: E731
    return jnp.mean(jax.lax.while_loop(lambda state: goes_on(*state[:2]), body, (0, 12, rows))[2])


def open_ended(rows, first, second):
    """Nobody sees how often it goes round; the number in its body is none of it."""
    body = lambda number, x: jnp.tanh(x @ first) + jax.lax.rem(number, 32_000)  # noqa: E731
    return jnp.mean(jax.lax.fori_loop(0, jnp.argmax(rows[0]), body, rows))


PRODUCT = 2 * 256 * 512 * 512


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (precise, [("f32", True, PRODUCT), ("f32", False, PRODUCT)]),
        (narrow, [("bf16", False, PRODUCT), ("f32", False, PRODUCT)]),
        (scanned, [("f32", False, 9 * PRODUCT), ("f32", True, PRODUCT)]),
        (counted, [("f32", False, 12_000 * PRODUCT)]),
        (limited_by_its_state, [("f32", False, 12 * PRODUCT)]),
        (open_ended, [("f32", False, PRODUCT)]),
    ],
)
def test_what_a_step_multiplies_is_told_as_it_is_written(step, wanted):
    weights = shape(512, 512)
    program = JaxWorkload(
        jax.jit(step), (shape(256, 512), weights, weights), "v5e:2x4", batch_argnums=0
    ).lower(8)
    assert [(*set(each.dtypes), each.precise, each.flops) for each in program.matmuls] == wanted


def test_a_part_of_a_batch_leaves_a_python_number_among_the_arguments_as_it_is():
    def step(params, features, labels, rate):
        loss, gradients = jax.value_and_grad(loss_of)(params, features, labels)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients), loss

    values = [np.random.default_rng(0).random(each.shape, "f4") for each in BATCH]
    params = jax.tree.map(lambda each: jnp.ones(each.shape), PARAMS)
    part = JaxWorkload(jax.jit(step), (params, *values, 0.1), "v5e:2x4").comparison(4).many
    assert sorted(value.shape for value in part.values) == [
        (),
        (16, 8),
        (16, 16),
        (16, 32),
        (32, 8),
    ]


def on_the_host(loss):
    return jax.pure_callback(np.asarray, shape(), loss, vmap_method="expand_dims")


def checked_by_equinox(loss):
    return pytest.importorskip("equinox").error_if(loss, loss > 100, "the loss is large")


HOST_CALLS = {
    "a check in a branch": (lambda x: jax.lax.cond(x > 9, on_the_host, lambda y: y, x), "note"),
    "Equinox's check": (checked_by_equinox, "note"),
    "the same without a branch": (on_the_host, "warning"),
    "a call in every branch": (
        lambda x: jax.lax.cond(x > 9, on_the_host, lambda y: on_the_host(y) + 1, x),
        "warning",
    ),
    "a branch by the platform": (
        lambda x: jax.lax.platform_dependent(x, tpu=on_the_host, default=lambda y: y),
        "warning",
    ),
    "a condition of each example": (
        lambda x: jax.vmap(lambda y: jax.lax.cond(y > 9, on_the_host, lambda z: z, y))(
            x * jnp.arange(3.0)
        ).sum(),
        "warning",
    ),
}


@pytest.mark.parametrize("kind", HOST_CALLS)
def test_a_call_of_the_host_that_a_branch_may_spare_is_a_note(kind):
    use, severity = HOST_CALLS[kind]

    @jax.jit
    def step(params, features, labels):
        params, loss = descend(params, features, labels)
        return params, use(loss)

    findings = findings_of(JaxWorkload(step, (PARAMS, *BATCH), "v5e:2x4"))
    told = {(each.rule, each.severity, "in a branch of" in each.why) for each in findings}
    assert told == {("TPU241", severity, severity == "note")}
    assert all("test_dry_run_jax.py" in each.where for each in findings)


@pytest.mark.parametrize("precision", ["default", "highest"])
def test_float32_is_a_note_unless_the_step_asks_for_more(precision, monkeypatch, jobs):  # noqa: F811
    pytest.importorskip("libtpu")
    monkeypatch.setattr(compile_findings, "TOY_SECONDS", 0.0)

    @jax.jit
    def step(weights, rows):
        with jax.default_matmul_precision(precision):
            return weights - 0.1 * jax.grad(lambda w: jnp.mean(jnp.square(rows @ w)))(weights)

    call = shape(512, 512), shape(1024, 512)
    compiled = compile_program(JaxWorkload(step, call, "v5e:2x4").lower(8), "v5e:2x4")
    notes = [each for each in compiled.findings if each.rule == "TPU306"]
    assert len(notes) == (precision == "default")
    for note in notes:
        assert note.why.startswith("In the train step, 100% of") and "tf." not in note.fix


# Which leaf of a call is which array of the traced step. All leaves have one shape and other values.


def weighted(tree):
    """A number that changes where two leaves change places."""
    return sum(n * jnp.sum(leaf) for n, leaf in enumerate(jax.tree.leaves(tree), 2))


def of_all(state, rows, rate=1.0, **others):
    return weighted((state, rows, others)) * rate


STATE = {"w": 1.0, "q": [2.0, {"deep": 3.0}]}
ROWS = 5.0


class Method:
    def step(self, state, rows):
        return weighted((state, rows))


NUMBERED = {
    "nested dicts": (jax.jit(of_all), (STATE, ROWS), {}),
    "a static float by its place": (jax.jit(of_all, static_argnums=2), (STATE, ROWS, 7.0), {}),
    "one before the arrays": (jax.jit(of_all, static_argnums=0), (11.0, STATE), {}),
    "one by its place from the end": (
        jax.jit(lambda rate, state: weighted(state) * rate, static_argnums=-2),
        (7.0, STATE),
        {},
    ),
    "one by its name": (jax.jit(of_all, static_argnames="rate"), (STATE, ROWS), {"rate": 7.0}),
    "one by its name, given by its place": (
        jax.jit(of_all, static_argnames="rate"),
        (STATE, ROWS, 7.0),
        {},
    ),
    "more arguments by name": (
        jax.jit(of_all, static_argnames=("rate", "switch")),
        (STATE,),
        {"zeta": 13.0, "rows": 5.0, "switch": 17.0, "alpha": 19.0},
    ),
    "donated arguments": (
        jax.jit(of_all, donate_argnums=0, donate_argnames="rows", static_argnums=2),
        (STATE, ROWS, 7.0),
        {},
    ),
    "a partial of a jitted function": (
        functools.partial(jax.jit(of_all, static_argnames="rate"), STATE, rate=7.0),
        (ROWS,),
        {},
    ),
    "a jitted partial": (jax.jit(functools.partial(of_all, rate=7.0)), (STATE, ROWS), {}),
    "a method": (jax.jit(Method().step), (STATE, ROWS), {}),
    "a plain function": (of_all, (STATE, ROWS, 7.0), {}),
    "a plain function with a switch": (
        lambda state, switch: weighted(state) if switch == "on" else 0.0,
        (jax.tree.map(jnp.asarray, STATE), "on"),
        {},
    ),
    "a plain partial": (functools.partial(of_all, STATE), (ROWS,), {}),
}


def assert_numbered(step, args, kwargs):
    """The jaxpr of the step with the leaves in the order of their numbers computes what the step does."""
    call = Call.of(step, args, kwargs)
    traced = trace(call)
    leaves = traced_leaves(call, traced)
    values = [leaves[number] for number in range(len(traced.jaxpr.jaxpr.invars))]
    results = jax.core.eval_jaxpr(traced.jaxpr.jaxpr, traced.jaxpr.consts, *values)
    np.testing.assert_allclose(results[-1], step(*args, **kwargs), rtol=1e-6)
    return call, traced


@pytest.mark.parametrize("habit", NUMBERED)
def test_the_arrays_of_a_step_are_numbered_as_jax_traces_them(habit):
    assert_numbered(*NUMBERED[habit])


def test_so_they_are_where_objects_of_nnx_share_variables():
    nnx = pytest.importorskip("flax.nnx")

    class Pair(nnx.Module):
        def __init__(self, first, second):
            self.first, self.second = first, second

    def model(seed):
        return nnx.Linear(2, 2, rngs=nnx.Rngs(seed))

    @functools.partial(nnx.jit, static_argnames="rate")
    def step(pair, model, rows, rate=1.0):
        return (pair.first(rows).sum() + 2 * pair.second(rows).sum() + 3 * model(rows).sum()) * rate

    rows, tied = jnp.arange(2.0), model(1)
    calls = {
        "nothing": (Pair(model(1), model(2)), model(3), rows),
        "two arguments": (Pair(model(1), tied), tied, rows),
        "two fields": (Pair(tied, tied), model(3), rows),
        "all": (Pair(tied, tied), tied, rows),
    }
    numbered = {}
    for shared, args in calls.items():
        call, traced = assert_numbered(step, args, {"rate": 7.0})
        numbered[shared] = leaf_numbers(call, traced)
    assert set(numbered["two arguments"]) == {0, 1, 2, 3, 6}, "the first of the leaves counts"
    alike = Pair(model(1), model(2))
    alike.second.kernel.value = alike.first.kernel.value  # one array in two variables stays two
    assert len(leaf_numbers(*assert_numbered(step, (alike, tied, rows), {}))) == 7


def test_so_they_are_for_equinox():
    equinox = pytest.importorskip("equinox")

    @equinox.filter_jit
    def step(model, rows, scale, *, rate):
        return weighted((model, rows)) * scale * rate

    model = {"w": jnp.float32(1.0), "name": 7.0, "q": jnp.float32(2.0)}
    assert_numbered(step, (model, jnp.float32(5.0), 3), {"rate": jnp.float32(4.0)})


@pytest.mark.parametrize("static", [{"static_argnums": 3}, {"static_argnames": "rate"}])
def test_an_array_that_is_donated_twice_is_found_beside_static_and_traced_floats(static):
    def step(params, averages, rows, rate, momentum):
        new = params - rate * jax.grad(lambda p: jnp.mean((rows @ p) ** 2))(params)
        return new, averages + momentum * (new - averages)

    params = jnp.ones([4, 3])
    jitted = jax.jit(step, donate_argnums=(0, 1), **static)
    assert found(jitted, (params, params, jnp.ones([8, 4]), 0.1, 0.9)) == ["TPU247"]
    assert found(jitted, (params, params + 0, jnp.ones([8, 4]), 0.1, 0.9)) == []


def test_where_the_arguments_of_a_step_have_no_numbers_the_rule_on_them_is_named():
    class Own:
        """What traces as JAX's own functions do, and does not say what it takes."""

        def __init__(self, step):
            self._step = jax.jit(step)
            self.trace = self._step.trace

        def __call__(self, *args):
            return self._step(*args)

    call = jax.tree.map(lambda leaf: jnp.ones(leaf.shape), (PARAMS, *BATCH))
    report = dry_run(Own(descend), call, "v5e:1x1", stages=["read"], progress=False)
    assert (
        "TPU247, of training: it is not known which arguments of the jitted step are static."
        in report.not_checked
    )


def test_what_is_not_jax():
    assert not is_jax(lambda features: features * 2, np.ones(2))
    assert not is_jax(Trainer, PARAMS)


def test_arguments_that_do_not_fit_are_told():
    with pytest.raises(TypeError, match="missing a required argument: 'labels'"):
        examples(descend, (PARAMS, BATCH[0]))
    with pytest.raises(ValueError, match="empty"):
        examples(descend, (PARAMS, iter([]), BATCH[1]))


def test_tensors_of_other_libraries_are_shapes():
    tensor = types.SimpleNamespace(shape=(2, 3), dtype="torch.bfloat16")
    (call,) = examples(lambda x: x, tensor)
    assert (call[0].shape, call[0].dtype) == ((2, 3), jnp.bfloat16)


def both(params, features, labels):
    gradients = jax.grad(loss_of)(params, features, labels)
    return gradients, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


# What comes back with the structure of an argument, and whether it is the argument's new value.
RETURNED = {
    "gradients, without an update": (jax.value_and_grad(loss_of), (PARAMS, *BATCH), []),
    "gradients before the new parameters": (both, (PARAMS, *BATCH), [(0, 2), (1, 3)]),
    "pictures of pictures": (jnp.tanh, (BATCH[0],), []),
    "a table to whose rows it adds": (
        lambda table, numbers: table.at[numbers].add(-0.1),
        (shape(100, 16), shape(64, dtype="int32")),
        [(0, 0)],
    ),
    "the only array that is trained": (
        lambda weights, rows: weights - jax.grad(lambda w: jnp.mean((rows @ w) ** 2))(weights),
        (shape(16, 8), BATCH[0]),
        [(0, 0)],
    ),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_gradients_and_what_a_forward_step_makes_are_no_new_state(kind):
    step, call, state = RETURNED[kind]
    assert JaxWorkload(jax.jit(step), call, "v5e:1x1").known.state == state
    report = dry_run(jax.jit(step), call, "v5e:1x1", stages=["read"], progress=False)
    assert any("state_argnums=0" in each for each in report.not_checked) == (not state)
    told = JaxWorkload(jax.jit(step), call, "v5e:1x1", state_argnums=0).known
    assert told.state, "as somebody said"


def test_the_batch_is_known_beside_parameters_that_are_not_trained():
    def step(base, params, features, labels):
        return descend(params, features @ base["down"] @ base["up"], labels)

    base = {"down": shape(16, 512), "up": shape(512, 16)}
    assert program_of(jax.jit(step), (base, PARAMS, *BATCH), "v5e:1x1", 1).per_core_batch == 64
    loss = jax.jit(lambda state, batch: loss_of(state["params"], *batch))
    state = {"params": PARAMS, "table": shape(4096, 16)}
    program = program_of(loss, (state, BATCH), "v5e:1x1", 1)
    assert (program.mode, program.per_core_batch) == ("forward", 64)


# The mesh.

SHARDED = {
    "first": shape(1024, 4096, spec=(None, "model")),
    "second": shape(4096, 1024, spec=("model", None)),
}
SHARDED_BATCH = shape(2048, 1024, spec=("data",)), shape(2048, 1024, spec=("data",))


def program_of(step, arguments, topology, cores, **mesh):
    return JaxWorkload(step, arguments, topology, mesh or None).lower(cores)


@pytest.mark.parametrize(
    ("options", "is_kernel", "uncounted"),
    [
        ({}, True, True),
        ({"cost_estimate": pl.CostEstimate(flops=9, transcendentals=0, bytes_accessed=9)}, True, False),
        ({"interpret": True}, False, False),
    ],
)  # fmt: skip
def test_flops_of_a_pallas_kernel_that_no_bound_holds_are_told(options, is_kernel, uncounted):
    def kernel(rows, columns, out):
        out[...] = jnp.dot(rows[...], columns[...])

    call = pl.pallas_call(kernel, out_shape=shape(256, 256), **options)
    program = JaxWorkload(lambda x: call(x, x), shape(256, 256), "v5e:1x1").lower(1)
    assert (b"tpu_custom_call" in program.hlo) is is_kernel
    assert ("FLOPs of Pallas kernels (" in program.left_out) is uncounted
    assert program.partition.has_silent_kernels is uncounted


def test_a_mesh_of_one_cpu_is_laid_on_a_topology():
    program = program_of(jax.jit(descend), (SHARDED, *SHARDED_BATCH), "v5e:2x4", 8, data=4, model=2)
    assert program.partition.mesh == {"data": 4, "model": 2} and program.per_core_batch == 256
    shapes = {each.name: each.shape for each in program.inputs}
    assert (shapes["params['first']"], shapes["features"]) == ((1024, 2048), (512, 1024))


@pytest.mark.parametrize(
    ("mesh", "says"),
    [
        ({}, r"data=1, model=1: 1 device\) cannot be laid on v5e:2x4.*mesh_axes="),
        ({"data": 4}, "4 devices"),
        ({"rows": 8}, "names rows, and the mesh of the step has the axes data, model"),
        ({"data": 3, "model": 2}, "6 devices"),
    ],
)
def test_a_mesh_that_does_not_fit_is_told(mesh, says):
    with pytest.raises(InputUnfit, match=says):
        program_of(jax.jit(descend), (SHARDED, *SHARDED_BATCH), "v5e:2x4", 8, **mesh)


def test_a_batch_that_does_not_divide_is_told():
    batch = shape(100, 1024, spec=("data",)), shape(100, 1024, spec=("data",))
    with pytest.raises(NotJax, match="axis 0 of features, of size 100, cannot be split over 8"):
        program_of(jax.jit(descend), (SHARDED, *batch), "v5e:2x4", 8, data=8)


def test_a_shard_map_is_not_resized():
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    step = jax.shard_map(
        lambda x: jax.lax.pmean(x.sum(), "data"),
        mesh=mesh,
        in_specs=PartitionSpec("data"),
        out_specs=PartitionSpec(),
    )
    here = jax.device_count()
    for cores, remedy in (here, f"mesh of all {here} devices"), (2 * here, "jax_num_cpu_devices"):
        with pytest.raises(InputUnfit, match=f"{remedy}.*shard_map"):
            JaxWorkload(jax.jit(step), shape(64, 8), f"v5e:{cores // 4}x4").lower(cores)
    assert JaxWorkload(jax.jit(step), shape(64, 8), "v5e:1x1").lower(1).partition.cores == 1


@needs_pmap
def test_a_pmap_for_more_devices_than_there_are_says_how_to_get_them():
    step = jax.pmap(lambda x: jax.lax.pmean(x.sum(), "batch"), axis_name="batch")
    more = 2 * jax.device_count()
    config = f'"jax_num_cpu_devices", {more}'
    report = dry_run(step, shape(more, 64), f"v5e:{more // 4}x4", cache=False, progress=False)
    assert report.verdict == "could not run" and not report.findings
    assert config in str(report), "the remedy was cut off"
    with pytest.raises(InputUnfit, match=config):
        JaxWorkload(step, shape(1, 64, 8), f"v5e:{more // 4}x4").lower(more)


def test_a_pmap_gets_its_devices_where_jax_has_not_started():
    code = """
import jax
from lab_utils.dry_run.frontends.jax import JaxWorkload
step = jax.pmap(lambda w, x: w - jax.lax.pmean(x.sum(), "i"), axis_name="i")
shapes = jax.ShapeDtypeStruct((8, 4), "float32"), jax.ShapeDtypeStruct((8, 16), "float32")
print(JaxWorkload(step, shapes, "v5e:2x4").lower(8).partition.mesh)
"""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert "8}" in done.stdout, done.stderr


def test_mesh_axes_without_a_mesh_says_what_to_write():
    with pytest.raises(InputUnfit, match=r'NamedSharding\(mesh, PartitionSpec\("data"\)\)'):
        program_of(jax.jit(descend), (PARAMS, *BATCH), "v5e:2x4", 8, data=8)


def test_a_value_that_python_reads_has_the_remedy_of_its_kind():
    with pytest.raises(NotJax) as raised:
        JaxWorkload(jax.jit(lambda x: jnp.sum(x[x > 0])), shape(8), "v5e:1x1").lower(1)
    fix = raised.value.finding().fix
    assert "where=mask" in fix and "lax.cond" not in fix
    jitted = jax.jit(descend)
    with pytest.raises(NotJax) as raised:
        found(lambda *arguments: float(jitted(*arguments)[1]), (PARAMS, *BATCH))
    assert "hand over the jitted step" in raised.value.finding().fix


def test_a_whole_dry_run_has_memory_and_collectives_as_counted_by_hand(jobs):  # noqa: F811
    pytest.importorskip("libtpu")
    step, mesh = jax.jit(descend, donate_argnums=0), {"data": 4, "model": 2}
    options = {"mesh_axes": mesh, "cache": False, "progress": False}
    report = dry_run(step, (SHARDED, *SHARDED_BATCH), "v5e:2x4", **options)
    assert report.verdict == "ready" and "test_dry_run_jax.py" in report.subject
    skipped = {each.stage: each.detail for each in report.stages if each.status == "skipped"}
    assert set(skipped) == {"run", "feed"} and all(skipped.values())
    # Half of each matrix on a core, and a quarter of the features and of the labels, in float32.
    held = 4 * (2 * 1024 * 4096 / 2 + 2 * 2048 / 4 * 1024)
    assert report.compiled[0].memory.arguments.value == held
    # Over "model" the halves of the second product are summed, [512, 1024]; over "data" the gradients of
    # both halves of matrices, and the loss. Each in float32 or, as the compiler narrows, bfloat16.
    figures = {figure.name: figure.value for figure in report.stages[2].figures}
    over_model, over_data = 512 * 1024, 2 * 1024 * 2048
    counted = {a * over_model + b * over_data + 4 for a in (2, 4) for b in (2, 4)}
    assert figures["all-reduce, a step"] in counted
    by_axis = {axis.over: axis.bytes["all-reduce"] for axis in report.compiled[0].exchanges}
    assert by_axis["model"] in (2 * over_model, 4 * over_model)
    assert by_axis["data"] in {a * over_data + loss for a in (2, 4) for loss in (0, 4)}
    assert "over model (all-reduce of" in str(report)


@pytest.mark.parametrize(
    "step",
    [
        lambda params, features, labels: None,
        lambda params, features, labels: jnp.zeros([]),
        lambda params, features, labels: (params, {"loss": 0.0}),
        lambda params, features, labels: jax.jit(lambda p: jnp.ones([3]))(params),
        jax.jit(lambda params, features, labels: descend(params, features, labels) and None),
    ],
    ids=["nothing", "a constant", "its arguments", "within jit", "no return"],
)
def test_a_step_that_returns_nothing_it_computes_is_not_judged(step):
    report = dry_run(step, (PARAMS, *BATCH), "v5e:2x4", stages=["read", "compile"], progress=False)
    assert report.verdict == "could not run" and not report.compiled
    assert "returns nothing that it computes from its arguments" in report.stages[1].detail
    assert "inf" not in str(report).replace("infeed", "")


def test_the_report_says_how_many_of_the_devices_take_part(jobs):  # noqa: F811
    data = (PARAMS, *BATCH)
    alone = dry_run(descend, data, "v5e:2x4", stages=["read", "compile"], progress=False)
    assert (alone.framework, alone.backend, alone.devices) == ("JAX", "JAX", 1)
    assert "; JAX; 1 of the 8 cores of v5e:2x4; " in alone.subject + " ".join(str(alone).split())
    unknown = dry_run(descend, data, "v5e:2x4", stages=["read"], progress=False)
    assert unknown.devices is None and "not lowered for the 8 cores" in " ".join(
        str(unknown).split()
    )


def test_a_compilation_that_takes_too_long_is_ended_and_told(tmp_path, monkeypatch):
    pytest.importorskip("libtpu")
    (tmp_path / "no_end.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(process, "CHILD", "no_end")
    monkeypatch.setattr(process, "Running", RUNNING)
    options = {"stages": ["read", "compile"], "cache": False, "progress": False, "limit": 0.1}
    report = dry_run(descend, (PARAMS, *BATCH), "v5e:2x4", **options)
    assert report.verdict == "could not run" and not report.findings
    assert (
        "Not judged: the train step, which was not compiled within 0.1 s."
        in report.verdict_sentence
    )
    assert "compile (skipped): not compiled within 0.1 s." in report.not_checked
    with pytest.raises(ValueError, match=f"limit={1e10}"), process.limited(1e10):
        pytest.fail("no system waits so long")  # and a dry run would not end
    for limit in (0, 1e10):
        with pytest.raises(ValueError, match=f"limit={limit}"):
            dry_run(descend, (PARAMS, *BATCH), "v5e:2x4", limit=limit)


@pytest.mark.parametrize("shapes", [False, True], ids=["values", "shapes"])
def test_a_replicated_rate_keeps_the_cores_together_and_a_missing_mean_does_not(shapes):
    """flax.jax_utils.replicate gives each core an array of its own, with the same number in it."""
    cores = jax.device_count()
    topology = f"v5e:{max(1, cores // 4)}x{min(4, cores)}"
    weights, rows = jnp.ones([cores, 16, 4]), jnp.arange(cores * 8 * 16.0).reshape(cores, 8, 16)
    rate, scale = jnp.full([cores], 0.1), jnp.tile(jnp.arange(4.0), (cores, 1))

    def rules_of(join):
        def step(weights, rows, rate, scale):
            gradient = jax.grad(lambda w: jnp.mean((rows @ w) ** 2 * scale))(weights)
            return weights - rate * join(gradient)

        mapped, arguments = jax.pmap(step, axis_name="data"), (weights, rows, rate, scale)
        if shapes:
            described = jax.tree.map(
                lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), arguments[:3]
            )
            mapped = jax.pmap(lambda w, r, n: step(w, r, n, 1.0), axis_name="data")
            arguments = described
        options = {"state_argnums": 0, "batch_argnums": 1, "progress": False, "stages": ["read"]}
        return [each.rule for each in dry_run(mapped, arguments, topology, **options).findings]

    assert "TPU245" not in rules_of(lambda gradient: jax.lax.pmean(gradient, "data"))
    assert "TPU245" in rules_of(lambda gradient: gradient)
