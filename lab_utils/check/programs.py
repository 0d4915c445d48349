"""Programs that learners edit in a cell: how a marked notebook names one, and such a cell as Python.

A cell of a source notebook names a patient of the clinic:

    %%writefile plateau.py
    # TODO 1a: fix this program
    # PROGRAM: plateau

In the lab the sick program stands there, in the solution the healthy one. `# REASONS: plateau` in another
cell becomes the list of its reasons by letter. In the solution's module such a cell is a text, whose name is
that of the file.
"""

import difflib
import re
import tempfile
from pathlib import Path
from typing import Any

from lab_utils.check.clinic.ward import ward
from lab_utils.check.outcome import Wrong
from lab_utils.check.same import a
from lab_utils.check.tools import expect, failure
from lab_utils.common import files

AS_IT_WAS = "The program is unchanged. Edit its cell, then run that cell, which writes the file."
_PROGRAM = re.compile(r"^# PROGRAM: (\w+)$", re.M)
_REASONS = re.compile(r"^# REASONS: (\w+)$", re.M)
_FILE = re.compile(r"\A%%writefile (\S+)\n(.*)\Z", re.S)


def expand(source: str) -> str:
    """A cell of a source notebook with the program, or the reasons, that it names."""

    def program(match: re.Match) -> str:
        patient = ward(match[1])
        return marked(patient.healthy, patient.sick)

    def reasons(match: re.Match) -> str:
        return "\n".join(f"# {letter}: {why}" for letter, why in ward(match[1]).choices.items())

    return _REASONS.sub(reasons, _PROGRAM.sub(program, source))


def marked(right: str, wrong: str) -> str:
    """The program `right`, with a marked region where `wrong`, from which learners start, is another one."""
    ours, theirs = right.splitlines(), wrong.splitlines()
    lines, done = [], 0
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if tag != "replace":  # then with the line above, so that no side is empty
            start, first = start - 1, first - 1
        starters = (f"# STARTER: {line}".rstrip() for line in theirs[first:last])
        lines += [*ours[done:start], "### BEGIN SOLUTION", *starters, *ours[start:end]]
        lines.append("### END SOLUTION")
        done = end
    return "\n".join(lines + ours[done:])


def as_python(source: str) -> str:
    """A cell as Python, for a module: the text of a file becomes a global value under the file's name.

    Raises:
        ValueError: the file holds three single quotes, which end such a text.
    """
    match = _FILE.match(source)
    if not match:
        return source
    if "'''" in match[2]:
        raise ValueError(f"{match[1]}: write three double quotes, not three single ones")
    return f"globals()[{match[1]!r}] = r'''\n{match[2].rstrip()}\n'''[1:]\n"


def read_program(program: Any, file: str) -> str:
    """A program that a learner hands over: the text of its file, or a text of several lines as it is.

    Raises:
        Wrong: there is no such file, or it is something else.
    """
    expect(isinstance(program, str | Path), f'Hand over the file, as "{file}", not {a(program)}.')
    if "\n" in str(program):
        return str(program)
    try:
        return Path(program).read_text("utf-8")
    except (OSError, ValueError) as error:
        where = f"{program} cannot be read in {Path.cwd()}"
        raise Wrong(f"{where}: run the cell that writes it. {failure(error)}") from None


def written(text: str, file: str) -> str:
    """Writes a program into a temporary folder of its own; returns its path."""
    path = Path(tempfile.mkdtemp(prefix="program-")) / file
    files.write(path, text)
    return str(path)
