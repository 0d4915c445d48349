"""Which steps of tf.data a function takes, in what order, and on what."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from lab_utils.estimator import tf, v1

# Of tf.data.experimental, deprecated: what stands for each.
_OLD = {
    "parallel_interleave": ("interleave",),
    "map_and_batch": ("map", "batch"),
    "shuffle_and_repeat": ("shuffle", "repeat"),
}
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

    A TFRecordDataset that is told `num_parallel_reads` counts as an interleave, and the old steps of
    `tf.data.experimental` count as those of today.
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

    def wrapped_old(original: Callable, names: tuple[str, ...]) -> Callable:
        def make(*args: Any, **kwargs: Any) -> Callable:
            arguments = dict(inspect.signature(original).bind(*args, **kwargs).arguments)
            put = original(*args, **kwargs)

            def step(dataset: Any) -> Any:
                made = put(dataset)
                for number, name in enumerate(names):
                    before = made if number else dataset
                    given = _as_today(name, arguments)
                    calls.append(Call(name, given, before.element_spec, made.element_spec))
                return made

            return step

        return make

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
        for place in (tf.data.experimental, v1.data.experimental):
            for name, names in _OLD.items():
                if original := getattr(place, name, None):
                    instead = wrapped_old(original, names)
                    stack.enter_context(mock.patch.object(place, name, instead))
        yield calls


def _as_today(name: str, old: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an old step as those of the plain method; the old ones work in parallel unasked."""
    if name == "interleave":
        given = {"cycle_length": 4, "num_parallel_calls": 4, "deterministic": not old.get("sloppy")}
        return given | {key: old[key] for key in ("map_func", "cycle_length") if key in old}
    given = {"num_parallel_calls": old.get("num_parallel_calls") or 1} if name == "map" else {}
    return given | {key: value for key, value in old.items() if value is not None}
