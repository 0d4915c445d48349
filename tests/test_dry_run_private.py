"""The private names of TensorFlow and JAX that the dry run stands on: each failure says what moved."""

import importlib.util

import pytest
from dry_run_models import CLASSES, MODELS, ROWS, dense, make, reader, v1

from lab_utils.dry_run import _tensorflow, process
from lab_utils.dry_run.compile import compile_program
from lab_utils.dry_run.lower_estimator import lower_estimator
from lab_utils.dry_run.trace import trace
from lab_utils.dry_run.virtual import run_program

# isort: split
import tensorflow as tf

HERE = f"TensorFlow {tf.__version__}: see lab_utils/dry_run/_tensorflow.py"
DATA = reader((ROWS, CLASSES))


def test_tensorflow_has_every_name():
    assert _tensorflow.check() == []


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed here")
def test_jax_has_every_name():
    with process.child("check", {}, {}) as (answer, _):
        assert answer["moved"] == []


def test_a_constructors_arguments_can_be_read_back():
    given = _tensorflow.settings(make(dense, params={"mine": 1}))
    assert given.model_fn is dense, f"TPUEstimator keeps model_fn elsewhere in {HERE}"
    assert (given.train_batch_size, given.eval_batch_size, given.use_tpu) == (64, 64, False), HERE
    assert given.params == {"mine": 1} and given.batch_axis is None, HERE


def test_graphs_are_built_and_every_function_is_put_back():
    owners = [(owner, name, getattr(owner, name)) for owner, name in _tensorflow._NAMES]
    for each in trace(make(dense), DATA, cores=8):
        assert each.error is None and each.spec is not None, f"{each.mode}, {each.error}, {HERE}"
    for owner, name, value in owners:
        assert getattr(owner, name) is value, f"{name} was not put back, {HERE}"


def test_variables_come_back_in_their_places():
    program = lower_estimator(make(dense), DATA, cores=8)
    aliased = {each.name: program.inputs[each.input].shape for each in program.outputs[1:]}
    assert len(aliased) == 15, f"XLA no longer says which result is which variable's, {HERE}"
    assert aliased["dense/kernel"] == (6, 16), HERE
    assert program.all_reduces == 4, f"CrossShardOptimizer makes other ops, {HERE}"


def test_loops_host_work_and_the_callers_switches():
    switches = (v1.resource_variables_enabled(), v1.control_flow_v2_enabled())
    for name in ("control_flow", "host_work", "cross_replica_norm"):
        model_fn, data = MODELS[name]
        lower_estimator(make(model_fn), reader(data), cores=8)
    assert (v1.resource_variables_enabled(), v1.control_flow_v2_enabled()) == switches, HERE


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed here"
)
def test_the_compiler_and_the_virtual_cores_take_the_program():
    program = lower_estimator(make(dense), DATA, cores=8)
    where = f"{process.versions()}: see lab_utils/dry_run/_jax.py"
    compiled = compile_program(program, "v2:2x2", cache=False)
    assert compiled.fits, where
    assert compiled.summary.products and compiled.summary.collective_bytes, where
    assert compiled.memory["arguments"].value and compiled.cost["flops"].value, where
    result = run_program(program, one_core=lower_estimator(make(dense), DATA, cores=1), steps=2)
    assert result.findings == [], where
