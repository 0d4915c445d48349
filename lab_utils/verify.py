"""Does training reach the chip in front of you, and how near to the compiler's bound? A report to hand on.

    python -m lab_utils.runtime --verify --output report.json

A matrix product, then one flowers step and ten, in Keras 3 on JAX: what Colab's TPU runtime has. The step's
least time comes from the same step, compiled for a core of that chip. The report holds versions, figures and
their kinds; neither names nor paths.
"""

import dataclasses
import datetime
import getpass
import importlib.metadata
import math
import os
import platform
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils import runtime
from lab_utils.dry_run import chips

# What JAX calls a TPU, and the smallest topology with such a core.
KINDS = {
    "TPU v2": ("v2", "v2:2x2"),
    "TPU v3": ("v3", "v3:2x2"),
    "TPU v4": ("v4", "v4:2x2x1"),
    "TPU v5 lite": ("v5e", "v5e:1x1"),
    "TPU v5": ("v5p", "v5p:2x2x1"),
    "TPU v6 lite": ("v6e", "v6e:1x1"),
    "TPU7x": ("tpu7x", "tpu7x:2x2x1"),
}
STAND_IN = "TPU v5 lite"  # whose bound is computed where there is no TPU: Colab's
CLASSES, STEPS = 5, 10
MEASURED = "measured here"
COMPUTED = "computed by the TPU compiler, with quoted peaks"


def verify(
    batch: int = 0, image_size: int = 128, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Trains for a moment on all devices that JAX finds here, and compares with the compiler's bound.

    Args:
        batch: images a core; by default 128 on a TPU, 16 elsewhere.
        image_size: side in pixels, a multiple of 32.
        say: gets a line before each part.

    Returns:
        The report, as it is written to JSON: see `render` for its parts.

    Raises:
        ImportError: JAX or Keras is missing.
        ValueError: `image_size` is no multiple of 32.
    """
    if image_size < 32 or image_size % 32:
        raise ValueError(f"image_size must be a multiple of 32, not {image_size}")
    say(runtime.prepare_tpu("jax"))
    os.environ["KERAS_BACKEND"] = "jax"  # of this process, whatever the user's own models take
    with runtime.hide_native_notices():
        import jax

        devices = jax.local_devices()
    there = devices[0].platform == "tpu"
    batch = batch or (128 if there else 16)
    dtype = "mixed_bfloat16" if there else "float32"
    kind = devices[0].device_kind if devices[0].device_kind in KINDS else STAND_IN

    report = {
        "report": "flowers on a real chip, 1",
        "date": datetime.date.today().isoformat(),
        "place": runtime.place(),
        "platform": devices[0].platform,
        "chip": devices[0].device_kind,
        "cores": len(devices),
        "batch_per_core": batch,
        "image_size": image_size,
        "dtype": dtype,
        "versions": _versions(),
        "losses": [],
        "figures": [],
    }
    try:
        say(f"a matrix product on {devices[0].device_kind}")
        report["figures"].append(_matmul(devices[0], 8192 if there else 1024))
        say(f"a flowers step and {STEPS}, {batch} images a core, cores: {len(devices)}")
        steps, report["losses"] = train(devices, batch, image_size, dtype)
        report["figures"] += steps
        say(f"the same step compiled for one core of {KINDS[kind][0]}")
        report["figures"] += _bound(kind, batch, image_size, dtype)
    except RuntimeError as error:  # all that XLA and the TPU's runtime raise
        report["error"] = anonymous(f"{type(error).__name__}: {error}")
    report["checks"] = _checks(report)
    return report | {"verdict": verdict(report)}


def anonymous(message: str) -> str:
    """An error's message, at most 600 characters, without folders and the names of user and machine."""
    message = re.sub(r"(?:/[^\s/:'\"]+)+/", "", message)
    for name in (getpass.getuser(), platform.node()):
        if name:
            message = re.sub(rf"\b{re.escape(name)}\b", "...", message)
    return message[:600]


def train(
    devices: list[Any], batch: int, image_size: int, dtype: str
) -> tuple[list[dict[str, Any]], list[float]]:
    """One step of the flowers model, and ten more; the figures, and the loss before each step.

    The pictures are noise in a colour of their class, the same in every run, so that the loss has to fall.
    """
    import jax

    from lab_utils.flowers import jax_port

    step, state, images, targets = _flowers(batch * len(devices), image_size, dtype)
    start = time.perf_counter()
    program = jax_port.data_parallel(step, devices).lower(state, images, targets).compile()
    compiled = time.perf_counter() - start
    placed = [
        jax.device_put(each, where)
        for each, where in zip((state, images, targets), program.input_shardings[0], strict=True)
    ]
    state, *data = placed

    def run(state, count):
        losses = []
        start = time.perf_counter()
        for _ in range(count):
            loss, state = program(state, *data)
            losses.append(loss)
        losses = [round(float(loss), 4) for loss in losses]  # waits until all is done
        return state, losses, (time.perf_counter() - start) / count

    state, first, once = run(state, 1)
    state, others, each = run(state, STEPS)
    figures = [
        _figure("compilation", compiled, "s", MEASURED),
        _figure("first step", once * 1e3, "ms", MEASURED),
        _figure("step", each * 1e3, "ms", MEASURED),
        _figure("images a second, all cores", batch * len(devices) / each, "1/s", MEASURED),
    ]
    return figures, first + others


def _flowers(images: int, image_size: int, dtype: str) -> tuple[Callable, Any, Any, Any]:
    """The step, its first state and a batch, each as `jax_port.train_step` has it."""
    import keras

    from lab_utils.flowers import jax_port, keras_model

    keras.utils.set_random_seed(0)
    model = keras_model.network(image_size, CLASSES, dtype=dtype, dropout=0.0)
    step, state = jax_port.train_step(
        model, keras_model.optimizer(0.05, 10 * STEPS), keras_model.loss()
    )
    rng = np.random.default_rng(0)
    labels = np.arange(images) % CLASSES
    colours = rng.integers(0, 192, (CLASSES, 1, 1, 3))
    noise = rng.integers(0, 64, (images, image_size, image_size, 3))
    return (
        step,
        state,
        (colours[labels] + noise).astype(np.uint8),
        np.eye(CLASSES, dtype=np.float32)[labels],
    )


def _matmul(device: Any, size: int, rounds: int = 16) -> dict[str, Any]:
    """The FLOP/s of `rounds` square matrix products, one after the other: bfloat16 on a TPU."""
    import jax

    dtype = "bfloat16" if device.platform == "tpu" else "float32"
    scale = 1 / math.sqrt(size)
    left, right = (
        jax.device_put(np.random.default_rng(seed).normal(0, scale, (size, size)), device)
        for seed in (0, 1)
    )
    left, right = left.astype(dtype), right.astype(dtype)
    product = jax.jit(lambda x, w: jax.lax.fori_loop(0, rounds, lambda _, y: y @ w, x)[0, 0])
    float(product(left, right))
    start = time.perf_counter()
    float(product(left, right))
    flops = 2 * size**3 * rounds / (time.perf_counter() - start)
    return _figure(f"matrix product, {dtype}", flops / 1e12, "TFLOP/s", MEASURED)


def _bound(kind: str, batch: int, image_size: int, dtype: str) -> list[dict[str, Any]]:
    """The least time of the step on one core, as the one figure; none where the TPU compiler is missing."""
    import jax

    from lab_utils.flowers import jax_port

    name, topology = KINDS[kind]
    try:
        with runtime.hide_native_notices():
            from lab_utils.dry_run import _jax

            core = _jax.tpu_devices(topology)[:1]
    except Exception:  # whatever JAX raises without libtpu
        return []
    step, *arguments = _flowers(batch, image_size, dtype)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
    cost = jax_port.data_parallel(step, core).lower(*shapes).compile().cost_analysis()
    chip = chips.CHIPS[name]
    if name == "v4":  # JAX drives its two cores as one device, which has the whole chip's rates
        chip = dataclasses.replace(chip, cores=1)
    least = chips.roofline(
        cost["flops"], cost["bytes accessed"], chip, cores=1, per_core_batch=batch
    )
    return [_figure(f"least time of the step, {name}", least.seconds * 1e3, "ms", COMPUTED)]


def _figure(name: str, value: float, unit: str, kind: str) -> dict[str, Any]:
    return {"name": name, "value": float(f"{value:.4g}"), "unit": unit, "kind": kind}


def value(report: dict[str, Any], name: str) -> float | None:
    """The first figure of the report whose name begins so; None without one."""
    found = (each["value"] for each in report["figures"] if each["name"].startswith(name))
    return next(found, None)


def _checks(report: dict[str, Any]) -> dict[str, bool]:
    losses = report["losses"]
    return {
        "a TPU was used": report["platform"] == "tpu",
        "the loss is finite": bool(losses) and all(map(math.isfinite, losses)),
        "the loss falls": bool(losses) and losses[-1] < losses[0],
    }


def verdict(report: dict[str, Any]) -> str:
    """What the report comes to, in a sentence or two."""
    if "error" in report:
        return f"It could not be run to its end ({report['error']}). Attach this report to a bug report."
    checks = _checks(report)
    if not checks["the loss is finite"] or not checks["the loss falls"]:
        return "The training step does not learn here: attach this report to a bug report."
    step, least = value(report, "step"), value(report, "least time")
    if not checks["a TPU was used"]:
        said = f"No TPU: this ran on {report['platform'].upper()}, and the step learns."
        if least is None:
            return said
        return (
            f"{said} The least time is that of another machine, a {KINDS[STAND_IN][0]} core: "
            f"{step / least:,.0f} times as fast at best, which is no verdict on either."
        )
    if least is None:
        return "The chip is reached. No bound: the TPU compiler (libtpu) could not be asked."
    if step < least:
        return (
            f"The step took {step:g} ms, less than the {least:g} ms that it must take: the clock, the chip's "
            "published peaks or the count of bytes is wrong. Attach this report to a bug report."
        )
    return f"The chip is reached: a step takes {step / least:.1f} times the least time."


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("jax", "jaxlib", "libtpu", "keras", "numpy", "lab-utils"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def render(report: dict[str, Any]) -> str:
    """The report as text: a line for each figure and check, and the verdict."""
    head = f"{report['date']}, {report['place']}: {report['cores']} x {report['chip']}"
    lines = [head, ", ".join(f"{name} {version}" for name, version in report["versions"].items())]
    for each in report["figures"]:
        lines.append(f"  {each['name']}: {each['value']:,.4g} {each['unit']} ({each['kind']})")
    if losses := report["losses"]:
        lines.append(f"  loss: {losses[0]:.3f}, after {len(losses) - 1} steps {losses[-1]:.3f}")
    lines += [f"[{'OK' if held else 'NO'}] {check}" for check, held in report["checks"].items()]
    return "\n".join([*lines, report["verdict"]])
