"""The line magic %dry_run of a notebook: the command on a program, and its report below the cell.

    %load_ext lab_utils.dry_run
    %dry_run train.py --topology v6e:2x4 -- --use_tpu=True

The program runs in a process of its own, as it does from a terminal: it may end it, or change anything there.
"""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from lab_utils.common import scratch

_BODY = '<body class="lu-page">'


class Shown:
    """What the command has written: a page in a notebook, and its status where there is no page."""

    def __init__(self, page: str, status: int) -> None:
        self._page, self._status = page, status

    def __repr__(self) -> str:
        return f"<%dry_run: exit status {self._status}>"

    def _repr_html_(self) -> str:
        """The report without the page around it."""
        return self._page.partition(_BODY)[2].rpartition("</body>")[0]


def dry_run(line: str) -> Shown:
    """Judges the program that the line names, with the flags of the command; its own follow after "--".

    Raises:
        UsageError: there is no report; the message ends with what the command said last.
    """
    with scratch.folder() as folder:
        file = Path(folder) / "report.html"
        asked = [sys.executable, "-m", "lab_utils.dry_run", "--html", str(file)]
        said, status = _carried_out(asked + arguments(shlex.split(line)))
        if not file.exists():
            raise UsageError(f"no report (exit status {status}): {''.join(said[-5:]).strip()}")
        return Shown(file.read_text(encoding="utf-8"), status)


def _carried_out(words: list[str]) -> tuple[list[str], int]:
    """Runs a command, and shows below the cell what it says on its standard error, as it comes.

    Returns:
        the lines that it said there, and its exit status.
    """
    said = []
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as command:
        try:
            for line in command.stderr:
                said.append(line)
                print(line, end="", file=sys.stderr)
        except KeyboardInterrupt:
            command.terminate()
            raise
    return said, command.returncode


def arguments(words: list[str]) -> list[str]:
    """The arguments of the command for those of the magic, where a program needs no --main in front."""
    first = words[0] if words else ""
    is_program = first and not first.startswith("-") and ":" not in first
    return ["--main", *words] if is_program else words


def register(shell: Any) -> None:
    """Gives a notebook the magic."""
    shell.register_magic_function(dry_run, "line", "dry_run")
