"""The private names of JAX that steps of JAX are traced and run with: each failure says what moved."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
if jax.__version_info__ < (0, 8):
    pytest.skip("jax.pmap is not judged before jax 0.8", allow_module_level=True)

from lab_utils.dry_run.private import jax as names  # noqa: E402

jnp, P = jax.numpy, jax.sharding.PartitionSpec
HERE = f"jax {jax.__version__}: see lab_utils/dry_run/private/jax.py"
ROWS = np.ones((8, 4), np.float32)


def loss(weights, rows):
    return jnp.mean((rows @ weights) ** 2)


def mesh(devices):
    return jax.sharding.Mesh(np.array(devices), ("data",))


def test_a_gradient_and_a_print_are_known_by_their_equations():
    @jax.jit
    def step(weights, rows):
        jax.debug.print("{}", rows[0, 0])
        return {"new": weights - jax.grad(loss)(weights, rows)}

    traced = step.trace(ROWS[0], ROWS)
    found = list(names.equations(traced.jaxpr.jaxpr))
    assert any(map(names.is_of_gradient, found)), f"the name stack of gradients, {HERE}"
    assert any(map(names.prints, found)), f"debug primitives, {HERE}"
    assert names.names(traced.jaxpr.jaxpr) == ["weights", "rows"], f"debug_info.arg_names, {HERE}"
    assert names.result_names(traced) == ["['new']"], f"out_tree, {HERE}"
    with names.printing_left_out():
        again = jax.jit(lambda w, r: step(w, r)).trace(ROWS[0], ROWS)
    assert not any(map(names.prints, names.equations(again.jaxpr.jaxpr))), (
        f"bind of primitives, {HERE}"
    )


def test_a_value_of_another_trace_is_known():
    kept = []
    jax.eval_shape(lambda x: kept.append(x + 1), ROWS)
    assert names.leak(jax.jit(lambda x: x).trace(ROWS)) is None
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(lambda x: x * kept[0])(ROWS)
    try:
        traced = jax.jit(lambda x: x * kept[0]).trace(ROWS)
    except jax.errors.UnexpectedTracerError:  # JAX itself says it where it traces
        return
    error, made_at = names.leak(traced)
    assert isinstance(error, jax.errors.UnexpectedTracerError), f"Traced._consts, {HERE}"
    assert "kept.append(x + 1)" in made_at.code, f"Tracer._line_info, {HERE}"


def test_a_mapped_step_is_traced_for_one_device():
    devices = jax.devices()
    mapped = jax.shard_map(
        lambda rows: jax.lax.pmean(rows, "data"),
        mesh=mesh(devices),
        in_specs=P("data"),
        out_specs=P(),
    )
    rows = np.ones((8 * len(devices), 4), np.float32)
    assert names.devices_of(jax.jit(mapped).trace(rows)) == len(devices), f"params of it, {HERE}"
    with names.on_one_device():
        traced = jax.jit(mapped).trace(rows)
    assert names.devices_of(traced) == 1, f"shard_map_p, {HERE}"


def test_a_step_is_exported_with_the_shardings_of_its_arguments():
    devices = jax.devices()
    sharding = jax.sharding.NamedSharding(mesh(devices), P("data"))
    rows = np.ones((8 * len(devices), 4), np.float32)
    traced = jax.jit(lambda key, rows: jax.random.uniform(key) * rows).trace(
        jax.random.key(1), rows
    )
    blob, axes = names.exported(traced, {1: sharding})
    assert axes == ([("data", len(devices), "Auto")] if len(devices) > 1 else []), HERE
    again = jax.export.deserialize(bytearray(blob))
    assert [(each.shape, each.dtype.name) for each in again.in_avals] == [
        ((2,), "uint32"),
        (rows.shape, "float32"),
    ], f"the numbers of a key, {HERE}"


def test_what_a_jitted_function_within_a_step_asks_for_is_known():
    inner = jax.jit(lambda weights, rows: weights - loss(weights, rows), donate_argnums=0)
    traced = jax.jit(lambda weights, rows: inner(weights, rows)).trace(ROWS[0], ROWS)
    assert names.wishes(traced) == {0: names.Wish(donated=True)}, f"donated_invars, {HERE}"
    assert names.computes(traced.jaxpr.jaxpr), f"dce_jaxpr, {HERE}"
    result = traced.jaxpr.jaxpr.outvars[0]
    assert names.maker(traced.jaxpr.jaxpr, result).primitive.name == "sub", HERE


def test_the_static_arguments_of_a_jitted_function_are_known():
    def step(weights, rows, rate, scale=1.0):
        return weights * rate * scale, rows

    for options in ({"static_argnums": (2, 3)}, {"static_argnums": (2, -1)}):
        found = names.static_arguments(jax.jit(step, **options), 4)
        assert {2, 3} <= found, f"PjitInfo.static_argnums, {HERE}"
    found = names.static_arguments(jax.jit(step, static_argnames="scale"), 3)
    assert "scale" in found and 2 not in found, f"PjitInfo.static_argnames, {HERE}"
