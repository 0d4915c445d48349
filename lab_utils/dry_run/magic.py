"""The line magic %dry_run of a notebook: the command on a program, and its report below the cell.

    %load_ext lab_utils.dry_run
    %dry_run train.py --topology v6e:2x4 -- --use_tpu=True

The program runs in a process of its own, as it does from a terminal: it may end it, or change anything there.
"""

import shlex
import subprocess
import sys
import threading
from typing import IO, Any

from IPython.core.error import UsageError

_BODY = '<body class="lu-page">'


class Shown:
    """What the command has printed: a page in a notebook, and its status where there is no page."""

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
    asked = [sys.executable, "-m", "lab_utils.dry_run", "--format", "html"]
    asked += arguments(shlex.split(line))
    command = subprocess.Popen(
        asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    said: list[str] = []
    reader = threading.Thread(target=_tell, args=(command.stderr, said), daemon=True)
    reader.start()
    try:
        page = command.stdout.read()
        command.wait()
    except KeyboardInterrupt:
        command.terminate()
        raise
    reader.join()
    if _BODY not in page:
        last = "".join(said[-5:]).strip()
        raise UsageError(f"no report (exit status {command.returncode}): {last}")
    return Shown(page, command.returncode)


def _tell(stream: IO[str], said: list[str]) -> None:
    """Shows below the cell what the command says, as it comes."""
    for line in stream:
        said.append(line)
        print(line, end="", file=sys.stderr)


def arguments(words: list[str]) -> list[str]:
    """The arguments of the command for those of the magic, where a program needs no --main in front."""
    first = words[0] if words else ""
    is_program = first and not first.startswith("-") and ":" not in first
    return ["--main", *words] if is_program else words


def register(shell: Any) -> None:
    """Gives a notebook the magic."""
    shell.register_magic_function(dry_run, "line", "dry_run")
