"""Which steps of tf.data a function takes, in what order, and on what."""

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from lab_utils.estimator import tf

STEPS = ("interleave", "map", "cache", "shuffle", "repeat", "batch", "prefetch", "shard")


@dataclass(frozen=True)
class Call:
    """One step: its name and arguments, and the element specs before and after it."""

    name: str
    arguments: dict[str, Any]
    before: Any
    after: Any

    @property
    def decodes(self) -> bool:
        """Whether images come out of it, and none went in."""
        return has_images(self.after) and not has_images(self.before)


def has_images(spec: Any) -> bool:
    """Whether an element holds decoded images: a tensor of three or more axes."""
    return any((leaf.shape.rank or 0) >= 3 for leaf in tf.nest.flatten(spec))


@contextlib.contextmanager
def recorded() -> Iterator[list[Call]]:
    """Records the steps that are put onto datasets meanwhile.

    A TFRecordDataset that is told `num_parallel_reads` counts as an interleave.
    """
    calls: list[Call] = []

    def wrapped(name: str):
        original = getattr(tf.data.Dataset, name)
        signature = inspect.signature(original)

        def step(self, *args: Any, **kwargs: Any):
            made = original(self, *args, **kwargs)
            bound = signature.bind(self, *args, **kwargs)
            arguments = {key: value for key, value in bound.arguments.items() if key != "self"}
            calls.append(Call(name, arguments, self.element_spec, made.element_spec))
            return made

        return step

    reader = tf.data.TFRecordDataset

    def records(*args: Any, **kwargs: Any):
        made = reader(*args, **kwargs)
        if parallel := kwargs.get("num_parallel_reads"):
            arguments = {"num_parallel_calls": parallel, "cycle_length": parallel}
            calls.append(Call("interleave", arguments, made.element_spec, made.element_spec))
        return made

    with contextlib.ExitStack() as stack:
        for name in STEPS:
            stack.enter_context(mock.patch.object(tf.data.Dataset, name, wrapped(name)))
        stack.enter_context(mock.patch.object(tf.data, "TFRecordDataset", records))
        yield calls
