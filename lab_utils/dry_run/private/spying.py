"""What TPUEstimator does while it builds a graph: its calls of model_fn, and the specs that it makes."""

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from lab_utils.dry_run.private.tpu_estimator import tpu_estimator
from lab_utils.estimator import tf, v1


@dataclass
class Call:
    """One call of model_fn within a replica's program: what it was given, and the spec it returned."""

    graph: Any
    features: Any
    labels: Any
    spec: Any = None


@dataclass(frozen=True)
class Made:
    """A spec that model_fn made, or tried to make: the arguments given to it, and the stack of the call."""

    arguments: frozenset[str]
    stack: Any


@dataclass
class Spy:
    """What was seen while TPUEstimator built a graph.

    `graph` is the whole graph; `specs` are those that model_fn made.
    """

    calls: list[Call] = field(default_factory=list)
    specs: list[Made] = field(default_factory=list)
    graph: tf.Graph | None = None


@contextmanager
def spying(unlabelled: bool = False) -> Iterator[Spy]:
    """Context manager: each call that TPUEstimator makes of a model_fn is noted.

    With `unlabelled`, datasets of (features, labels) that input_fn returns lose their labels.
    """
    spy, calling = Spy(), [False]
    original_model = tpu_estimator._ModelFnWrapper._call_model_fn
    original_input = tpu_estimator.TPUEstimator._call_input_fn

    def call_model_fn(self, features, labels, is_export_mode=False):
        call = Call(v1.get_default_graph(), features, labels)
        spy.calls.append(call)
        spy.specs.clear()
        calling[0] = True
        try:
            call.spec = original_model(self, features, labels, is_export_mode)
        finally:
            calling[0] = False
        return call.spec

    def call_input_fn(self, *args, **kwargs):
        spy.graph = v1.get_default_graph()
        deferred = original_input(self, *args, **kwargs)
        return (lambda context: _without_labels(deferred(context))) if unlabelled else deferred

    def noting(kind: type) -> Any:
        original = kind.__new__

        def new(cls, *args, **kwargs):
            names = [*inspect.signature(original).parameters][1:]
            given = dict(zip(names, args, strict=False)) | kwargs
            parts = frozenset(name for name, value in given.items() if value is not None)
            if calling[0]:
                spy.specs.append(Made(parts, traceback.extract_stack()))
            return original(cls, *args, **kwargs)

        return mock.patch.object(kind, "__new__", new)

    with (
        mock.patch.object(tpu_estimator._ModelFnWrapper, "_call_model_fn", call_model_fn),
        mock.patch.object(tpu_estimator.TPUEstimator, "_call_input_fn", call_input_fn),
        noting(tpu_estimator.TPUEstimatorSpec),
        noting(v1.estimator.EstimatorSpec),
    ):
        yield spy


def _without_labels(data: Any) -> Any:
    if isinstance(data, tf.data.Dataset) and isinstance(data.element_spec, tuple):
        return data.map(lambda features, *labels: features)
    return data
