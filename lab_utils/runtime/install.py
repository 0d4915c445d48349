"""What pip cannot be told by the package's requirements: one TensorFlow, and Keras 2 beside it.

The place's TensorFlow stays as it is. tf-keras asks for the package `tensorflow`, which would overwrite
`tensorflow-cpu` in the same folder, so it comes without its dependencies.
"""

import importlib
import importlib.util
import subprocess
import sys
from importlib import metadata

from packaging.requirements import Requirement

from lab_utils import DISTRIBUTION

TENSORFLOW = ("tensorflow-cpu", "tensorflow", "tensorflow-tpu")


def lacking() -> list[list[str]]:
    """Arguments of `pip install`, one list after the other; none where all is here."""
    versions = {name: version(name) for name in (*TENSORFLOW, "keras", "tf-keras")}
    here = next(filter(None, (versions[name] for name in TENSORFLOW)), "")
    steps = []
    if not here and importlib.util.find_spec("tensorflow") is None:
        requirement = next(filter(_of_this_machine, metadata.requires(DISTRIBUTION) or ()))
        steps.append([requirement.partition(";")[0]])
        here = requirement.partition(";")[0].partition("==")[2]
    if here and not versions["tf-keras"] and not versions["keras"].startswith("2."):
        steps.append(["--no-deps", f"tf-keras~={'.'.join(here.split('.')[:2])}.0"])
    return steps


def complete() -> list[str]:
    """Installs what is lacking; returns what went wrong, a sentence for each thing."""
    problems = []
    for arguments in lacking():
        print(f"Installing {arguments[-1]} ...", flush=True)
        command = [sys.executable, "-m", "pip", "install", "-q", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if ran.returncode:
            lines = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
            reason = (lines or ran.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            problems.append(f"{arguments[-1]} could not be installed: {reason}")
    importlib.invalidate_caches()
    return problems


def _of_this_machine(text: str) -> bool:
    """Whether it is the TensorFlow that the extra "cpu" asks for on this machine."""
    requirement = Requirement(text)
    marker = requirement.marker
    return requirement.name in TENSORFLOW and bool(marker and marker.evaluate({"extra": "cpu"}))


def version(package: str) -> str:
    """The version of an installed package; "" where it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
