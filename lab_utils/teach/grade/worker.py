"""Runs a notebook and our checks in a kernel: `python -P -m lab_utils.teach.grade.worker`.

The job comes as JSON on standard input, and what came of it goes as JSON to standard output. This process
stands between the grader and the kernel: what a learner's code does to its parent, it does to this one.
"""

import ast
import contextlib
import json
import os
import re
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lab_utils.common import loading
from lab_utils.teach.grade.runs import ENDED, INCORRECT, MEMORY, TIMED_OUT, Limits, Result
from lab_utils.teach.grade.submissions import ROOT
from lab_utils.teach.marks import CHECK

# nbformat imports jsonschema, which makes a grammar of addresses from it: 2 s. No address is checked here.
with loading.without("rfc3987_syntax"):
    import nbformat.v4
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import DeadKernelError

_TICK = 0.5  # seconds between two looks at time and memory
_LONGER = 5  # times the limit of a step, for a cell as it was handed out
_STUBBORN = 5  # seconds in which code should end after Ctrl-C
_MOST = 4000  # characters of a message
_MOST_MISSING = 10  # modules of another place that one cell may import
_TEXT = Path(__file__).with_name("kernel.py").read_text(encoding="utf-8")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"^(?:Cell In\[\d+\], line |-+> )(\d+)", re.M)  # IPython 9 and 7
_SYNTAX = re.compile(r" \([^()]*, line (\d+)\)$")  # the cell by IPython's name


def main() -> None:
    """Does the job of standard input."""
    nowhere, tell = os.open(os.devnull, os.O_RDWR), os.dup(1)
    job = json.load(sys.stdin)
    os.dup2(nowhere, 1)  # what a kernel inherits
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # a learner's code may send them
    try:
        told = _Grading(job).outcome()
    except Exception as error:
        told = {"problem": f"the grader failed here ({type(error).__name__}: {error})"}
    with os.fdopen(tell, "w") as output:
        json.dump(told, output)


class Ended(Exception):
    """The kernel has ended; `limit` says why."""

    def __init__(self, limit: Result) -> None:
        super().__init__(limit.why)
        self.limit = limit


class _Grading:
    """A notebook run from its first cell to its last, then its checks; again without what ends the kernel."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job, self._limits = job, Limits(**job["limits"])
        self._end = time.monotonic() + self._limits.total
        self._results: dict[str, Result] = {}  # of checks, by TODO
        self._cells: dict[str, Result] = {}  # of cells that failed or met a limit, by label
        self._left_out: set[str] = set()
        self._ours: list[str] = []
        self._now = ""  # the label of the cell, or the TODO whose check runs

    def outcome(self) -> dict[str, Any]:
        """The results of checks and cells, and a problem where there are none."""
        problem = ""
        while not problem and self._open():
            self._now = ""
            try:
                with Kernel(self._limits, self._end) as kernel:
                    self._run_all(kernel)
            except Ended as ended:
                problem = self._without(ended.limit)
            except RuntimeError as error:  # of such a cell; nbclient: no kernel
                problem = f"the lab's own cells do not run here ({error})"
        return {
            "problem": problem,
            "results": {id: asdict(result) for id, result in self._results.items()},
            "cells": {label: asdict(result) for label, result in self._cells.items()},
            "ours": self._ours,
        }

    def _open(self) -> list[str]:
        return [id for id in self._job["checks"] if id not in self._results]

    def _run_all(self, kernel: "Kernel") -> None:
        kernel.call("prepare")
        given = [{"label": "", "source": each, "own": False} for each in self._job["given"]]
        waiting = [*given, *self._job["cells"]]
        waiting = [cell for cell in waiting if cell["label"] not in self._left_out]
        waiting = [cell for cell in waiting if not self._of_a_file(cell)]
        while waiting:  # a name may be given further down: learners run cells in other orders
            failed = [cell for cell in waiting if self._run(kernel, cell) == "NameError"]
            waiting = failed if len(failed) < len(waiting) else []
        for id in self._open():
            self._now = id
            result, ours = kernel.judge(id, self._job["checks"][id])
            self._results[id] = result
            self._ours += [id] if ours else []

    def _of_a_file(self, cell: dict[str, Any]) -> bool:
        """Whether a cell only checks a file, as it was handed out: `judge` does the same at the end.

        Other checks are run, too, since `working` hands out a learner's object once its check was right.
        Nothing hands out files, and their checks take longest: they run programs, and judge them.
        """
        check = None if cell["own"] else CHECK.search(cell["source"])
        arguments = self._job["checks"].get(check[1], ()) if check else ()
        return any(each.startswith("'") for each in arguments)

    def _run(self, kernel: "Kernel", cell: dict[str, Any]) -> str:
        """Runs a cell; returns the kind of its error."""
        self._now, source, own = cell["label"], cell["source"], cell["own"]
        check = None if own else CHECK.search(source)
        longer = 1 if own or check else _LONGER
        for _ in range(_MOST_MISSING):
            reply = kernel.run(source, self._limits.step * longer)
            if reply.error != "ModuleNotFoundError":
                break
            if not own:
                raise RuntimeError(reply.text)
            kernel.call("stand_in", reply.text)
        self._cells.pop(self._now, None)
        if reply.limit or reply.error:
            place = f"{self._now}{reply.line and ', line '}{reply.line}"
            text = f"{reply.error}: {reply.text}"[:_MOST]
            self._cells[self._now] = reply.limit or Result(INCORRECT, text, place)
        if check and reply.limit:
            self._results[check[1]] = reply.limit
        return reply.error

    def _without(self, limit: Result) -> str:
        """What ended the kernel is left out in the next one; a problem where there will be none."""
        label = self._now
        if time.monotonic() > self._end:
            self._results |= dict.fromkeys(self._open(), limit)
        elif label in self._job["checks"]:
            self._results[label] = limit
        elif not label:
            return f"the lab's own cells do not run here ({limit.why})"
        else:
            self._cells[label] = limit
            self._left_out.add(label)
            (cell,) = (cell for cell in self._job["cells"] if cell["label"] == label)
            if not cell["own"] and (check := CHECK.search(cell["source"])):
                self._results[check[1]] = limit
        return ""


@dataclass
class Reply:
    """How code ended in the kernel: the limit that it met, or the kind, text and line of an error."""

    limit: Result | None = None
    error: str = ""
    text: str = ""
    line: str = ""


class _Client(NotebookClient):
    """nbclient, which keeps no outputs: nobody reads them, and a cell may print without an end."""

    def output(self, *arguments: Any) -> None:
        """Drops an output."""

    def handle_comm_msg(self, *arguments: Any) -> None:
        """Drops what a widget says."""


class Kernel:
    """Context manager: a kernel in a folder of its own, which runs one cell at a time under limits."""

    def __init__(self, limits: Limits, end: float) -> None:
        self._limits, self._end, self._grader = limits, end, os.getppid()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._began, self._seconds = 0.0, 0.0  # 0: nothing runs
        self._limit: Result | None = None
        self._last: dict[str, Any] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Kernel":
        # This environment's own kernel, whatever kernels the machine has installed.
        specs = KernelSpecManager(kernel_dirs=[])
        self._client = _Client(
            nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell()]),
            km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs),
            timeout=None,  # kept here: nbclient's own does not end code that ignores an interrupt
            startup_timeout=int(max(60, self._limits.step)),
            allow_errors=True,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": tempfile.mkdtemp()}},
            on_cell_executed=self._keep,
        )
        self._stack.enter_context(self._client.setup_kernel(cleanup_kc=True))
        self._process = psutil.Process(self._client.km.provisioner.pid)
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._closed.set()
        self._kill()
        with contextlib.suppress(Exception):  # of a kernel whose connections are broken
            self._stack.close()

    def run(self, source: str, seconds: float, history: bool = True) -> Reply:
        """Runs code as a cell.

        Raises:
            Ended: the kernel ended.
        """
        cell = nbformat.v4.new_code_cell(source)
        with self._lock:
            self._began, self._seconds, self._last = time.monotonic(), seconds, {}
        try:
            self._client.execute_cell(cell, 0, store_history=history)
        except DeadKernelError:
            raise Ended(self._limit or Result(ENDED, "Its process ended.")) from None
        except Exception as error:
            # It has written into its own connections, or replaced what writes there.
            why = f"Its process sent what cannot be read ({type(error).__name__})."
            raise Ended(self._limit or Result(ENDED, why)) from None
        finally:
            with self._lock:
                self._began, limit, self._limit = 0.0, self._limit, None
        text = self._last.get("evalue", "")
        lines = _LINE.findall(_COLOUR.sub("", "\n".join(self._last.get("traceback", []))))
        lines += _SYNTAX.findall(text)
        return Reply(limit, self._last.get("ename", ""), _SYNTAX.sub("", text), (lines or [""])[-1])

    def call(self, function: str, *arguments: Any, seconds: float = 60) -> Reply:
        """Runs a function of `kernel` there."""
        text = f"{_TEXT}\n{function}(*{arguments!r})"
        return self.run(
            f"__import__('builtins').exec({text!r}, {{'__name__': 'grader'}})",
            seconds,
            history=False,
        )

    def judge(self, todo: str, arguments: Sequence[str]) -> tuple[Result, bool]:
        """Our verdict on a TODO, and whether it is on an object of our own.

        Args:
            todo: its id.
            arguments: of its check, as expressions of the notebook's names.

        Raises:
            Ended: the kernel ended.
        """
        answer = Path(secrets.token_hex(16)).resolve()
        given = todo, list(arguments), str(ROOT), str(answer)
        reply = self.call("judge", *given, seconds=self._limits.step)
        if reply.limit:
            return reply.limit, False
        if not answer.exists():
            why = f"Your code raised {reply.error}: {reply.text}"[:_MOST]
            return Result(INCORRECT, why if reply.error else "The check gave no verdict."), False
        status, why, ours = ast.literal_eval(answer.read_text())
        answer.unlink()
        return Result(status, why[:_MOST]), ours

    def _keep(self, execute_reply: dict[str, Any], **_: Any) -> None:
        self._last = execute_reply["content"]

    def _watch(self) -> None:
        """Ends what meets a limit, and all of it where the grader has ended."""
        while not self._closed.wait(_TICK):
            with self._lock:
                if os.getppid() != self._grader:
                    self._kill()
                    os._exit(1)
                self._look()

    def _look(self) -> None:
        now, late = time.monotonic(), 0.0
        if self._began:
            late = now - self._began - self._seconds
        if now > self._end:
            self._limit = Result(
                TIMED_OUT, f"The notebook took longer than {self._limits.total:g} s."
            )
            self._kill()
        elif sum(map(_memory, self._family())) > self._limits.memory:
            size = f"{self._limits.memory / 2**30:.3g} GiB"
            self._limit = Result(MEMORY, f"It took more than {size} of memory.")
            self._kill()
        elif late > _STUBBORN:
            self._kill()
        elif late > 0 and not self._limit:
            self._limit = Result(TIMED_OUT, f"It took longer than {self._seconds:g} s.")
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGINT)

    def _family(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return [self._process, *self._process.children(recursive=True)]
        return []

    def _kill(self) -> None:
        for process in self._family():
            with contextlib.suppress(psutil.Error):
                process.kill()


def _memory(process: psutil.Process) -> int:
    """Its bytes of memory; 0 where it has ended."""
    with contextlib.suppress(psutil.Error):
        return process.memory_info().rss
    return 0


if __name__ == "__main__":
    main()
