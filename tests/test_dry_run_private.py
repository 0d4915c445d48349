"""The private names of TensorFlow and JAX that the dry run stands on: each failure says what moved."""

import importlib.util

import pytest
from dry_run_models import CLASSES, MODELS, ROWS, all_reduces, dense, make, reader, run_program, v1

from lab_utils.dry_run import dry_run
from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.facts.traces import trace
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.private import hlo as _hlo
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.workload import Inputs
from lab_utils.estimator import tf

# isort: split
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.training import monitored_session, session_manager
from tensorflow_estimator.python.estimator.tpu import tpu_context, tpu_estimator

pytestmark = pytest.mark.usefixtures("own_cache")  # nothing that another TensorFlow worked out
HERE = (
    f"TensorFlow {tf.__version__}: see lab_utils/dry_run/private/tensorflow.py and tpu_estimator.py"
)
DATA = reader((ROWS, CLASSES))
NAMES = (  # of functions that the dry run replaces for a while
    (monitored_session.ChiefSessionCreator, "create_session"),
    (monitored_session.WorkerSessionCreator, "create_session"),
    (session_manager.SessionManager, "prepare_session"),
    (v1.train.Saver, "restore"),
    (distribute_lib.ReplicaContext, "all_reduce"),
    (distribute_lib.ReplicaContextBase, "num_replicas_in_sync"),
    (distribute_lib.StrategyBase, "num_replicas_in_sync"),
    (tpu_context.tpu_system_metadata_lib, "_query_tpu_system_metadata"),
    (tpu_estimator._ModelFnWrapper, "_call_model_fn"),
    (tpu_estimator.TPUEstimator, "_call_input_fn"),
)


def _messages(message):
    """The messages within a message of a .proto file, by name, with its own."""
    found, left = {}, [message]
    while left:
        message = left.pop()
        if message.name not in found:  # a shape may have shapes within it
            found[message.name] = message
            left += [field.message_type for field in message.fields if field.message_type]
    return found


def _wire(field):
    """What of a field stands in the bytes: a number and the kind of what follows, repeated or not."""
    within = field.message_type and field.message_type.name
    kind = field.TYPE_INT32 if field.type == field.TYPE_ENUM else field.type
    return field.number, kind, within, field.is_repeated


def test_the_fields_of_a_lowered_step_are_those_of_xla():
    ours = _messages(_hlo._message("HloModuleProto").DESCRIPTOR)
    theirs = _messages(hlo_pb2.HloModuleProto.DESCRIPTOR)
    assert set(ours) == {*_hlo.MESSAGES, "MapEntry"}
    for name, message in ours.items():
        assert message.fields
        for field in message.fields:
            xlas = theirs[name].fields_by_name[field.name]
            assert _wire(field) == _wire(xlas), f"{name}.{field.name}"


def test_the_types_of_numbers_are_those_of_xla():
    field = _messages(hlo_pb2.HloModuleProto.DESCRIPTOR)["ShapeProto"].fields_by_name[
        "element_type"
    ]
    names = {value.number: value.name.lower() for value in field.enum_type.values}
    assert _hlo.ELEMENT_TYPES.items() <= names.items()


def test_a_constructors_arguments_can_be_read_back():
    given = _tpu_estimator.settings(make(dense, params={"mine": 1}))
    assert given.model_fn is dense, f"TPUEstimator keeps model_fn elsewhere in {HERE}"
    assert (given.train_batch_size, given.eval_batch_size, given.use_tpu) == (64, 64, False), HERE
    assert given.params == {"mine": 1} and given.batch_axis is None, HERE


def test_graphs_are_built_and_every_function_is_put_back():
    """Also where the learner's own code raises."""

    def broken(features, labels, mode, params):
        raise RuntimeError("mine")

    owners = [(owner, name, getattr(owner, name)) for owner, name in NAMES]
    for each in trace(make(dense), Inputs(DATA), cores=8):
        assert each.error is None and each.spec is not None, f"{each.mode}, {each.error}, {HERE}"
    [found, *_] = dry_run(make(broken), DATA, stages=["trace"], progress=False).findings
    assert found.rule == "TPU199" and "in broken" in found.where and "mine" in found.why
    for owner, name, value in owners:
        assert getattr(owner, name) is value, f"{name} was not put back, {HERE}"


def test_variables_come_back_in_their_places():
    program = lower_estimator(make(dense), DATA, cores=8)
    aliased = {each.name: program.inputs[each.input].shape for each in program.outputs[1:]}
    assert len(aliased) == 15, f"XLA no longer says which result is which variable's, {HERE}"
    assert aliased["dense/kernel"] == (6, 16), HERE
    assert all_reduces(program) == 4, f"CrossShardOptimizer makes other ops, {HERE}"


def test_loops_and_the_callers_switches():
    switches = (v1.resource_variables_enabled(), v1.control_flow_v2_enabled())
    for name in ("control_flow", "cross_replica_norm"):
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
    assert compiled.summary.products and compiled.summary.collectives, where
    assert compiled.step.memory["arguments"].value and compiled.step.cost["flops"].value, where
    result = run_program(program, one_core=lower_estimator(make(dense), DATA, cores=1), steps=2)
    assert result.findings == [], where
