"""Made from solutions/source/10_real_tpus.ipynb by `python -m lab_utils.build`: change it there."""

import json
import math
import subprocess
import sys
import tempfile

import matplotlib.pyplot as plt

from lab_utils import runtime
from lab_utils.notebook import wrapped


PJRT_CHIPS = ("v5e", "v5p", "v6e")


def prepare(environ, chip, library):
    """Sets in `environ`, such as os.environ, what TensorFlow has to find for this chip (None: no chip)."""
    # TODO 10a: the three variables, on PJRT_CHIPS alone, never over what is set
    wanted = {
        "PJRT_DEVICE": "TPU",
        "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true",
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": library,
    }
    if chip in PJRT_CHIPS:
        for name, value in wanted.items():
            environ.setdefault(name, value)


def choose(chip, api, python):
    """What to take for "v5e", "TPUStrategy", (3, 12): requirements or an image as text, or None."""
    # TODO 10b: what to take, or None
    if api == "JAX":
        return "jax[tpu]"
    if chip in ("v2", "v3", "v4"):
        return "tpu-vm-tf-2.15.0-se"
    if api == "TPUEstimator" or chip == "tpu7x":
        return None
    if python >= (3, 13):
        return "tensorflow-tpu==2.20.0 libtpu==0.0.21.1"
    return "tensorflow-tpu==2.19.1 libtpu==0.0.10"


START = ["gcloud", "compute", "tpus", "tpu-vm"]


def create_and_delete(name, zone, chips):
    """(create, delete): the commands for a spot machine with that many v5e chips."""
    where = f"--zone={zone}"
    kind = [f"--accelerator-type=v5litepod-{chips}", "--version=v2-alpha-tpuv5-lite"]
    return [*START, "create", name, where, *kind, "--spot"], [
        *START,
        "delete",
        name,
        where,
        "--quiet",  # asks nothing: a script cannot answer
    ]


def rent(run, create, delete, work):
    """Runs `create`, then work(), then `delete`, whatever happens; returns what work() returned."""
    # TODO 10c: create, work, and delete in every case
    try:
        run(create)
        return work()
    finally:
        run(delete)


def bill(step_seconds, steps, chips, price, other_minutes):
    """What a run costs, in the currency of `price`, which is for one chip and one hour."""
    # TODO 10d: steps, and the minutes around them: set-up, compilation, reading, idling
    hours = steps * step_seconds / 3600 + other_minutes / 60
    return hours * chips * price


def spot_pays(spot, full, interruptions, lost_minutes):
    """Whether an hour of useful work costs less on a spot machine: True or False."""
    # TODO 10e: the useful part of an hour, and what it costs
    useful = 1 - interruptions * lost_minutes / 60
    return useful > 0 and spot / useful < full


def figure(report, name):
    """The value of the report's first figure whose name begins so; None where it has none."""
    return next((f["value"] for f in report["figures"] if f["name"].startswith(name)), None)


def reading(report):
    """What a report of --verify says: "broken", "no chip", "clock" or "reached"."""
    # TODO 10f: four questions, in this order
    losses = report["losses"]
    if not all(map(math.isfinite, losses)) or losses[-1] >= losses[0]:
        return "broken"
    if report["platform"] != "tpu":
        return "no chip"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    return "reached"
