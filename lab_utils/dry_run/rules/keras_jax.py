"""What a model of Keras on JAX, its distribution and its batches tell before the step is lowered.

TPU106, TPU119, TPU236, TPU243 and TPU250 to TPU257.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.jax import Effect
from lab_utils.dry_run.records import Finding, Stage
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import some


@rule("TPU119", needs=("has_strings", "place_of_batches"), stage=Stage.READ)
def strings(has_strings: bool, where: Place) -> Iterator[Finding]:
    """A finding where the batches hold text."""
    if has_strings:
        yield finding("TPU119", where, source="the data of fit")


@rule("TPU236", needs=("lacks", "place_of_batches"))
def endless(lacks: str, where: Place) -> Iterator[Finding]:
    """A finding where fit is not told how many batches of endless data make an epoch."""
    if lacks:
        yield finding("TPU236", where, argument=lacks)


@rule("TPU257", needs=("beyond_32_bits", "place_of_batches"))
def large_integers(largest: int, where: Place) -> Iterator[Finding]:
    """A finding where the batches hold integers that JAX cuts."""
    if largest:
        yield finding("TPU257", where, largest=largest)


@rule("TPU106", needs=("batch", "mesh", "axis", "place_of_batches"), stage=Stage.READ)
def indivisible(batch: int, mesh: Mapping[str, int], axis: str, where: Place) -> Iterator[Finding]:
    """A finding where the distribution cannot split the batches."""
    parts = mesh.get(axis, 1)
    if batch % parts:
        what = (
            f"keras.distribution splits each batch over the mesh axis {axis!r}, whose size is {parts}, "
            "and JAX rejects a batch that cannot be split evenly"
        )
        suggestion = max(parts, round(batch / parts) * parts)
        yield finding("TPU106", where, batch=batch, cores=parts, what=what, suggestion=suggestion)


@rule(
    "TPU243",
    "TPU250",
    needs=("rest", "batch", "batches_in_epoch", "mesh", "axis", "place_of_batches"),
)
def last_batch(
    rest: int, batch: int, batches: int | None, mesh: Mapping[str, int], axis: str, where: Place
) -> Iterator[Finding]:
    """A finding where the last batch of an epoch cannot be split; a note where it is only shorter."""
    parts = mesh.get(axis, 1)
    if not rest or batch % parts:
        return
    if rest % parts:
        yield finding("TPU250", where, rest=rest, batch=batch, parts=parts)
    else:
        what = f"the last batch of an epoch has {rest} examples instead of {batch}"
        calls = batches or "an epoch's"
        yield finding("TPU243", where, note=True, calls=calls, programs=2, what=what)


@rule("TPU255", needs=("layers_with_weights", "where"))
def half_precision(layers: Sequence[Any], where: Place) -> Iterator[Finding]:
    """A finding for layers that compute in float16."""
    half = [layer for layer in layers if layer.compute_dtype == "float16"]
    if half:
        facts = {"layers": some(layer.name for layer in half), "policy": half[0].dtype_policy.name}
        yield finding("TPU255", where, **facts)


@rule("TPU256", needs=("model", "layers", "where"))
def op_by_op(model: Any, layers: Sequence[Any], where: Place) -> Iterator[Finding]:
    """A finding where fit runs the step op by op."""
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


@rule("TPU252", needs=("devices", "cores", "topology", "where"))
def idle_cores(devices: int, cores: int, topology: str, where: Place) -> Iterator[Finding]:
    """A finding where the mesh of the program has fewer devices than the topology has cores."""
    if 1 < devices < cores:
        facts = {"taken": devices, "cores": cores, "idle": cores - devices, "topology": topology}
        yield finding("TPU252", where, **facts)


@rule("TPU254", needs=("early", "where"))
def made_early(early: Mapping[str, Place], where: Place) -> Iterator[Finding]:
    """A finding for variables that were made before the distribution, at their layer's line."""
    if early:
        place = next(iter(early.values())) or where
        yield finding("TPU254", place, variables=some(early))


@rule("TPU251", needs=("patterns", "paths", "where"))
def unused_layouts(
    patterns: Mapping[str, Place], paths: Sequence[str], where: Place
) -> Iterator[Finding]:
    """A finding for the keys of a LayoutMap that match none of the paths, at the line that sets the first.

    `paths` are those of variables, and those of the results of layers, which may have a layout, too.
    """
    unused = [key for key in patterns if not any(key == p or re.fullmatch(key, p) for p in paths)]
    if not unused:
        return
    result = (
        "All variables are replicated"
        if len(unused) == len(patterns)
        else "The variables that these patterns should match are replicated"
    )
    variables = [path for path in paths if not path.endswith("/output")]
    facts = {"patterns": some(map(repr, unused)), "result": result, "paths": some(variables)}
    yield finding("TPU251", patterns[unused[0]] or where, **facts)


@rule("TPU253", needs=("effects",))
def once_only(effects: Sequence[Effect]) -> Iterator[Finding]:
    """A finding for what Python does once; a note on a print, which may be meant so, as of a shape."""
    for each in effects:
        facts = {"what": each.what, "result": each.result, "case": each.case}
        yield finding("TPU253", each.place, note=each.case == "prints", **facts)


# Optimizers of which a step changes each weight by about the learning rate, whatever the gradients.
_BY_THE_RATE = ("Adam", "AdamW", "Adamax", "Nadam", "Lion")
_BITS = 8  # of a bfloat16's significant digits


@rule("TPU259", needs=("model", "trained", "rate", "where"))
def lost_updates(
    model: Any, trained: Sequence[Any], rate: float | None, where: Place
) -> Iterator[Finding]:
    """A finding where most weights are bfloat16 numbers too far apart for a step of the optimizer.

    Raises:
        Unavailable: the learning rate of weights in bfloat16 changes with the steps.
    """
    narrow = [each for each in trained if each.dtype == "bfloat16"]
    if type(model.optimizer).__name__ not in _BY_THE_RATE or not narrow:
        return
    if rate is None:
        raise Unavailable("the learning rate changes with the steps")
    weights = np.concatenate([np.asarray(each.value, np.float32).ravel() for each in narrow])
    _, exponents = np.frexp(weights)  # |weight| = m 2^exponent, m from 1/2 to 1
    halves = np.ldexp(0.5, exponents - _BITS)  # half the distance to the next number
    share = float(np.mean((weights != 0) & (halves > rate)))
    if share > 0.5:
        facts = {"variables": some(each.path for each in narrow), "rate": f"{rate:g}"}
        yield finding("TPU259", where, share=f"{share:.0%}", **facts)
