"""The private names of TensorFlow and JAX that the dry run stands on: each failure says what moved."""

import importlib.util

import pytest
from dry_run_models import CLASSES, MODELS, ROWS, dense, make, reader, v1

from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.run.virtual import run_program
from lab_utils.dry_run.trace.stage import trace
from lab_utils.dry_run.workload import Inputs
from lab_utils.estimator import tf

pytestmark = pytest.mark.usefixtures("own_cache")  # nothing that another TensorFlow worked out
HERE = f"TensorFlow {tf.__version__}: see lab_utils/dry_run/private/tensorflow.py and _tpu_estimator.py"
DATA = reader((ROWS, CLASSES))
NAMES = (*_tensorflow._NAMES, *_tpu_estimator._NAMES)


@pytest.mark.parametrize("module", [_tensorflow, _tpu_estimator], ids=lambda m: m.__name__)
def test_every_name_is_there(module):
    assert module.check() == []


@pytest.mark.parametrize("module", [_tensorflow, _tpu_estimator], ids=lambda m: m.__name__)
def test_a_name_that_moved_is_told_in_a_sentence(module, monkeypatch):
    monkeypatch.setattr(module, "_NAMES", ((tf.Graph, "_moved"),))
    [said] = module.check()
    file = module.__name__.rsplit(".", 1)[-1]
    assert "has no Graph._moved" in said and said.endswith(f"see lab_utils/dry_run/{file}.py")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed here")
def test_jax_has_every_name():
    with process.started("check", {}, {}) as running:
        assert running.result()[0]["moved"] == []


def test_a_constructors_arguments_can_be_read_back():
    given = _tpu_estimator.settings(make(dense, params={"mine": 1}))
    assert given.model_fn is dense, f"TPUEstimator keeps model_fn elsewhere in {HERE}"
    assert (given.train_batch_size, given.eval_batch_size, given.use_tpu) == (64, 64, False), HERE
    assert given.params == {"mine": 1} and given.batch_axis is None, HERE


def test_graphs_are_built_and_every_function_is_put_back():
    owners = [(owner, name, getattr(owner, name)) for owner, name in NAMES]
    for each in trace(make(dense), Inputs(DATA), cores=8):
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
    where = f"{process.versions()}: see lab_utils/dry_run/private/jax.py"
    compiled = compile_program(program, "v2:2x2")
    assert compiled.step.fits, where
    assert compiled.summary.products and compiled.summary.collective_bytes, where
    assert compiled.step.memory["arguments"].value and compiled.step.cost["flops"].value, where
    result = run_program(program, one_core=lower_estimator(make(dense), DATA, cores=1), steps=2)
    assert result.findings == [], where
