"""Every private name of TensorFlow and tensorflow-estimator that the dry run uses, behind typed functions.

Nothing else in lab_utils.dry_run reaches into them. `check()` says in a sentence which name moved;
tests/test_dry_run_private.py runs it on each supported TensorFlow.
"""

import inspect
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from lab_utils import estimator as _estimator  # noqa: F401  (makes tf.compat.v1.estimator)

# isort: split
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.eager import context as eager_context
from tensorflow.python.tpu import tpu_function, tpu_replication, tpu_system_metadata
from tensorflow.python.training import monitored_session, session_manager
from tensorflow_estimator.python.estimator.tpu import tpu_context, tpu_estimator

v1 = tf.compat.v1

# Attributes that TPUReplicateContext puts on each op of a core's program.
REPLICATE_ATTRIBUTE = "_tpu_replicate"
OUTSIDE_COMPILATION_ATTRIBUTE = "_xla_outside_compilation"

CORES_PER_HOST = 8  # of v2 and v3, the TPUs that TPUEstimator was made for


class GraphBuilt(Exception):
    """Raised where TPUEstimator would begin to run its graph: it is whole."""


@dataclass
class Settings:
    """What a TPUEstimator was constructed with; `model_fn` is the user's own function."""

    model_fn: Callable
    params: dict[str, Any]
    config: Any
    train_batch_size: int | None
    eval_batch_size: int | None
    predict_batch_size: int | None
    batch_axis: Any
    use_tpu: bool
    eval_on_tpu: bool
    export_to_tpu: bool
    export_to_cpu: bool
    embedding_config_spec: Any
    warm_start_from: Any

    def batch_size(self, mode: str) -> int | None:
        """The global batch of "train", "eval" or "infer"/"predict"."""
        return getattr(self, ("predict" if mode == "infer" else mode) + "_batch_size")


@dataclass
class Call:
    """One call of model_fn within a core's program: what it was given, and the spec it returned."""

    graph: Any
    features: Any
    labels: Any
    spec: Any = None


@dataclass
class Spy:
    """What was seen while TPUEstimator built a graph.

    `graph` is the whole graph; `configured` says that the settings passed TPUEstimator's checks,
    so that input_fn came next.
    """

    calls: list[Call] = field(default_factory=list)
    graph: tf.Graph | None = None
    configured: bool = False


def settings(estimator: Any) -> Settings:
    """Reads a TPUEstimator's constructor arguments back from it. It is left as it is.

    Raises:
        TypeError: `estimator` is no TPUEstimator.
    """
    if not isinstance(estimator, v1.estimator.tpu.TPUEstimator):
        raise TypeError(f"a TPUEstimator is needed, and this is a {type(estimator).__name__}")
    context = estimator._ctx
    # TPUEstimator keeps the user's model_fn only in the closure of the one it wraps around it.
    closure = inspect.getclosurevars(estimator._model_fn).nonlocals
    return Settings(
        model_fn=closure["model_fn"],
        params=estimator.params,
        config=estimator._config,
        train_batch_size=context._train_batch_size,
        eval_batch_size=context._eval_batch_size,
        predict_batch_size=context._predict_batch_size,
        batch_axis=closure["batch_axis"],
        use_tpu=context._use_tpu,
        eval_on_tpu=context._eval_on_tpu,
        export_to_tpu=estimator._export_to_tpu,
        export_to_cpu=estimator._export_to_cpu,
        embedding_config_spec=context._embedding_config_spec,
        warm_start_from=estimator._warm_start_settings,
    )


def config_for_dry_run(config: Any, model_dir: str) -> Any:
    """A copy of a TPU RunConfig for a cluster that is never contacted, writing to `model_dir`."""
    config = _shallow_copy(config)
    config._cluster = None
    config._master = config._evaluation_master = "grpc://dry-run.invalid:1"
    if config._session_config is not None:
        session_config = v1.ConfigProto()
        session_config.CopyFrom(config._session_config)
        session_config.ClearField("cluster_def")
        config._session_config = session_config
    return config.replace(model_dir=model_dir)


def _shallow_copy(config: Any) -> Any:
    copied = object.__new__(type(config))
    copied.__dict__.update(config.__dict__)
    return copied


@contextmanager
def tpu_system(cores: int) -> Iterator[None]:
    """Within it, the question how many cores the TPU has is answered with `cores`."""
    hosts = max(1, cores // CORES_PER_HOST)
    metadata = tpu_system_metadata.TPUSystemMetadata(
        num_cores=cores,
        num_hosts=hosts,
        num_of_cores_per_host=cores // hosts,
        topology=None,
        devices=[],
    )
    with mock.patch.object(
        tpu_context.tpu_system_metadata_lib,
        "_query_tpu_system_metadata",
        lambda *args, **kwargs: metadata,
    ):
        yield


@contextmanager
def no_session() -> Iterator[None]:
    """Within it, opening a monitored session, or restoring a checkpoint, raises GraphBuilt.

    Hooks that reset TPU workers before they are preempted are left out: their module left
    TensorFlow in 2.16, and there are no workers.
    """

    def stop(*args: object, **kwargs: object) -> None:
        raise GraphBuilt

    with (
        mock.patch.dict(os.environ, TF_TPU_GRACEFUL_SHUTDOWN_MODE=""),
        mock.patch.object(monitored_session.ChiefSessionCreator, "create_session", stop),
        mock.patch.object(monitored_session.WorkerSessionCreator, "create_session", stop),
        mock.patch.object(session_manager.SessionManager, "prepare_session", stop),
        mock.patch.object(v1.train.Saver, "restore", stop),
    ):
        yield


@contextmanager
def spying(unlabelled: bool = False) -> Iterator[Spy]:
    """Within it, each call that TPUEstimator makes of a model_fn is noted.

    With `unlabelled`, datasets of (features, labels) that input_fn returns lose their labels.
    """
    spy = Spy()
    original_model = tpu_estimator._ModelFnWrapper._call_model_fn
    original_input = tpu_estimator.TPUEstimator._call_input_fn

    def call_model_fn(self, features, labels, is_export_mode=False):
        call = Call(v1.get_default_graph(), features, labels)
        spy.calls.append(call)
        call.spec = original_model(self, features, labels, is_export_mode)
        return call.spec

    def call_input_fn(self, *args, **kwargs):
        spy.graph = v1.get_default_graph()
        deferred = original_input(self, *args, **kwargs)
        spy.configured = True
        return (lambda context: _without_labels(deferred(context))) if unlabelled else deferred

    with (
        mock.patch.object(tpu_estimator._ModelFnWrapper, "_call_model_fn", call_model_fn),
        mock.patch.object(tpu_estimator.TPUEstimator, "_call_input_fn", call_input_fn),
    ):
        yield spy


def _without_labels(data: Any) -> Any:
    if isinstance(data, tf.data.Dataset) and isinstance(data.element_spec, tuple):
        return data.map(lambda features, *labels: features)
    return data


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def caught_log() -> Iterator[list[str]]:
    """Within it, TensorFlow's log goes into the list (WARNING and above) and not to the screen."""
    collector = _Collector()
    loggers = [logging.getLogger(name) for name in ("tensorflow", "absl")]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers[:] = [collector]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield collector.lines
    finally:
        for logger, handlers, level, propagate in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


def call_model_fn(estimator: Any, mode: str, features: Any, labels: Any) -> Any:
    """Calls the user's model_fn as TPUEstimator does within a core's program; returns the spec.

    `estimator` was made for a dry run (`config_for_dry_run`, use_tpu=True); call it under
    `tpu_system` and `core`. `mode` is "train", "eval" or "infer".
    """
    with estimator._ctx.with_mode(mode) as context:
        wrapper = tpu_estimator._ModelFnWrapper(
            settings(estimator).model_fn, estimator._config, estimator._params, context
        )
        with tpu_context._TPUEstimatorReplicaContext(gen_xla_ops.xla_replica_id()):
            return wrapper._call_model_fn(features, labels)


def scaffold_does_something(scaffold: Any) -> bool:
    """Whether a Scaffold was given work; EstimatorSpec makes an empty one where it is given none."""
    work = ("_init_fn", "_init_op", "_local_init_op", "_saver", "_ready_op", "_init_feed_dict")
    return any(getattr(scaffold, name) is not None for name in work)


def create_global_step(estimator: Any) -> None:
    """Makes the global step in the default graph as TPUEstimator makes it."""
    estimator._create_global_step(v1.get_default_graph())


@dataclass(frozen=True)
class Sharding:
    """How input_fn's batches reach the cores: `invocations` of it, each feeding `replicas` cores."""

    kind: str  # "per core", "per host, split", "per host, one batch a core", "broadcast"
    invocations: int
    replicas: int
    batch_size: int  # params['batch_size'] that input_fn sees


def sharding(estimator: Any, mode: str) -> Sharding:
    """How the estimator shards the batches of `mode` ("train", "eval", "infer"), under `tpu_system`."""
    with estimator._ctx.with_mode(mode) as context:
        batch, cores = context.batch_size_for_input_fn, context.num_replicas
        if context.is_input_sharded_per_core():
            return Sharding("per core", cores, 1, batch)
        if context.is_input_broadcast_with_iterators():
            sliced = context.is_input_slice_broadcast_to_all_cores()
            return Sharding("per host, split" if sliced else "broadcast", 1, cores, batch)
        hosts, each = context.num_hosts, context.num_of_replicas_per_host
        one_each = context.is_input_per_host_with_iterators()
        return Sharding(
            "per host, one batch a core" if one_each else "per host, split", hosts, each, batch
        )


def call_input_fn(estimator: Any, input_fn: Callable, mode: str, invocation: int) -> Any:
    """Calls input_fn as TPUEstimator does for its `invocation`-th call; returns what it returns."""
    deferred = estimator._call_input_fn(input_fn, mode)
    with estimator._ctx.with_mode(mode) as context:
        user_context = tpu_context.TPUContext(
            internal_ctx=context,
            input_device="/device:CPU:0",
            invocation_index=invocation,
            host_id=invocation if context.num_hosts > 1 else 0,
        )
    return deferred(user_context)


@contextmanager
def core(cores: int) -> Iterator[None]:
    """Within it, ops join the program of one of `cores` cores, as in tpu.replicate.

    The default graph must be a plain graph. Variables are resource variables and control flow is
    version 2 there, whatever the caller's program has chosen.
    """
    resource_variables, control_flow = v1.resource_variables_enabled(), v1.control_flow_v2_enabled()
    v1.enable_resource_variables()
    v1.enable_control_flow_v2()
    pivot = tf.no_op("pivot")
    context = tpu_replication.TPUReplicateContext("dry_run", cores, pivot)
    scope = v1.get_variable_scope()
    use_resource = scope.use_resource
    scope.set_use_resource(True)
    try:
        with tpu_function.tpu_shard_context(cores):
            context.Enter()
            try:
                yield
            finally:
                context.Exit()
    finally:
        scope.set_use_resource(use_resource)
        if not control_flow:
            v1.disable_control_flow_v2()
        if not resource_variables:
            v1.disable_resource_variables()


@contextmanager
def replicas(cores: int) -> Iterator[None]:
    """Within it, a function being traced is one of `cores` replicas.

    Sums over the cores that it asks of tf.distribute's replica context, or of
    tf.compat.v1.tpu.cross_replica_sum, become CrossReplicaSum ops.
    """

    def all_reduce(self, reduce_op, value, options=None):
        mean = tf.distribute.ReduceOp.MEAN.name in str(reduce_op).upper()
        return tf.nest.map_structure(lambda each: sum_over_cores(each, cores if mean else 1), value)

    context = distribute_lib.ReplicaContextBase
    with (
        tpu_function.tpu_shard_context(cores),
        mock.patch.object(distribute_lib.ReplicaContext, "all_reduce", all_reduce),
        mock.patch.object(context, "num_replicas_in_sync", property(lambda self: cores)),
    ):
        yield


def sum_over_cores(tensor: Any, divisor: int = 1) -> tf.Tensor:
    """The sum of a tensor over the cores, divided by `divisor`; sparse gradients become dense."""
    total = v1.tpu.cross_replica_sum(tf.convert_to_tensor(tensor))
    return total / tf.cast(divisor, total.dtype) if divisor > 1 else total


@contextmanager
def averaged_gradients(optimizer: Any, cores: int) -> Iterator[None]:
    """Within it, a Keras optimizer (of Keras 2 or 3) applies gradients averaged over the cores.

    So they come out under TPUStrategy, where Keras divides the loss by the number of replicas and
    the optimizer sums the gradients. The optimizer's own sum is left out here.
    """
    kind = type(optimizer)
    name = "apply" if hasattr(kind, "apply") else "apply_gradients"
    original = getattr(kind, name)

    def averaged(gradient: Any) -> Any:
        return None if gradient is None else sum_over_cores(gradient, cores)

    def no_sum(self, reduce_op, value, options=None):
        return value

    def apply(self, grads, *args, **kwargs):
        grads = [averaged(each) for each in grads]
        with mock.patch.object(distribute_lib.ReplicaContext, "all_reduce", no_sum):
            return original(self, grads, *args, **kwargs)

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs = [(averaged(gradient), variable) for gradient, variable in grads_and_vars]
        with mock.patch.object(distribute_lib.ReplicaContext, "all_reduce", no_sum):
            return original(self, pairs, *args, **kwargs)

    with mock.patch.object(kind, name, apply if name == "apply" else apply_gradients):
        yield


def captures(concrete: Any) -> list[tuple[Any, Any]]:
    """What a traced function captures: pairs of the tensor outside and its placeholder inside."""
    return list(concrete.graph.captures)


def variables_of(concrete: Any) -> list[tf.Variable]:
    """The variables that a traced function uses."""
    return list(concrete.graph.variables)


def side_effects(concrete: Any) -> list[tf.Operation]:
    """The ops of a traced function that must run though no result needs them."""
    return list(concrete.graph.control_outputs)


def eager() -> Any:
    """A context manager: eager execution, also where the caller's program has disabled it."""
    return eager_context.eager_mode()


def graph_of_function(name: str, graph: tf.Graph) -> Any:
    """The body (a FuncGraph) of the function `name` that `graph` or one around it holds, or None."""
    while graph is not None:
        if graph._is_function(name):
            return getattr(graph._get_function(name), "graph", None)
        graph = getattr(graph, "outer_graph", None)
    return None


def find_operation(graph: Any, name: str) -> tf.Operation | None:
    """The op `name` of a graph or of a function that the graph holds; None if there is none."""
    for scope in (graph, *_function_graphs(graph)):
        try:
            return scope.get_operation_by_name(name)
        except (KeyError, ValueError):
            continue
    return None


def _function_graphs(graph: Any) -> Iterator[Any]:
    """The bodies of the functions that a graph holds, of those whose Python side is still alive."""
    for function in graph._functions.values():
        body = getattr(function, "graph", None)
        if body is not None:
            yield body


def hlo_module(serialized: bytes) -> Any:
    """A serialized HloModuleProto (message of xla/service/hlo.proto), parsed.

    Names and ids that count the functions of this process are taken out, so that the same step
    always gives the same bytes: serialise it with `deterministic=True`.
    """
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    for computation in module.computations:
        if computation.name == module.entry_computation_name:
            computation.name = "step"
    module.name = module.entry_computation_name = "step"
    module.id = 0
    return module


_NAMES = (
    (tpu_context.tpu_system_metadata_lib, "_query_tpu_system_metadata"),
    (monitored_session.ChiefSessionCreator, "create_session"),
    (monitored_session.WorkerSessionCreator, "create_session"),
    (session_manager.SessionManager, "prepare_session"),
    (tpu_estimator._ModelFnWrapper, "_call_model_fn"),
    (tpu_estimator.TPUEstimator, "_call_input_fn"),
    (tpu_context, "_TPUEstimatorReplicaContext"),
    (tpu_replication, "TPUReplicateContext"),
    (tpu_function, "tpu_shard_context"),
    (gen_xla_ops, "xla_all_reduce"),
    (gen_xla_ops, "xla_replica_id"),
    (hlo_pb2, "HloModuleProto"),
    (eager_context, "eager_mode"),
    (distribute_lib.ReplicaContext, "all_reduce"),
    (distribute_lib.ReplicaContextBase, "num_replicas_in_sync"),
    (tf.Graph, "_get_function"),
    (tf.Graph, "_is_function"),
)


def check() -> list[str]:
    """A sentence for each private name that this TensorFlow does not have where it is looked for."""
    return [
        f"TensorFlow {tf.__version__} has no {getattr(owner, '__name__', owner)}.{name}: "
        "see lab_utils/dry_run/_tensorflow.py"
        for owner, name in _NAMES
        if not hasattr(owner, name)
    ]
