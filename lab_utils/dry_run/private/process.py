"""Starts the child process that imports JAX, and brings its result back.

JAX is kept out of the caller's process: its flags, its number of devices and its 64-bit switch hold
for a whole process, and libtpu is 700 MB. A child can be stopped at any moment, and leaves nothing.
"""

import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import lab_utils
from lab_utils import runtime
from lab_utils.common import scratch
from lab_utils.dry_run import cache
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.runtime import install

# In a sum the virtual cores wait for each other: on a slow machine longer than XLA's 40 seconds.
_PATIENCE = ("warn_stuck", "terminate")

_INSTALL = "Install them with: pip install jax==0.10.2 libtpu==0.0.42.1"

CHILD = "lab_utils.dry_run.private.child"

Progress = Callable[[str], None]
Answer = Callable[[Progress | None], tuple[dict[str, Any], bool]]

# The keys of a job's result: of a compilation, what private.jax.answer returns, or a refusal.
_RESULTS = {
    "compile": ({"memory", "cost", "hlo"}, {"refused", "message"}),
    "run": ({"runs"},),
    "run_jax": ({"runs"},),
}

# The range of JAX, stated here alone. Tried, each with a libtpu that its own jax[tpu] asks for: 0.7.2, 0.8.3,
# 0.9.2, 0.10.2 and 0.12.0.1; and 0.7.2 with libtpu 0.0.21.1, as Colab ships it. A later one is trusted.
OLDEST_JAX, NEWEST_JAX = "0.7.2", "0.12.0"
_RANGE = f"jax {OLDEST_JAX} to {NEWEST_JAX}"


class ChildFailed(RuntimeError):
    """The child process ended without a result; the message holds the last lines that it wrote."""


# A line of a traceback that names the exception; XLA's own messages go on after it.
_EXCEPTION = re.compile(r"[\w.]+(Error|Exception): ")


def exception_line(error: ChildFailed) -> str:
    """The line of what the child said last that names its exception, else its last line."""
    lines = str(error).splitlines()
    return next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[-1])


class TookTooLong(RuntimeError):
    """The child process was ended when the time was up that a person gave it; the message says so."""


class NoRoom(RuntimeError):
    """This machine has too little memory or disk for the child: that says nothing about the program."""


# The compiler's own refusal of a program that is too large for a TPU comes as a result.
_NO_ROOM = re.compile(
    r".*(?:RESOURCE_EXHAUSTED|\bMemoryError\b|bad_alloc|Cannot allocate memory|No space left on device).*"
)
_MAKE_ROOM = "close other programs, use a smaller batch, or leave this stage out (--stages)"


def versions() -> dict[str, str]:
    """The installed versions of jax and libtpu, without those that are missing."""
    numbers = {}
    for name in ("jax", "libtpu"):
        with suppress(importlib.metadata.PackageNotFoundError):
            numbers[name] = importlib.metadata.version(name)
    return numbers


def newer_jax() -> str:
    """A sentence where the installed JAX is newer than any that was tried; "" where it is not."""
    installed = versions().get("jax", NEWEST_JAX)
    if _release(installed)[:2] <= _release(NEWEST_JAX)[:2]:
        return ""
    return f"jax {installed} is newer than the versions that the dry run was tested with, {_RANGE}"


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def require(*packages: str) -> None:
    """Asks for "jax" or "libtpu", the TPU's compiler.

    Raises:
        Unavailable: one is not installed, or JAX is too old; the message says how to get it.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    installed, advice = versions().get("jax", NEWEST_JAX), _INSTALL
    if "libtpu" in missing and install.machine() != install.LIBTPU_MACHINE:
        advice = (
            f"libtpu has wheels only for {install.LIBTPU_MACHINE}, but this is "
            f"{install.machine()}: run this stage in Colab or on a Linux machine. The other stages "
            "work here."
        )
    if missing:
        raise Unavailable(f"{' and '.join(missing)} not installed. {advice}")
    if _release(installed) < _release(OLDEST_JAX):
        raise Unavailable(f"jax {installed} is too old for the dry run, {_RANGE}. {advice}")


_limit: ContextVar[float | None] = ContextVar("seconds for a compilation", default=None)


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Context manager: a compilation that takes longer is ended, and raises TookTooLong; None: no limit.

    Raises:
        ValueError: the number of seconds is not positive, or more than the system can wait for.
    """
    if seconds is not None and not 0 < seconds <= threading.TIMEOUT_MAX:
        raise ValueError(
            f"limit={seconds} must be above 0 and at most {threading.TIMEOUT_MAX:.0f} seconds"
        )
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


class Running:
    """A job in a process of its own that was started; `result` waits for it."""

    def __init__(self, folder: Path, cores: int) -> None:
        self._folder, self._limit, self._is_late = folder, 0.0, False
        self._clock: threading.Timer | None = None
        with (folder / "errors.txt").open("wb") as errors:
            self._child = subprocess.Popen(
                [sys.executable, "-m", CHILD, str(folder)],
                env=_environment(cores, folder),
                stdin=subprocess.PIPE,  # never written to: its end tells the child that this process died
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
            )

    def end_after(self, seconds: float) -> None:
        """Ends the process after so many seconds, unless the job is done before."""
        self._limit, self._clock = seconds, threading.Timer(seconds, self._end_late)
        self._clock.daemon = True
        self._clock.start()

    def _end_late(self) -> None:
        self._is_late = True
        self._child.kill()

    def result(self, progress: Progress | None = None) -> dict[str, Any]:
        """Waits for the job; its result.

        Raises:
            ChildFailed: it ended without a result.
            NoRoom: so it did, for want of memory or disk here.
            TookTooLong: it was ended at its limit.
        """
        for line in self._child.stdout:
            if progress:
                progress(line.strip())
        code = self._child.wait()
        answer = self._folder / "result.json"
        if code and self._is_late:
            raise TookTooLong(f"not compiled within {self._limit:g} s")
        if code or not answer.exists():
            errors = (self._folder / "errors.txt").read_text(errors="replace").strip()
            last = "\n".join(errors.splitlines()[-30:])
            raise _failure(code, last or "nothing on its standard error")
        return json.loads(answer.read_text(encoding="utf-8"))

    def end(self) -> None:
        """Ends the process where it still runs."""
        if self._clock is not None:
            self._clock.cancel()
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()


@contextmanager
def start_job(
    job: str, request: dict[str, Any], files: dict[str, bytes], *, cores: int = 1
) -> Iterator[Running]:
    """Starts a job of child.py; on leaving it is ended, and its folder removed.

    The folder holds `files` for the child. `cores` is the number of virtual devices of its CPU.
    """
    with scratch.folder() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        (folder / "request.json").write_text(json.dumps({"job": job} | request), encoding="utf-8")
        running = Running(folder, cores)
        if job == "compile" and (limit := _limit.get()) is not None:
            running.end_after(limit)
        try:
            yield running
        finally:
            running.end()


@contextmanager
def answering(
    job: str, request: dict[str, Any], files: dict[str, bytes], *packages: str, cores: int = 1
) -> Iterator[Answer]:
    """Context manager: the cached result of a job, or the job in a process of its own.

    Args:
        files, cores: as `start_job`.
        packages: those that the job imports.

    Yields:
        what waits for the result, and says whether it is that of an earlier dry run.

    Raises:
        Unavailable: a package is not installed here.
        ChildFailed, NoRoom, TookTooLong: the process ended without a result (what waits raises it).
    """
    contents = [part for name in sorted(files) for part in (name, files[name])]
    name = cache.key(job, request, *contents, versions())
    if (entry := cache.read(name, _RESULTS[job])) is not None:
        yield lambda progress: (entry, True)
        return
    require(*packages)

    def wait(progress: Progress | None) -> tuple[dict[str, Any], bool]:
        result = running.result(progress)
        if result.get("refused") != "topology":  # libtpu may only be busy
            cache.write(name, result)
        return result, False

    with start_job(job, request, files, cores=cores) as running:
        yield wait


def _failure(code: int, output: str) -> Exception:
    """What became of a child that ended without a result."""
    if code == -signal.SIGKILL:
        return NoRoom(
            f"JAX's process was killed (signal 9), most likely because memory ran out: {_MAKE_ROOM}"
        )
    if no_room := _NO_ROOM.findall(output):
        reason = textwrap.shorten(no_room[-1], 50)
        return NoRoom(f"there is not enough room here ({reason}): {_MAKE_ROOM}")
    how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
    how += f" ({newer})" if (newer := newer_jax()) else ""
    return ChildFailed(f"the process that runs JAX {how}; it said last:\n{output}")


def _environment(cores: int, folder: Path) -> dict[str, str]:
    package = str(Path(lab_utils.__file__).parents[1])
    flags = [
        flag
        for flag in os.environ.get("XLA_FLAGS", "").split()
        if "force_host_platform_device_count" not in flag
    ]
    if _release(versions().get("jax", "0")) >= (0, 10):  # jax 0.7 does not know these
        flags += [f"--xla_cpu_collective_call_{name}_timeout_seconds=3600" for name in _PATIENCE]
    settings = {
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
        "XLA_FLAGS": " ".join([*flags, f"--xla_force_host_platform_device_count={cores}"]),
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TPU_LOG_DIR": str(folder),
    }
    return os.environ | runtime.NO_CHIP | settings
