"""What pip cannot be told by the package's requirements: what a kernel has loaded is to stay.

The place's TensorFlow stays. tf-keras asks for the package `tensorflow`, which would overwrite
`tensorflow-cpu` in the same folder, so it comes without its dependencies. Apache Beam asks for a newer Pillow
than Colab and Kaggle have, and their kernels have loaded Pillow before the first cell runs. Only Beam's
examples use it, so Beam comes with all its dependencies but that one.
"""

import importlib
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

from lab_utils import DISTRIBUTION

# What libtpu, the TPU's compiler, has wheels for.
LIBTPU_MACHINE = "Linux on x86_64"
TENSORFLOW = ("tensorflow-cpu", "tensorflow", "tensorflow-tpu")
_BEAM = "apache-beam"


def lacking() -> Iterator[list[str]]:
    """Yields arguments of `pip install`, one list after the other; none where all is here.

    A list is to be installed before the next one is taken: Beam, once it is here, says what it needs.
    """
    here = next(filter(None, map(version, TENSORFLOW)), "")
    if not here and importlib.util.find_spec("tensorflow") is None:
        for tensorflow in _required(DISTRIBUTION, "cpu", TENSORFLOW):
            yield [f"{tensorflow.name}{tensorflow.specifier}"]
            here = str(tensorflow.specifier).removeprefix("==")
    if here and not version("tf-keras") and not version("keras").startswith("2."):
        yield ["--no-deps", f"tf-keras~={'.'.join(here.split('.')[:2])}.0"]
    if not version(_BEAM):
        for beam in _required(DISTRIBUTION, "convert", (_BEAM,)):
            yield ["--no-deps", f"{beam.name}{beam.specifier}"]
    if version(_BEAM):
        needs = [each for each in _required(_BEAM) if each.name != "pillow" and not is_met(each)]
        if needs:
            yield [f"{each.name}{each.specifier}" for each in needs]


def machine() -> str:
    """The system and processor of this machine, as in LIBTPU_MACHINE."""
    return f"{platform.system()} on {platform.machine()}"


def complete() -> list[str]:
    """Installs what is lacking; returns what went wrong, a sentence for each thing."""
    problems = []
    for arguments in lacking():
        names = ", ".join(each for each in arguments if not each.startswith("-"))
        print(f"Installing {names} ...", flush=True)
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-color", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if ran.returncode:
            lines = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
            reason = (lines or ran.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            problems.append(f"{names} could not be installed: {reason}")
        importlib.invalidate_caches()
    return problems


def _required(package: str, extra: str = "", names: tuple[str, ...] = ()) -> list[Requirement]:
    """What a package asks for on this machine; with `names` only these. None where it is not installed."""
    if not version(package):
        return []
    wanted = map(Requirement, metadata.requires(package) or ())
    return [
        each
        for each in wanted
        if (not names or each.name in names)
        and (each.marker is None or each.marker.evaluate({"extra": extra}))
    ]


def is_met(requirement: Requirement) -> bool:
    """Whether the package is here, in a version that is asked for."""
    here = version(requirement.name)
    return bool(here) and here in requirement.specifier


def version(package: str) -> str:
    """The version of an installed package; "" where it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
