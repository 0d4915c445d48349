"""What stands in for a program's TPUStrategy: its run trains nothing. Imported once it has TensorFlow."""

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab_utils.common import source
from lab_utils.common.source import Place
from lab_utils.dry_run.frontends import datasets
from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.frontends.scope import Scope
from lab_utils.dry_run.frontends.stand_ins import StandIn
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf, v1


@dataclass
class Replicas:
    """What the strategies of a program share.

    Attributes:
        cores: the replicas of each.
        note: is called by `run`.
        scope: what the program makes in their scopes.
        stack: TensorFlow has so many replicas until it is left.
        distributed: the datasets that the program has shared out over the replicas.
        demonstrated: the lines of functions that it has run on something else.
    """

    cores: int
    note: Callable[..., None]
    scope: Scope
    stack: contextlib.ExitStack
    distributed: list[tf.data.Dataset] = field(default_factory=list)
    demonstrated: set[Place] = field(default_factory=set)

    def shown(self, python: Callable, args: tuple, kwargs: dict) -> Any:
        """What a function gives that a program shows once, before it trains; a loop runs its step again."""
        where = source.place(python)
        if where in self.demonstrated and not self.distributed:
            raise CannotJudge(
                f"its training loop calls strategy.run at {caller().position} with tensors of no dataset "
                "that the strategy distributes. Each core gets all of a plain tensor, and all compute the "
                "same: share batches out with strategy.experimental_distribute_dataset(dataset)"
            )
        if where in self.demonstrated:
            raise CannotJudge(
                f"its training loop calls strategy.run at {caller().position}, and passes more "
                "than a batch of a dataset that the strategy distributes: call dry_run(step, "
                "(features, labels)) instead"
            )
        self.demonstrated.add(where)
        return python(*args, **kwargs)


def stand_ins(replicas: Replicas) -> Iterator[StandIn]:
    """What gives the program such replicas in place of its TPUStrategy, whose run trains nothing."""
    strategy = type("TPUStrategy", (_Strategy,), {"replicas": replicas})
    for root in (tf, tf.compat.v2, v1):
        for owner in (root.distribute, root.distribute.experimental):
            yield owner, "TPUStrategy", strategy


def keras_2() -> tuple[Any, type]:
    """tf.keras, and the class of its models under version 1 behaviour."""
    return tf.keras, _tensorflow.model_of_version_1()


class _Strategy:
    """As many replicas as a TPU has cores; what is built in its scope is built here."""

    replicas: Replicas

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._here, self.replicas.scope.has_strategy = tf.distribute.get_strategy(), True
        stack = self.replicas.stack
        stack.enter_context(_tensorflow.strategy(self.replicas.cores))
        # AutoGraph would hand `run` a rewritten step, of no line of the program.
        stack.callback(tf.config.run_functions_eagerly, tf.config.functions_run_eagerly())
        warnings.filterwarnings("ignore", ".*does not apply to tf.data functions")
        tf.config.run_functions_eagerly(True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here, name)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """As TPUStrategy has it."""
        with self._here.scope(), self.replicas.scope.entered():
            yield

    def __deepcopy__(self, memo: dict) -> "_Strategy":  # an Estimator copies its config
        return self

    def run(self, fn: Callable, args: tuple = (), kwargs: Any = None, **options: Any) -> Any:
        """Notes a step on a batch of a shared dataset; carries out what else a program shows, once."""
        if (stranger := _no_tensor((args, kwargs))) is not None:
            raise CannotJudge(
                f"strategy.run at {caller().position} is given an object of class "
                f"{type(stranger).__name__} among its arguments. TPUStrategy turns each "
                "argument into a tensor, and raises a TypeError for an object that it cannot "
                "turn into one. Let the step use this object as a global name or an "
                "attribute, and pass only tensors as arguments"
            )
        python, replicas = getattr(fn, "python_function", fn), self.replicas
        dataset = next((data for data in replicas.distributed if _gives(data, args)), None)
        if dataset is None or kwargs:
            return replicas.shown(python, args, kwargs or {})

        @functools.wraps(python)
        def step(*batch: Any) -> Any:
            return python(*tf.nest.pack_sequence_as(args, tf.nest.flatten(batch)))

        # tf.function would read that of the wrapped function.
        step.__signature__ = inspect.signature(lambda *batch: None)
        call = f"strategy.run({source.place(python).function})"
        is_compiled = python is not fn or _tensorflow.is_in_tf_function()
        outside = replicas.scope.outside() or replicas.scope.outside_in(python)
        return replicas.note(step, dataset, call, outside=outside, is_compiled=is_compiled)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> tf.data.Dataset:
        """The dataset itself."""
        self.replicas.distributed.append(dataset)
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Any = None) -> Any:
        """Batches of all cores, where the program makes those of one."""
        cores = self.replicas.cores
        batches = dataset_fn(tf.distribute.InputContext(1, 0, cores))
        if (whole := datasets.whole_batches(batches)) is not batches:  # the last may be shorter
            size = tf.nest.flatten(whole.element_spec)[0].shape[0]
            return self.experimental_distribute_dataset(batches.unbatch().batch(size * cores))
        is_tuple = isinstance(batches.element_spec, tuple)

        def joined(*batch: Any) -> Any:
            whole = tf.nest.map_structure(lambda parts: tf.concat(tf.unstack(parts), 0), batch)
            return whole if is_tuple else whole[0]

        joint = batches.batch(cores, drop_remainder=True).map(joined)
        return self.experimental_distribute_dataset(joint)

    experimental_run_v2 = run
    experimental_distribute_datasets_from_function = distribute_datasets_from_function


def _no_tensor(arguments: Any) -> Any:
    """The first object in a nest of which no tensor can be made; None where there is none."""
    for leaf in tf.nest.flatten(arguments):
        # An iterator is taken apart into its tensors; None at the end is left out.
        if leaf is None or tf.is_tensor(leaf) or isinstance(leaf, tf.__internal__.CompositeTensor):
            continue
        try:
            tf.convert_to_tensor(leaf)
        except (TypeError, ValueError):
            return leaf
    return None


def _gives(dataset: Any, arguments: tuple) -> bool:
    """Whether `arguments` hold a batch of the dataset, and nothing else."""
    specs, tensors = tf.nest.flatten(dataset.element_spec), tf.nest.flatten(arguments)
    return len(specs) == len(tensors) and all(
        tf.is_tensor(tensor) and spec.is_compatible_with(tensor)
        for spec, tensor in zip(specs, tensors, strict=True)
    )
