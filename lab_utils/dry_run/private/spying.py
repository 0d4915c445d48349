"""What TPUEstimator does while it builds a graph: its calls of model_fn, and the specs that it makes."""

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from lab_utils.common.source import NOWHERE, place_of_stack
from lab_utils.dry_run.private.tpu_estimator import tpu_estimator
from lab_utils.estimator import tf, v1


@contextmanager
def spying(trace: Any, unlabelled: bool = False) -> Iterator[None]:
    """Context manager: a `Trace` gets the graphs that TPUEstimator builds, and its last call of model_fn.

    With `unlabelled`, datasets of (features, labels) that input_fn returns lose their labels.
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
        deferred = original_input(self, *args, **kwargs)
        return (lambda context: _without_labels(deferred(context))) if unlabelled else deferred

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
