"""What a model of Keras on JAX, its distribution and its batches tell before the step is lowered."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lab_utils.common.source import Place
from lab_utils.dry_run.private import keras as _keras
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding, some


def of_batches(data: Any, axis: str, mesh: Mapping[str, int], where: Place) -> Iterator[Finding]:
    """Findings on data without an end, batches that cores cannot share, and a last, shorter batch.

    `axis` is the axis of the mesh that batches are split over; "" where there is no distribution.
    """
    if data.has_strings:
        yield finding("TPU119", where, source="the data of fit")
        return
    if argument := data.lacks:
        yield finding("TPU236", where, argument=argument)
    if large := data.beyond_32_bits:
        yield finding("TPU257", where, largest=large)
    parts, batch, rest = mesh.get(axis, 1), data.size, data.rest
    if batch % parts:
        what = (
            f"keras.distribution splits its first axis over the axis {axis!r} of the mesh, of size {parts}, "
            "and JAX refuses a batch that does not divide"
        )
        suggestion = max(parts, round(batch / parts) * parts)
        yield finding("TPU106", where, batch=batch, cores=parts, what=what, suggestion=suggestion)
    elif rest and rest % parts:
        yield finding("TPU250", where, rest=rest, batch=batch, parts=parts)
    elif rest:
        what = f"the last batch of an epoch has {rest} examples in place of {batch}"
        calls = data.adapter.num_batches or "an epoch's"
        yield finding("TPU243", where, note=True, calls=calls, programs=2, what=what)


def of_devices(taken: int, cores: int, topology: str, where: Place) -> Iterator[Finding]:
    """TPU252 where the mesh of the program has fewer devices than the topology has cores."""
    if 1 < taken < cores:
        facts = {"taken": taken, "cores": cores, "idle": cores - taken, "topology": topology}
        yield finding("TPU252", where, **facts)


def of_layouts(
    patterns: Mapping[str, Place], paths: Sequence[str], where: Place
) -> Iterator[Finding]:
    """TPU251 for the keys of a LayoutMap that match none of the paths, at the line that sets the first.

    `paths` are those of variables, and those of the results of layers, which may have a layout, too.
    """
    unused = [key for key in patterns if not any(key == p or re.fullmatch(key, p) for p in paths)]
    if not unused:
        return
    result = (
        "All variables are replicated" if len(unused) == len(patterns) else "So it is for these"
    )
    variables = [path for path in paths if not path.endswith("/output")]
    facts = {"patterns": some(map(repr, unused)), "result": result, "paths": some(variables)}
    yield finding("TPU251", patterns[unused[0]] or where, **facts)


def of_variables(early: Mapping[str, Place], where: Place) -> Iterator[Finding]:
    """TPU254 for variables, by their paths, that were made before the distribution; the layer's place."""
    if early:
        place = next(iter(early.values())) or where
        yield finding("TPU254", place, variables=some(early))


def of_policy(layers: Sequence[Any], where: Place) -> Iterator[Finding]:
    """TPU255 for layers that compute in float16."""
    half = [layer for layer in layers if layer.compute_dtype == "float16" and layer.weights]
    if half:
        facts = {"layers": some(layer.name for layer in half), "policy": half[0].dtype_policy.name}
        yield finding("TPU255", where, **facts)


def of_compilation(model: Any, layers: Sequence[Any], where: Place) -> Iterator[Finding]:
    """TPU256 where fit runs the step op by op."""
    if model.run_eagerly:
        reason, case = "The model is compiled with run_eagerly=True", "eager"
    elif not model.jit_compile:
        refusing = [layer.name for layer in layers if not getattr(layer, "supports_jit", True)]
        reason, case = "The model is compiled with jit_compile=False", "jit"
        if refusing:
            reason = f"{some(refusing)} cannot be compiled by JAX (supports_jit is False)"
            case = "layers"
    else:
        return
    yield finding("TPU256", where, reason=reason, case=case)


# Optimizers of which a step changes each weight by about the learning rate, whatever the gradients.
_BY_THE_RATE = ("Adam", "AdamW", "Adamax", "Nadam", "Lion")
_BITS = 8  # of a bfloat16's significant digits


def of_updates(optimizer: Any, variables: Sequence[Any], where: Place) -> Iterator[Finding]:
    """TPU259 where most weights are bfloat16 numbers too far apart for a step of the optimizer.

    A learning rate that changes with the steps is not judged.
    """
    rate = _keras.constant_rate(optimizer)
    narrow = [each for each in variables if each.dtype == "bfloat16"]
    if type(optimizer).__name__ not in _BY_THE_RATE or rate is None or not narrow:
        return
    weights = np.concatenate([np.asarray(each.value, np.float32).ravel() for each in narrow])
    _, exponents = np.frexp(weights)  # |weight| = m 2^exponent, m from 1/2 to 1
    halves = np.ldexp(0.5, exponents - _BITS)  # half the distance to the next number
    share = float(np.mean((weights != 0) & (halves > rate)))
    if share > 0.5:
        facts = {"variables": some(each.path for each in narrow), "rate": f"{rate:g}"}
        yield finding("TPU259", where, share=f"{share:.0%}", **facts)
