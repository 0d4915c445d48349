"""Compares the signs of a program with those of the healthy one, and says in a sentence what differs.

A program whose fault is gone because the feature is gone too gives other signs. The model is called on the
healthy program's batches. Where training draws random numbers, what is trained is compared, not how far.
"""

import collections
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.check.clinic.signs import Model, Port, Signs, model, read
from lab_utils.common.figures import counted

_TOLERANCE = 1e-4


class Different(Exception):
    """The program computes something else; the message says what."""


def difference(port: Port, healthy: Signs, weight: str) -> str:
    """A sentence on the first thing that the program does unlike the healthy one; "" for none."""
    try:
        for mode in healthy.batches:
            _same_input(port, mode, healthy, weight)
        for mode, own in healthy.batches.items():
            _same_model(_called(port, mode, own), healthy.models[mode], mode)
    except Different as told:
        return str(told)
    return ""


_NAMES = {"train": "training", "eval": "evaluation", "infer": "prediction"}


def _same_input(port: Port, mode: str, healthy: Signs, weight: str) -> None:
    what = _NAMES[mode]
    if port.input(mode) is None:
        raise Different(f"port() gives no input function for {what} any more.")
    try:
        own, random = read(port, mode)
    except Exception as error:  # whatever the learner's pipeline raises
        raise Different(f"On a CPU the input for {what} raises {_first(error)}") from error
    if random != healthy.random_inputs[mode]:
        raise Different(
            f"The input for {what} no longer draws anything at random: was augmentation taken out?"
            if healthy.random_inputs[mode]
            else f"The input for {what} draws random numbers, and should not."
        )
    ours, theirs = (_rows(each, weight, random) for each in (healthy.batches[mode], own))
    if lacking := set(ours.names) - set(theirs.names):
        raise Different(f"The input for {what} no longer gives {', '.join(sorted(lacking))}.")
    left, right = ours.of(ours.names), theirs.of(ours.names)
    if mode != "train":
        if left != right:
            more, fewer = sum((right - left).values()), sum((left - right).values())
            raise Different(
                f"The input for {what} should give each of its {counted(sum(left.values()), 'example')} "
                f"once, as it is. Missing: {fewer}; other ones, or counted twice: {more}."
            )
        return
    if strange := set(right) - set(left):
        raise Different(
            f"{counted(len(strange), 'example')} of training: not among those of the data."
        )
    seen = len(set(right)) / len(set(left))
    if seen < 0.6:
        raise Different(f"Training sees {100 * seen:.0f} % of the examples: the others are lost.")


def _called(port: Port, mode: str, batches: list[Any]) -> Model:
    try:
        return model(port, mode, batches)
    except Different:
        raise
    except Exception as error:  # whatever the learner's model raises
        if "CrossReplicaSum" in str(error):
            raise Different(
                "On a CPU there is no all-reduce: wrap the optimizer only if params['use_tpu']."
            ) from error
        raise Different(f"On a CPU, {_NAMES[mode]} raises {_first(error)}") from error


def _same_model(own: Model, healthy: Model, mode: str) -> None:
    what = _NAMES[mode]
    if own.random != healthy.random:
        raise Different(
            f"The model draws nothing at random in {what} any more: was dropout or noise taken out?"
            if healthy.random
            else f"The model draws random numbers in {what}, and should not."
        )
    if lacking := sorted(healthy.moved - own.moved):
        raise Different(f"A training step does not change {', '.join(lacking[:4])}.")
    if extra := sorted(own.moved - healthy.moved):
        raise Different(f"A training step changes {', '.join(extra[:4])}, and should not.")
    if own.summaries < healthy.summaries:
        raise Different(
            f"host_call writes {own.summaries} summaries; it wrote {healthy.summaries} before."
        )
    for name, value in healthy.numbers.items():
        if name not in own.numbers:
            raise Different(f"In {what} {name} is missing.")
        other = own.numbers[name]
        if np.shape(other) != np.shape(value):
            raise Different(
                f"In {what} {name} has the shape {list(np.shape(other))}, and should have "
                f"{list(np.shape(value))}."
            )
        if not np.allclose(value, other, _TOLERANCE, _TOLERANCE * np.abs(value).max(initial=1e-6)):
            shown = (
                f"{float(other):.5g}, and the same weights should give {float(value):.5g}."
                if np.ndim(value) == 0
                else "other numbers than the same weights should give."
            )
            raise Different(f"In {what} {name} is {shown}")


def _first(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


@dataclass(frozen=True)
class _Rows:
    names: list[str]
    columns: dict[str, list[bytes]]

    def of(self, names: Iterable[str]) -> collections.Counter:
        """The examples as a multiset."""
        return collections.Counter(zip(*(self.columns[name] for name in names), strict=True))


def _rows(batches: list[Any], weight: str, augmented: bool) -> _Rows:
    """The examples of some batches, those of weight 0 left out; without the zeros at a row's end.

    Where they are augmented, a row's values count and not their places: a mirrored picture is the same one.
    """
    columns: dict[str, list[bytes]] = collections.defaultdict(list)
    for batch in batches:
        flat = {name: np.asarray(value) for name, value in _flat(batch)}
        kept = next((v.astype(bool).ravel() for n, v in flat.items() if n.endswith(weight)), None)
        for name, value in flat.items():
            if value.dtype.kind not in "biuf" or (weight and name.endswith(weight)):
                continue
            rows = value if kept is None or not weight else value[kept]
            columns[name] += [_key(np.sort(row, axis=None) if augmented else row) for row in rows]
    return _Rows(sorted(columns), columns)


def _key(row: np.ndarray) -> bytes:
    return np.trim_zeros(np.round(np.ravel(row).astype(np.float64), 3) + 0.0, "b").tobytes()


def _flat(batch: tuple[Any, Any]) -> list[tuple[str, Any]]:
    found = []
    for part, value in zip(("features", "labels"), batch, strict=True):
        items = value.items() if isinstance(value, dict) else [("", value)]
        found += [(f"{part} {name}".strip(), each) for name, each in items if each is not None]
    return found
