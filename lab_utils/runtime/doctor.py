"""Is everything here that the labs need? One line if so, else a line for each thing, and what to do."""

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from lab_utils import DISTRIBUTION, datasets, runtime
from lab_utils.common import command
from lab_utils.common.figures import counted
from lab_utils.dry_run import cache
from lab_utils.runtime import install

MEMORY = 2.0  # GiB free: the largest lab, with a browser beside it, stays below
# GiB of a learner: a server, a kernel with TensorFlow and a dry run (hub.md says how it was measured).
LEARNER = 1.3
DISK = 2.0  # GiB free in the working folder: TFRecords, checkpoints and exports of all labs
CHECKOUT = (Path(__file__).parents[2] / "Makefile").exists()
# In a handout there is neither a Makefile nor a lock file.
INSTALL = "`make setup`" if CHECKOUT else "run a lab's first cell: it installs what is missing"


@dataclass(frozen=True)
class Check:
    """One line of the report; `remedy` is what to do, where `ok` is False."""

    ok: bool
    subject: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"[{'OK' if self.ok else 'FAIL'}] {self.subject}: {self.found}"
        text = line if self.ok else f"{line}\n       {self.remedy}"
        return text.encode(errors="backslashreplace").decode()  # a folder's name may be no UTF-8


def _in_child(code: str, seconds: int = 120) -> tuple[dict, str]:
    """Runs code that prints JSON in a process of its own: what it printed, or its last line of error.

    A framework that cannot even be imported, or that aborts, must not take the doctor with it.
    """
    try:
        child = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return {}, f"no answer in {seconds} s"
    lines = child.stderr.strip().splitlines()
    if child.returncode:
        return {}, lines[-1] if lines else f"exit status {child.returncode}"
    try:
        return json.loads(child.stdout.strip().splitlines()[-1]), ""
    except (ValueError, IndexError):
        return {}, f"it ended without an answer ({lines[-1] if lines else 'and said nothing'})"


def python() -> Check:
    """The interpreter's version."""
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Check(fits, "Python", platform.python_version(), "use Python 3.11, 3.12 or 3.13")


def packages(*extras: str) -> Check:
    """Every package that lab_utils and its `extras` ask for is here, in a version that it accepts.

    By default the extra "course" of pyproject.toml: what runs JupyterLab need not be in its kernel.
    """
    from packaging.requirements import Requirement

    try:
        wanted = list(map(Requirement, importlib.metadata.requires(DISTRIBUTION) or []))
    except importlib.metadata.PackageNotFoundError:
        return Check(False, "packages", "lab_utils is not installed", INSTALL)
    chosen = {"", *(extras or ("course",))}
    for requirement in wanted:  # an extra may ask for others of this package's own
        if requirement.name == DISTRIBUTION and _applies(requirement, chosen):
            chosen |= requirement.extras
    wrong, names = [], []
    for requirement in wanted:
        if requirement.name == DISTRIBUTION or not _applies(requirement, chosen):
            continue
        version = install.version(requirement.name)
        if not version or version not in requirement.specifier:
            has = f"is {version}, not {requirement.specifier}" if version else "is missing"
            wrong.append(f"{requirement.name} {has}")
            names.append(f'"{requirement.name}{requirement.specifier}"')
    found = "; ".join(wrong) or "all here, in versions that fit"
    remedy = INSTALL if CHECKOUT else f"%pip install {' '.join(names)}"
    return Check(not wrong, "packages", found, remedy)


def _applies(requirement: Any, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def tensorflow() -> Check:
    """TensorFlow imports, and the genuine TPUEstimator with it."""
    answer, problem = _in_child(
        "import json; from lab_utils import estimator; import tensorflow as tf;"
        "tf.compat.v1.estimator.tpu.TPUEstimator;"
        "gpus = [d.name for d in tf.config.list_physical_devices('GPU')];"
        "print(json.dumps({'tensorflow': tf.__version__, 'gpus': len(gpus)}))"
    )
    if problem:
        return Check(False, "TensorFlow with TPUEstimator", problem, INSTALL)
    found = f"{answer['tensorflow']}, TPUEstimator imports; GPUs it sees: {answer['gpus']}"
    return Check(True, "TensorFlow with TPUEstimator", found)


def tpu_compiler() -> Check:
    """libtpu can compile for a TPU that is not here. Linux on x86-64 alone has it."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        found = f"not made for {platform.system()} on {platform.machine()}: the dry run traces and reads only"
        return Check(True, "TPU compiler", found)
    answer, problem = _in_child(
        "import os; from lab_utils import runtime;"
        "os.environ.update(runtime.NO_CHIP, JAX_PLATFORMS='cpu'); import json, jax, importlib.metadata as m;"
        "from jax.experimental import topologies;"
        "chip = topologies.get_topology_desc('v2:2x2', 'tpu').devices[0].device_kind;"
        "print(json.dumps({'jax': jax.__version__, 'libtpu': m.version('libtpu'), 'chip': chip}))"
    )
    if problem:
        return Check(False, "TPU compiler", problem, INSTALL)
    found = f"libtpu {answer['libtpu']} with jax {answer['jax']} knows the {answer['chip']}"
    return Check(True, "TPU compiler", found)


def accelerators() -> Check:
    """What this machine could train on; the labs need none."""
    return Check(True, "accelerators", runtime.accelerators() or "none, and the labs need none")


def memory() -> Check:
    """Free memory."""
    free = psutil.virtual_memory().available / 2**30
    remedy = f"close other programs: the labs need {MEMORY:.0f} GiB free"
    return Check(free >= MEMORY, "memory", f"{free:.1f} GiB free", remedy)


def disk() -> Check:
    """Free space in the working folder."""
    try:
        free = shutil.disk_usage(Path.cwd()).free / 2**30
    except OSError as error:
        return Check(False, "disk", error.strerror or str(error), "change to a folder that exists")
    if not os.access(Path.cwd(), os.W_OK):
        remedy = "the labs write below the working folder: start them where you may write"
        return Check(False, "disk", f"{Path.cwd()} cannot be written", remedy)
    remedy = f"the labs write up to {DISK:.0f} GiB below the working folder: make room"
    return Check(free >= DISK, "disk", f"{free:.1f} GiB free in {Path.cwd()}", remedy)


def data() -> Check:
    """The bundled pictures are all there, unchanged."""
    again = "git checkout -- datasets" if CHECKOUT else "install the course's wheel again"
    try:
        folder = datasets.bundled().folder
        lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
        sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
        changed = [name for name, digest in sums.items() if _digest(folder / name) != digest]
    except (datasets.DatasetError, OSError, ValueError) as error:
        return Check(False, "data", str(error), again)
    found = f"{len(sums) - len(changed)} of {len(sums)} bundled files as published"
    return Check(not changed, "data", found, again)


def _digest(path: Path) -> str:
    return datasets.photos.file_sha256(path) if path.is_file() else "no file"


CHECKS: tuple[Callable[[], Check], ...] = (python, packages, tensorflow, tpu_compiler)
CHECKS += (accelerators, memory, disk, data)


def memory_for(learners: int) -> Check:
    """Room for so many learners on this machine at once."""
    wanted, free = learners * LEARNER, psutil.virtual_memory().available / 2**30
    at_once = f"{counted(learners, 'learner')} at work at once may take {wanted:.0f}"
    remedy = "teach in groups, or take a larger machine"
    return Check(free >= wanted, "memory for a class", f"{free:.0f} GiB free; {at_once}", remedy)


def shared_cache() -> Check:
    """The folder of compilations that learners share is named, filled, and written by its owner alone."""
    subject, how = "shared cache", "fill it as solutions/instructor/hub.md says"
    if not (named := os.environ.get(cache.SHARED)):
        return Check(False, subject, f"{cache.SHARED} is not set: each learner compiles", how)
    try:
        entries = list(Path(named).glob("lab_utils/dry_run/*.json.gz"))
        unreadable = [path for path in entries if not os.access(path, os.R_OK)]
        open_to_all = Path(named, "lab_utils", "dry_run").stat().st_mode & stat.S_IWOTH
    except OSError as error:
        return Check(False, subject, f"{named}: {error.strerror}", how)
    if unreadable or open_to_all:
        wrong = f"{len(unreadable)} entries cannot be read"
        wrong = "can be written by everybody" if open_to_all else wrong
        return Check(False, subject, f"{named}: {wrong}", f"chmod -R a+rX,go-w {named}")
    return Check(bool(entries), subject, f"{len(entries)} entries in {named}", how)


def package_of_all() -> Check:
    """Package and interpreter can be used by every user, and changed by their owner only."""
    folder = Path(__file__).parents[1]
    modes = [path.stat().st_mode for path in (folder, *folder.rglob("*.py"))]
    safe = all(mode & stat.S_IROTH and not mode & (stat.S_IWOTH | stat.S_IWGRP) for mode in modes)
    interpreter = Path(sys.executable).resolve()
    for path in (interpreter, *interpreter.parents):  # such as one below /root
        if not path.stat().st_mode & stat.S_IXOTH:
            how = "make the environment with an interpreter that all may run"
            return Check(False, "package", f"{path}: closed to other users", how)
    found = (
        f"{folder} can be read by all, and changed by its owner only"
        if safe
        else f"{folder}: modes"
    )
    return Check(safe, "package", found, f"chmod -R a+rX,go-w {folder}")


def examine(learners: int = 0) -> Iterator[Check]:
    """Yields one finished check after another; with `learners`, also those of a machine for a class."""
    yield from (check() for check in CHECKS)
    if learners:
        yield from (memory_for(learners), shared_cache(), package_of_all())


def main(arguments: Sequence[str] = ()) -> int:
    """Runs the command line: one line where all is well, else one for each check; returns 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m lab_utils doctor", description=__doc__)
    text = "also: does this machine hold a class of N learners at once?"
    parser.add_argument("--class", dest="learners", type=int, metavar="N", help=text)
    learners = parser.parse_args(arguments).learners
    if learners is not None and learners < 1:
        parser.error(f"--class {learners} is not a number of learners, such as 30")
    checks = list(examine(learners or 0))
    failed = sum(not check.ok for check in checks)
    if failed:
        print(*checks, f"\n{counted(failed, 'check')} failed: see what to do above.", sep="\n")
    else:
        print(f"All is in place. {'; '.join(f'{each.subject}: {each.found}' for each in checks)}.")
    return min(1, failed)


if __name__ == "__main__":
    command.run(lambda: main(sys.argv[1:]))
