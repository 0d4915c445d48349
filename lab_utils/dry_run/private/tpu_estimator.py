"""Every private name of tensorflow-estimator that the dry run uses, behind typed functions.

Those of TensorFlow itself are in tensorflow.py. tests/test_dry_run_private.py, run on each supported
TensorFlow, fails where one has moved.
"""

import contextlib
import copy
import inspect
import io
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.common import scratch
from lab_utils.common.source import NOWHERE, place_of_stack
from lab_utils.dry_run.private.tensorflow import GraphBuilt, silent_log
from lab_utils.estimator import tf, v1

# isort: split
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.tpu import topology, tpu_system_metadata
from tensorflow_estimator.python.estimator.tpu import tpu_context, tpu_estimator

NO_HOST = "dry-run.invalid:1"  # stands for the address of a TPU: no such host exists
CORES_PER_HOST = 8  # of v2 and v3, the TPUs that TPUEstimator was made for


@dataclass
class Settings:
    """The arguments that a TPUEstimator was constructed with; `model_fn` is the user's own function."""

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
        """The global batch of "train", "eval" or "predict"."""
        return getattr(self, f"{mode}_batch_size")


def settings(estimator: Any) -> Settings:
    """Reads a TPUEstimator's constructor arguments back from it. It is left unchanged.

    Raises:
        TypeError: `estimator` is not a TPUEstimator.
    """
    if not isinstance(estimator, v1.estimator.tpu.TPUEstimator):
        raise TypeError(f"a TPUEstimator is needed, but this is a {type(estimator).__name__}")
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


def address(estimator: Any) -> str:
    """The grpc:// address at which a TPUEstimator looks for its TPU; "" where its config names none."""
    master = str(settings(estimator).config.master or "")
    return master if master.startswith("grpc://") and NO_HOST not in master else ""


def take_batch_sizes(estimator: Any, other: Any) -> None:
    """Gives a TPUEstimator the batch sizes for evaluation and prediction that only the other one has."""
    for name in ("_eval_batch_size", "_predict_batch_size"):
        if getattr(estimator, "_ctx", None) and getattr(estimator._ctx, name) is None:
            setattr(estimator._ctx, name, getattr(other._ctx, name))


@dataclass
class Rehearsal:
    """A temporary model_dir."""

    model_dir: str

    def twin(self, estimator: Any, *, any_cores: bool = False, **changes: Any) -> Any:
        """A TPUEstimator(use_tpu=True) with the settings of `estimator`, writing to `model_dir`.

        With `any_cores` it may be for another number of cores than its num_shards says. `changes`
        replace arguments of its constructor. Warm starting is left out: it would read a checkpoint,
        and changes no shape.
        """
        original = settings(estimator)
        others = {
            "config": self._config(original.config, any_cores),
            "params": copy.deepcopy(original.params),
            "use_tpu": True,
            "eval_on_tpu": original.eval_on_tpu or not original.use_tpu,
            "warm_start_from": None,
        }
        return v1.estimator.tpu.TPUEstimator(**vars(original) | others | changes)

    def _config(self, config: Any, any_cores: bool) -> Any:
        """A copy of a TPU RunConfig for a cluster that is never contacted."""
        config = copy.copy(config)
        config._cluster = None
        config._master = config._evaluation_master = f"grpc://{NO_HOST}"
        config._session_config = copy.deepcopy(config._session_config)
        if config._session_config is not None:
            config._session_config.ClearField("cluster_def")
        config = config.replace(model_dir=self.model_dir)
        if any_cores:
            config = config.replace(tpu_config=config.tpu_config._replace(num_shards=None))
        return config


@contextmanager
def rehearsing(cores: int, aloud: bool = False) -> Iterator[Rehearsal]:
    """Context manager: TPUEstimators ask about their TPU, and are told that it has `cores` cores.

    The model_dir is removed on leaving, and TensorFlow's log is not shown. What the learner's own
    functions print is shown only where it is `aloud`: they are called many times.
    """
    with (
        contextlib.nullcontext() if aloud else contextlib.redirect_stdout(io.StringIO()),
        scratch.folder() as model_dir,
        silent_log(),
        tpu_system(cores),
    ):
        yield Rehearsal(model_dir)


@contextmanager
def tpu_system(cores: int) -> Iterator[None]:
    """Context manager: the question how many cores the TPU has is answered with `cores`."""
    hosts = max(1, cores // CORES_PER_HOST)
    metadata = tpu_system_metadata.TPUSystemMetadata(
        num_cores=cores,
        num_hosts=hosts,
        num_of_cores_per_host=cores // hosts,
        topology=_topology(hosts, cores // hosts),
        devices=[],
    )
    with mock.patch.object(
        tpu_context.tpu_system_metadata_lib,
        "_query_tpu_system_metadata",
        lambda *args, **kwargs: metadata,
    ):
        yield


def _topology(hosts: int, cores: int) -> topology.Topology:
    """`hosts` in a row, each with `cores` cores, two to a chip (as of v2 and v3) where they are even."""
    on_chip = 1 if cores % 2 else 2
    chips = cores // on_chip
    wide = 2 if chips % 2 == 0 else 1
    rows = chips // wide
    host, row, column, core = np.indices((hosts, rows, wide, on_chip), np.int32)
    coordinates = np.stack([column, host * rows + row, 0 * core, core], axis=-1)
    return topology.Topology(
        mesh_shape=[wide, hosts * rows, 1, on_chip],
        device_coordinates=coordinates.reshape(hosts, cores, 4),
    )


def replicas(estimator: Any) -> int:
    """Copies of the model on the TPU system; a copy may take several cores (num_cores_per_replica)."""
    with estimator._ctx.with_mode("train") as context:
        return context.num_replicas


def refusal(estimator: Any, mode: str, arguments: Mapping[str, Any]) -> Exception | None:
    """What a TPUEstimator raises at once where train or evaluate is called so; None where it goes on.

    `estimator` is a `Rehearsal.twin`; it is stopped where it would build its graph. `arguments` are those but
    input_fn.
    """

    def stop(self: Any, *arguments: Any) -> None:
        raise GraphBuilt

    base = v1.estimator.Estimator
    with (
        mock.patch.object(base, "_train_model", stop),
        mock.patch.object(base, "_evaluate_build_graph", stop),
    ):
        try:
            method = estimator.train if mode == "train" else estimator.evaluate
            method(lambda params: None, **arguments)
        except GraphBuilt:
            return None
        except Exception as error:
            return error
    return None


def call_model_fn(estimator: Any, mode: str, features: Any, labels: Any) -> Any:
    """Calls the user's model_fn as TPUEstimator does within a replica's program; returns the spec.

    `estimator` is a `Rehearsal.twin`; call it under
    `tpu_system` and `core`. `mode` is "train", "eval" or "infer".
    """
    with estimator._ctx.with_mode(mode) as context:
        wrapper = tpu_estimator._ModelFnWrapper(
            settings(estimator).model_fn, estimator._config, estimator._params, context
        )
        with tpu_context._TPUEstimatorReplicaContext(gen_xla_ops.xla_replica_id()):
            return wrapper._call_model_fn(features, labels)


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
            is_split = context.is_input_slice_broadcast_to_all_cores()
            return Sharding("per host, split" if is_split else "broadcast", 1, cores, batch)
        hosts, replicas = context.num_hosts, context.num_of_replicas_per_host
        one_each = context.is_input_per_host_with_iterators()
        kind = "per host, one batch a core" if one_each else "per host, split"
        return Sharding(kind, hosts, replicas, batch)


def call_input_fn(estimator: Any, input_fn: Callable, mode: str, invocation: int) -> Any:
    """Calls input_fn as TPUEstimator does for its `invocation`-th call; returns what it returns."""
    call = estimator._call_input_fn(input_fn, mode)
    with estimator._ctx.with_mode(mode) as context:
        user_context = tpu_context.TPUContext(
            internal_ctx=context,
            input_device="/device:CPU:0",
            invocation_index=invocation,
            host_id=invocation if context.num_hosts > 1 else 0,
        )
    return call(user_context)


@contextmanager
def spying(trace: Any, drop_labels: bool = False) -> Iterator[None]:
    """Context manager: a `Trace` gets the graphs that TPUEstimator builds, and its last call of model_fn.

    With `drop_labels`, datasets of (features, labels) that input_fn returns lose their labels.
    """
    calling = [False]
    original_model = tpu_estimator._ModelFnWrapper._call_model_fn
    original_input = tpu_estimator.TPUEstimator._call_input_fn

    def call_model_fn(self, features, labels, is_export_mode=False):
        trace.core_graph, trace.features, trace.labels = v1.get_default_graph(), features, labels
        trace.spec, trace.parts, trace.made_at = None, frozenset(), NOWHERE
        calling[0] = True
        try:
            trace.spec = original_model(self, features, labels, is_export_mode)
        finally:
            calling[0] = False
        return trace.spec

    def call_input_fn(self, *args, **kwargs):
        trace.graph = v1.get_default_graph()
        call = original_input(self, *args, **kwargs)

        def noted(context):
            data = _without_labels(call(context)) if drop_labels else call(context)
            trace.given = getattr(data, "element_spec", data)
            return data

        return noted

    def noting(kind: type) -> Any:
        original = kind.__new__

        def new(cls, *args, **kwargs):
            if calling[0]:
                names = [*inspect.signature(original).parameters][1:]
                arguments = dict(zip(names, args, strict=False)) | kwargs
                trace.parts = frozenset(k for k, value in arguments.items() if value is not None)
                trace.made_at = place_of_stack(traceback.extract_stack())
            return original(cls, *args, **kwargs)

        return mock.patch.object(kind, "__new__", new)

    with (
        mock.patch.object(tpu_estimator._ModelFnWrapper, "_call_model_fn", call_model_fn),
        mock.patch.object(tpu_estimator.TPUEstimator, "_call_input_fn", call_input_fn),
        noting(tpu_estimator.TPUEstimatorSpec),
        noting(v1.estimator.EstimatorSpec),
    ):
        yield


def _without_labels(data: Any) -> Any:
    if isinstance(data, tf.data.Dataset) and isinstance(data.element_spec, tuple):
        return data.map(lambda features, *labels: features)
    return data
