"""Does training reach the chip in front of you, and how close to the compiler's bound? A report to hand on.

    python -m lab_utils.runtime --verify --output report.json

A matmul, then one flowers step and ten, in Keras 3 on JAX: what Colab's TPU runtime has. The step's
least time comes from the same step, compiled for a core of that chip. The report holds versions, figures and
their kinds; neither names nor paths.
"""

import contextlib
import datetime
import math
import os
import platform
import re
from typing import Any

from lab_utils import DISTRIBUTION, runtime
from lab_utils.common.figures import counted
from lab_utils.runtime import chips
from lab_utils.runtime.install import version
from lab_utils.runtime.verify import training

STAND_IN = "TPU v5 lite"  # whose bound is computed where there is no TPU: Colab's


def verify(batch: int = 0, image_size: int = 128) -> dict[str, Any]:
    """Trains for a moment on all devices that JAX finds here, and compares with the compiler's bound.

    Args:
        batch: images a core; by default 128 on a TPU, 16 elsewhere.
        image_size: side in pixels, a multiple of 32.

    Returns:
        The report, as it is written to JSON: see `render` for its parts.

    Raises:
        ImportError: JAX or Keras is missing.
        ValueError: `image_size` is not a multiple of 32, or `batch` is below 0.
    """
    if image_size < 32 or image_size % 32 or batch < 0:
        raise ValueError("image_size must be a multiple of 32, and batch must be at least 0")
    print(runtime.prepare_tpu("jax"), flush=True)
    os.environ["KERAS_BACKEND"] = "jax"  # of this process, whatever the user's own models take
    machine = runtime.detect()
    # Beside a chip all is shown: where native code ends the process, that is all there is.
    with contextlib.nullcontext() if machine.chips else runtime.hide_native_notices():
        import jax

        devices = jax.local_devices()
    there = devices[0].platform == "tpu"
    batch = batch or (128 if there else 16)
    dtype = "mixed_bfloat16" if there else "float32"
    kind = devices[0].device_kind if there else STAND_IN

    packages = ("jax", "jaxlib", "libtpu", "keras", "numpy", DISTRIBUTION)
    versions = {name: version(name) for name in packages if version(name)}
    report = {
        "report": "flowers on a real chip, 1",
        "date": datetime.date.today().isoformat(),
        "place": machine.place,
        "tpu_chips": machine.chips,
        "platform": devices[0].platform,
        "chip": devices[0].device_kind,
        "cores": len(devices),
        "batch_per_core": batch,
        "image_size": image_size,
        "dtype": dtype,
        "versions": {"python": platform.python_version()} | versions,
        "losses": [],
        "figures": [],
    }
    try:
        print(f"a matmul on {devices[0].device_kind}", flush=True)
        report["figures"].append(training.matmul(devices[0], 8192 if there else 1024))
        count = f"{counted(batch, 'image')} a core, cores: {len(devices)}"
        print(f"a flowers step and {training.STEPS}, {count}", flush=True)
        steps, report["losses"] = training.train(devices, batch, image_size, dtype)
        report["figures"] += steps
        print(f"the same step compiled for one core of a {kind}", flush=True)
        least = training.least_time(kind, batch, image_size, dtype)
        if least is not None:
            name = f"least time of the step, {chips.of_jax_kind(kind).name}"
            report["figures"].append(training.figure(name, least * 1e3, "ms", training.COMPUTED))
    except RuntimeError as error:  # all that XLA and the TPU's runtime raise
        # At most 600 characters, without paths and addresses, which name users and machines.
        message = re.sub(r"\S*/\S*", "...", f"{type(error).__name__}: {error}")
        report["error"] = message[:600]
    report["checks"] = checks(report)
    return report | {"verdict": verdict(report)}


def checks(report: dict[str, Any]) -> dict[str, bool]:
    """What holds of a report with "platform" and "losses"."""
    losses = report["losses"]
    return {
        "a TPU was used": report["platform"] == "tpu",
        "the loss is finite": bool(losses) and all(map(math.isfinite, losses)),
        "the loss falls": bool(losses) and losses[-1] < losses[0],
    }


def verdict(report: dict[str, Any]) -> str:
    """What the report comes to, in a sentence or two."""
    attach = "Attach this report to a bug report."
    if "error" in report:
        return f"The check could not be run to its end ({report['error']}). {attach}"
    holds = checks(report)
    if not holds["the loss is finite"] or not holds["the loss falls"]:
        return f"The training step does not learn here. {attach}"
    values = {entry["name"].partition(",")[0]: entry["value"] for entry in report["figures"]}
    step, least = values["step"], values.get("least time of the step")
    if not holds["a TPU was used"] and report["tpu_chips"]:
        return (
            "This machine has TPU chips, but JAX did not use them. Does another process use them, and is "
            'libtpu installed with JAX (pip install "jax[tpu]" "libtpu<1")?'
        )
    if not holds["a TPU was used"]:
        says = f"No TPU: this ran on {report['platform'].upper()}, and the step learns."
        bound = least and (
            f" The least time is that of another machine, a {chips.of_jax_kind(STAND_IN).name} core: "
            f"{step / least:,.0f} times as fast at best, which says nothing against either."
        )
        return says + (bound or "")
    if least is None:
        return (
            "The chip can be used. There is no bound, because the compiler (libtpu) could not be "
            "asked about this chip."
        )
    if step < least:
        return (
            f"The step took {step:g} ms, less than the {least:g} ms that it must take: the clock, the chip's "
            f"published peaks or the count of bytes is wrong. {attach}"
        )
    return f"The chip can be used: a step takes {step / least:.1f} times the least time."


def render(report: dict[str, Any]) -> str:
    """The report as text: a line for each figure and check, and the verdict."""
    head = f"{report['date']}, {report['place']}: {report['cores']} x {report['chip']}"
    lines = [head, ", ".join(f"{name} {version}" for name, version in report["versions"].items())]
    for entry in report["figures"]:
        lines.append(f"  {entry['name']}: {entry['value']:,.4g} {entry['unit']} ({entry['kind']})")
    if losses := report["losses"]:
        after = counted(len(losses) - 1, "step")
        lines.append(f"  loss: {losses[0]:.3f}, after {after} {losses[-1]:.3f}")
    lines += [f"[{'OK' if holds else 'NO'}] {check}" for check, holds in report["checks"].items()]
    return "\n".join([*lines, report["verdict"]])
