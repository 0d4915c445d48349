"""What a program finds around it where it is judged: no Colab, and no process that would train unseen.

And what it leaves: streams, handlers of signals and filters of warnings are put back.
"""

import importlib.util
import multiprocessing
import multiprocessing.process
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO
from unittest import mock

from lab_utils.common import interrupts, source
from lab_utils.runtime import colab

_replaced: list[Any] = []  # streams of programs: one that is collected would close what it wraps

ADDRESS = "dry-run.invalid:1"  # of the TPU that programs are given: no such host exists


class _Silent(ModuleType):
    """A module whose functions do nothing."""

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: {} if name == "upload" else None


@contextmanager
def standing_in(path: Path, refuse: Callable[[str], None]) -> Iterator[list[str]]:
    """Context manager for the run of a program; gives the lines where it forks.

    Args:
        refuse: is told of another Python program that it starts, which would train for real; raises.
    """
    text, forks = path.read_text(errors="replace"), []
    if "google.colab" in text and not _has_colab():
        colab.stand_in(_Silent)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.callback(_put_back, sys.stdout, sys.stderr)
        if threading.current_thread() is threading.main_thread():
            for each in interrupts.ENDING:  # a handler may save a checkpoint, and go on
                if (handler := signal.getsignal(each)) is not None:
                    stack.callback(signal.signal, each, handler)
        if "COLAB_TPU_ADDR" in text:  # what Colab gave to notebooks of TensorFlow 1
            stack.enter_context(mock.patch.dict(os.environ, COLAB_TPU_ADDR=ADDRESS))
        start, popen, system, fork = (
            multiprocessing.process.BaseProcess.start,
            subprocess.Popen.__init__,
            os.system,
            getattr(os, "fork", None),
        )

        def start_seen(process: Any) -> None:
            if not _forks(process):
                refuse(f"another process ({_here()})")
            forks.append(_here())  # it has the stand-ins, too, and trains nothing
            start(process)

        def fork_seen() -> int:
            forks.append(_here())
            return fork()

        def refuse_program(command: Any) -> None:
            if program := _program(command):
                refuse(f"`{program}` ({_here()})")

        def popen_seen(self: Any, args: Any, *more: Any, **options: Any) -> None:
            refuse_program(args)
            popen(self, args, *more, **options)

        def system_seen(command: Any) -> int:
            refuse_program(command)
            return system(command)

        execute, replace, leave, here = os.execv, os.execve, os._exit, os.getpid()

        def execv_seen(path: Any, args: Any) -> None:
            refuse_program(args)
            execute(path, args)

        def execve_seen(path: Any, args: Any, env: Any) -> None:
            refuse_program(args)
            replace(path, args, env)

        def exit_seen(status: int) -> None:
            if os.getpid() != here:  # a worker of its own
                leave(status)
            sys.exit(status)

        patch = mock.patch.object
        stack.enter_context(patch(os, "execv", execv_seen))
        stack.enter_context(patch(os, "execve", execve_seen))
        stack.enter_context(patch(os, "_exit", exit_seen))
        stack.enter_context(patch(multiprocessing.process.BaseProcess, "start", start_seen))
        stack.enter_context(patch(subprocess.Popen, "__init__", popen_seen))
        stack.enter_context(patch(os, "system", system_seen))
        if fork:  # Windows has none
            stack.enter_context(patch(os, "fork", fork_seen))
        yield forks


def _put_back(out: TextIO, error: TextIO) -> None:
    """Streams that a program replaced by a log or a Tee; those that it closed or detached are made again."""
    _replaced.extend((sys.stdout, sys.stderr))
    sys.stdout, sys.stderr = _usable(out, 1), _usable(error, 2)


def _usable(stream: TextIO, number: int) -> TextIO:
    try:
        stream.flush()
        return stream
    except (ValueError, OSError):
        return open(number, "w", encoding="utf-8", closefd=False)


def _has_colab() -> bool:
    try:
        return importlib.util.find_spec("google.colab") is not None
    except (ModuleNotFoundError, ValueError):  # no package `google` either; or a stand-in of before
        return False


def _forks(process: Any) -> bool:
    context = multiprocessing.context
    if isinstance(process, context.SpawnProcess | context.ForkServerProcess):
        return False
    return isinstance(process, context.ForkProcess) or multiprocessing.get_start_method() == "fork"


def _program(command: Any) -> str:
    """A Python program that a command runs, as it is written; "" for other commands, and for pip."""
    whole = isinstance(command, str | bytes | os.PathLike)
    words = os.fsdecode(command).split() if whole else [os.fsdecode(each) for each in command]
    python = next((n for n, word in enumerate(words) if Path(word).name.startswith("python")), None)
    if python is None:
        return ""
    rest = words[python + 1 :]
    runs = any(word.endswith(".py") for word in rest) or (
        rest[:1] == ["-m"] and rest[1:2] not in (["pip"], ["venv"], ["ensurepip"])
    )
    return " ".join(["python", *rest]) if runs else ""


def _here() -> str:
    stack = [each for each in traceback.extract_stack() if each.filename != __file__]
    return source.place_of_stack(stack).position
