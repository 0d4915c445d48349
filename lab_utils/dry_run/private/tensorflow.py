"""Every private name of TensorFlow itself that the dry run uses, behind typed functions.

Those of tensorflow-estimator are in tpu_estimator.py. tests/test_dry_run_private.py, run on each supported
TensorFlow, fails where one has moved.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest import mock

# First, since this sets how TensorFlow is loaded, and how much it logs.
from lab_utils.estimator import tf, v1

# isort: split
from tensorflow.python.autograph.impl import api as autograph_api
from tensorflow.python.autograph.pyct import cache as autograph_cache
from tensorflow.python.distribute import cluster_resolver, distribute_lib
from tensorflow.python.eager import context as eager_context
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.ops import control_flow_util, resource_variables_toggle
from tensorflow.python.tpu import tpu_replication
from tensorflow.python.tpu.tpu_function import tpu_shard_context
from tensorflow.python.training import monitored_session, session_manager
from tensorflow.python.util import nest

# Attributes that TPUReplicateContext puts on each op of a replica's program.
REPLICATE_ATTRIBUTE = "_tpu_replicate"
OUTSIDE_COMPILATION_ATTRIBUTE = "_xla_outside_compilation"


# Whose TPUClusterResolver is that of tf.distribute.cluster_resolver: programs import it from there, too.
RESOLVERS = (cluster_resolver, cluster_resolver.tpu_cluster_resolver)


class GraphBuilt(Exception):
    """Raised where TPUEstimator would begin to run its graph: it is whole."""


@contextmanager
def no_session() -> Iterator[None]:
    """Context manager: opening a monitored session, or restoring a checkpoint, raises GraphBuilt.

    Hooks that reset TPU workers before they are preempted are left out: their module left
    TensorFlow in 2.16, and there are no workers. Hooks that begin write no event files, which would stand in
    the model_dir of the program.
    """

    def stop(*args: object, **kwargs: object) -> None:
        raise GraphBuilt

    with (
        mock.patch.dict(os.environ, TF_TPU_GRACEFUL_SHUTDOWN_MODE=""),
        mock.patch.object(monitored_session.ChiefSessionCreator, "create_session", stop),
        mock.patch.object(monitored_session.WorkerSessionCreator, "create_session", stop),
        mock.patch.object(session_manager.SessionManager, "prepare_session", stop),
        mock.patch.object(v1.train.Saver, "restore", stop),
        mock.patch.object(v1.summary.FileWriterCache, "get", lambda logdir: mock.MagicMock()),
    ):
        yield


@contextmanager
def silent_log() -> Iterator[None]:
    """Context manager: TensorFlow's log and warnings are not shown."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for name in ("tensorflow", "absl"):
            logger = logging.getLogger(name)
            nowhere = {"handlers": [logging.NullHandler()], "propagate": False}
            stack.enter_context(mock.patch.multiple(logger, **nowhere))
        yield


@contextmanager
def core(cores: int) -> Iterator[None]:
    """Context manager: ops join the program of one of `cores` cores, as in tpu.replicate.

    The default graph must be a plain graph. Variables are resource variables and control flow is
    version 2 there, whatever the caller's program has chosen.
    """
    context = tpu_replication.TPUReplicateContext("dry_run", cores, tf.no_op("pivot"))
    with (
        mock.patch.object(resource_variables_toggle, "_DEFAULT_USE_RESOURCE", True),
        mock.patch.object(control_flow_util, "ENABLE_CONTROL_FLOW_V2", True),
        tpu_shard_context(cores),
    ):
        context.Enter()
        try:
            yield
        finally:
            context.Exit()


@contextmanager
def replicas(cores: int) -> Iterator[None]:
    """Context manager: a function being traced is one of `cores` replicas.

    Sums over the cores that it asks of tf.distribute's replica context, or of
    tf.compat.v1.tpu.cross_replica_sum, become CrossReplicaSum ops. Keras divides its own losses by the number
    of replicas, and tf.nn.compute_average_loss does.
    """

    def all_reduce(self, reduce_op, value, options=None):
        mean = tf.distribute.ReduceOp.MEAN.name in str(reduce_op).upper()
        return tf.nest.map_structure(lambda tensor: total(tensor, cores if mean else 1), value)

    def total(tensor, divisor):  # sparse gradients become dense
        result = v1.tpu.cross_replica_sum(tf.convert_to_tensor(tensor))
        return result / tf.cast(divisor, result.dtype) if divisor > 1 else result

    context = distribute_lib.ReplicaContextBase
    with (
        tpu_shard_context(cores),
        mock.patch.object(distribute_lib.ReplicaContext, "all_reduce", all_reduce),
        mock.patch.object(context, "num_replicas_in_sync", property(lambda self: cores)),
        strategy(cores),
    ):
        yield


@contextmanager
def strategy(cores: int) -> Iterator[None]:
    """Context manager: tf.distribute's strategy says that it has `cores` replicas, as a TPUStrategy would."""
    number = property(lambda self: cores)
    with mock.patch.object(distribute_lib.StrategyBase, "num_replicas_in_sync", number):
        yield


def model_of_version_1() -> type:
    """The class of Keras models under version 1 behaviour, whose fit runs sessions and no train_step."""
    classes = tf.keras.Model.__subclasses__()
    return next(model for model in classes if model.__module__.endswith(".training_v1"))


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
    # Of functions whose Python side is still alive.
    bodies = [getattr(function, "graph", None) for function in graph._functions.values()]
    for scope in (graph, *filter(None, bodies)):
        with suppress(KeyError, ValueError):
            return scope.get_operation_by_name(name)
    return None


def leaf_paths(structure: Any) -> list[str]:
    """The path of each leaf of a nest, in tf.nest's order: "image/0"; "" where the nest is a leaf itself."""
    return [path for path, _ in nest.flatten_with_joined_string_paths(structure)]


def forget_conversions() -> None:
    """Has AutoGraph convert each function once more.

    It knows a function by its code, and code is equal where only the file or the cell differs: a finding
    would name the file that the function stood in before.
    """
    autograph_api._TRANSPILER._cache = autograph_cache.CodeObjectCache()


def inputs_of_dataset(dataset: Any) -> list[Any]:
    """The datasets that a dataset takes its elements from."""
    return list(dataset._inputs())


def is_empty_list(tensor: Any) -> bool:
    """Whether a tensor is a list of no strings."""
    return tensor.dtype == tf.string and tensor.shape.rank == 1 and tensor.shape[0] == 0


def slices_nothing(dataset: Any) -> bool:
    """Whether a dataset has the elements of an empty list of strings, or reads the files of one."""
    names = getattr(dataset, "_filenames", None)
    reads_nothing = isinstance(names, tf.data.Dataset) and slices_nothing(names)
    return reads_nothing or any(map(is_empty_list, getattr(dataset, "_tensors", ())))


def strings_of_dataset(dataset: Any) -> list[str]:
    """The strings among the tensors whose slices are a dataset's elements."""
    tensors = (each for each in getattr(dataset, "_tensors", ()) if each.dtype == tf.string)
    texts = (text for tensor in tensors for text in tf.reshape(tensor, [-1]).numpy())
    return [text.decode(errors="replace") for text in texts]


def files_of_dataset(dataset: Any) -> list[str]:
    """The names of the files that a dataset reads itself, as far as they are constants."""
    names = getattr(dataset, "_filenames", None)
    if isinstance(names, tf.data.Dataset):
        return strings_of_dataset(names)
    if not tf.is_tensor(names) or not hasattr(names, "numpy"):
        return []
    return [text.decode(errors="replace") for text in tf.reshape(names, [-1]).numpy()]


def is_in_tf_function() -> bool:
    """Whether the caller runs within a tf.function, also where functions are run eagerly."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__call__" and code.co_filename == polymorphic_function.__file__:
            return True
        frame = frame.f_back
    return not tf.executing_eagerly()


def batches_of_dataset(dataset: Any) -> tuple[int | None, bool]:
    """The size of the batches that a dataset makes, and whether it drops a shorter last one.

    (None, False) for a dataset of another kind, or where they are not constant.
    """
    size, drops = (getattr(dataset, name, None) for name in ("_batch_size", "_drop_remainder"))
    if size is None or drops is None:
        return None, False
    size, drops = map(tf.get_static_value, (size, drops))
    return None if size is None else int(size), bool(drops)


def functions_of_dataset(dataset: Any) -> list[Any]:
    """The graphs of the functions that a dataset calls by itself: to map, to filter, to generate."""
    functions = (getattr(value, "function", None) for value in vars(dataset).values())
    return [function.graph for function in functions if hasattr(function, "graph")]


def function_of_dataset(dataset: Any) -> Any | None:
    """The graph of the function that a dataset maps over its elements; None where there is none."""
    function = getattr(dataset, "_map_func", None)
    return function.function.graph if hasattr(function, "function") else None
