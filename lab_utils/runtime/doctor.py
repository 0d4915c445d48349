"""Is everything here that the labs need? One line if so, else a line for each thing, and what to do."""

import argparse
import importlib.metadata
import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab_utils import DISTRIBUTION, runtime
from lab_utils.common import command
from lab_utils.common.figures import counted
from lab_utils.dry_run import cache
from lab_utils.runtime import install, places

MEMORY = 3.0  # GiB free: lab 00 takes 2.5 while nothing is cached (hub.md), and a browser stands beside it
# GiB of a learner: a server, a kernel with TensorFlow and a dry run (hub.md says how it was measured).
LEARNER = 1.3
_PATIENCE = 120  # seconds that a framework may take to be imported
DISK = 2.0  # GiB free in the working folder: TFRecords, checkpoints and exports of all labs
CHECKOUT = (Path(__file__).parents[2] / "Makefile").exists()
# In a handout there is neither a Makefile nor a lock file.
INSTALL = "`make setup`" if CHECKOUT else "run a lab's first cell: it installs what is missing"


@dataclass(frozen=True)
class Check:
    """One line of the report; `remedy` is what to do, where `ok` is False."""

    ok: bool
    subject: str
    state: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"[{'OK' if self.ok else 'FAIL'}] {self.subject}: {self.state}"
        return line if self.ok else f"{line}\n       {self.remedy}"


def _in_child(subject: str, code: str) -> Check:
    """What a framework says of itself, or its last line of error, from a process of its own.

    A framework that cannot even be imported, or that aborts, must not take the doctor with it.
    """
    command = [sys.executable, "-c", code]
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        return Check(False, subject, f"no answer in {_PATIENCE} s", INSTALL)
    lines = (child.stderr if child.returncode else child.stdout).strip().splitlines()
    state = lines[-1] if lines else f"exit status {child.returncode}"
    return Check(child.returncode == 0, subject, state, INSTALL)


def python() -> Check:
    """The interpreter's version."""
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Check(fits, "Python", platform.python_version(), "use Python 3.11, 3.12 or 3.13")


def packages() -> Check:
    """Every package that the labs ask for is here, in a version that they accept.

    What runs JupyterLab need not be in its kernel, and is not looked at.
    """
    from packaging.requirements import Requirement

    try:
        requirements = list(map(Requirement, importlib.metadata.requires(DISTRIBUTION) or []))
    except importlib.metadata.PackageNotFoundError:
        return Check(False, "packages", "lab_utils is not installed", INSTALL)
    extras, wrong = {"", "course", "convert"}, {}
    # An extra may ask for others of this package's own: these requirements come first.
    for requirement in sorted(requirements, key=lambda one: one.name != DISTRIBUTION):
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": name}) for name in extras):
            continue
        extras |= requirement.extras if requirement.name == DISTRIBUTION else set()
        if not install.is_met(requirement):
            version, wanted = install.version(requirement.name), requirement.specifier
            has = f"is {version}, not {wanted}" if version else "is missing"
            wrong[f'"{requirement.name}{wanted}"'] = f"{requirement.name} {has}"
    state = "; ".join(wrong.values()) or "all installed, in versions that fit"
    remedy = INSTALL if CHECKOUT else f"%pip install {' '.join(wrong)}"
    return Check(not wrong, "packages", state, remedy)


def loaded() -> Check:
    """What this process has loaded is what is installed: pip replaces a package under a running kernel.

    Looks at what other packages replace most, and what then fails in odd places.
    """
    stale = []
    for name, package in (("numpy", "numpy"), ("google.protobuf", "protobuf"), ("PIL", "pillow")):
        here, version = getattr(sys.modules.get(name), "__version__", ""), install.version(package)
        if here and version != here:
            stale.append(f"{package} {here}, but {version} is installed now")
    state = f"has loaded {'; '.join(stale)}" if stale else "has loaded what is installed"
    remedy = "restart the kernel (Colab: Runtime > Restart session), and run this cell again"
    return Check(not stale, "kernel", state, remedy)


def tensorflow() -> Check:
    """TensorFlow imports, and the genuine TPUEstimator with it."""
    code = (
        "from lab_utils.estimator import tf, tpu; tpu.TPUEstimator;"
        "gpus = len(tf.config.list_physical_devices('GPU'));"
        "print(f'{tf.__version__}, TPUEstimator imports; GPUs it sees: {gpus}')"
    )
    return _in_child("TensorFlow with TPUEstimator", code)


def tpu_compiler() -> Check:
    """libtpu can compile for a TPU that is not here. Linux on x86-64 alone has it."""
    if install.machine() != install.LIBTPU_MACHINE:
        state = f"not made for {install.machine()}: the dry run skips its stage compile"
        return Check(True, "TPU compiler", state)
    code = (
        "import os; from lab_utils import runtime;"
        "os.environ.update(runtime.NO_CHIP, JAX_PLATFORMS='cpu'); import jax, importlib.metadata as m;"
        "from jax.experimental import topologies;"
        "chip = topologies.get_topology_desc('v2:2x2', 'tpu').devices[0].device_kind;"
        "print(f'libtpu {m.version(\"libtpu\")} with jax {jax.__version__} knows the {chip}')"
    )
    return _in_child("TPU compiler", code)


def machine() -> Check:
    """Where this runs, and on what; the labs need no accelerator."""
    return Check(True, "machine", str(runtime.detect()))


def memory() -> Check:
    """Free memory."""
    free = places.free_memory() / 2**30
    remedy = f"close other programs: the labs need {MEMORY:.0f} GiB free"
    return Check(free >= MEMORY, "memory", f"{free:.1f} GiB free", remedy)


def disk() -> Check:
    """Free space in the working folder."""
    try:
        free = shutil.disk_usage(Path.cwd()).free / 2**30
    except OSError as error:
        return Check(False, "disk", error.strerror or str(error), "change to a folder that exists")
    if not os.access(Path.cwd(), os.W_OK):
        remedy = (
            "the labs write below the working folder: start them in a folder where you may write"
        )
        return Check(False, "disk", "this folder cannot be written", remedy)
    remedy = f"the labs write up to {DISK:.0f} GiB below the working folder: make room"
    return Check(free >= DISK, "disk", f"{free:.1f} GiB free here", remedy)


CHECKS: tuple[Callable[[], Check], ...] = (python, packages, tensorflow, tpu_compiler)
CHECKS += (machine, memory, disk)


def memory_for(learners: int) -> Check:
    """Room for so many learners on this machine at once."""
    demand, free = learners * LEARNER, places.free_memory() / 2**30
    at_once = f"{counted(learners, 'learner')} at work at once may take {demand:.0f}"
    remedy = "teach in groups, or use a larger machine"
    return Check(free >= demand, "memory for a class", f"{free:.0f} GiB free; {at_once}", remedy)


def shared_cache() -> Check:
    """The folder of compilations that learners share is named and filled."""
    folder = os.environ.get(cache.SHARED)
    entries = list(Path(folder or os.devnull).glob("lab_utils/dry_run/*.json.gz"))
    state = f"{len(entries)} entries in {folder}" if folder else f"{cache.SHARED} is not set"
    return Check(
        bool(entries), "shared cache", state, "fill it as solutions/instructor/hub.md says"
    )


def read_only() -> Check:
    """Package and shared cache cannot be changed by whoever asks: what they hold is believed."""
    folders = [Path(__file__).parents[1], Path(os.environ.get(cache.SHARED, os.devnull))]
    open_ = [str(path) for path in folders if path.is_dir() and os.access(path, os.W_OK)]
    state = (
        f"{', '.join(open_)} can be changed"
        if open_
        else "neither the package nor the cache can be changed"
    )
    return Check(
        not open_,
        "changed by this user",
        state,
        "run this as a learner, or run chmod -R a+rX,go-w as root",
    )


def readable() -> Check:
    """Interpreter, package and shared cache let every user in, with all folders on the way to them."""
    paths = [Path(sys.executable).resolve(), Path(__file__).resolve()]
    paths += [Path(folder) for folder in [os.environ.get(cache.SHARED)] if folder]
    closed = [
        str(part)
        for path in paths
        for part in (path, *path.parents)
        if part.exists()
        and not part.stat().st_mode & (stat.S_IXOTH if part.is_dir() else stat.S_IROTH)
    ]
    state = (
        f"other users cannot read {closed[0]}" if closed else "all users can read what they need"
    )
    remedy = (
        "make the environment in a folder that all users can read, with an interpreter that all "
        "can run, such as /usr/bin/python3.11"
    )
    return Check(not closed, "other users", state, remedy)


def private_homes() -> Check:
    """Learners cannot read each other's homes."""
    import pwd  # not on Windows

    homes = [Path(entry.pw_dir) for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 60_000]
    others = stat.S_IROTH | stat.S_IXOTH
    open_ = [str(home) for home in homes if home.is_dir() and home.stat().st_mode & others]
    state = (
        f"{counted(len(open_), 'home')} open to all users: {open_[0]} ..." if open_ else "closed"
    )
    return Check(not open_, "homes", state, "run chmod 700 on each, as root")


def examine(learners: int = 0) -> Iterator[Check]:
    """Yields one finished check after another; with `learners`, also those of a machine for a class."""
    yield from (check() for check in CHECKS)
    if learners:
        yield from (memory_for(learners), shared_cache(), read_only(), readable(), private_homes())


def main(arguments: Sequence[str] = ()) -> int:
    """Runs the command line: one line where all is well, else one for each check; returns 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m lab_utils doctor", description=__doc__)
    text = "also check whether N learners can work on this machine at once"
    parser.add_argument("--class", dest="learners", type=int, metavar="N", help=text)
    learners = parser.parse_args(arguments).learners
    if learners is not None and learners < 1:
        parser.error(f"--class {learners} is not a number of learners, such as 30")
    checks = list(examine(learners or 0))
    failed = sum(not check.ok for check in checks)
    if failed:
        print(*checks, f"\n{counted(failed, 'check')} failed: see what to do above.", sep="\n")
    else:
        states = "; ".join(f"{check.subject}: {check.state}" for check in checks)
        print(f"All is in place. {states}.")
    return min(1, failed)


if __name__ == "__main__":
    command.run(lambda: main(sys.argv[1:]))
