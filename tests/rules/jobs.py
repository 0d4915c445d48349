"""One process for all jobs of JAX in these tests: a process for each costs two seconds of imports."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_utils.dry_run.private import process

_END = "end of the job"
_LOOP = f"""
import json, sys, traceback
from pathlib import Path
from lab_utils.dry_run.private import child

jobs = {{"compile": child._compile, "run": child._run}}
for line in sys.stdin:
    folder = Path(line.strip())
    request = json.loads((folder / "request.json").read_text())
    try:
        result = jobs[request["job"]](request, folder)
        (folder / "result.json").write_text(json.dumps(result))
    except Exception:
        (folder / "error.txt").write_text(traceback.format_exc())
    print({_END!r}, flush=True)
"""


class Jobs:
    """Stands for process.Running, until `close`; its jobs are done one after the other, when asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._process = folder, None

    def __call__(self, folder: Path, cores: int) -> "_Job":
        return _Job(self, folder)

    def do(self, folder: Path, progress: process.Progress | None) -> None:
        """Raises ChildFailed where the job raised, or the process ended."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _LOOP],
                env=process._environment(8, self._folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        print(folder, file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.strip() == _END:
                break
            if progress:
                progress(line.strip())
        error = folder / "error.txt"
        if error.exists():
            raise process.ChildFailed(f"it said last:{os.linesep}{error.read_text()}")
        if not (folder / "result.json").exists():
            raise process.ChildFailed("the process that runs JAX ended")

    def close(self) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()


@dataclass(frozen=True)
class _Job:
    jobs: Jobs
    folder: Path

    def result(self, progress: process.Progress | None = None) -> dict[str, Any]:
        self.jobs.do(self.folder, progress)
        return json.loads((self.folder / "result.json").read_text())

    def end(self) -> None:
        """A job that was not asked for was not begun."""
