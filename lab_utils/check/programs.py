"""Programs that learners edit in a cell: how a marked notebook names one, and such a cell as Python.

A cell of a source notebook names a patient of the clinic:

    %%writefile plateau.py
    # TODO 1b: fix this program
    # PROGRAM: plateau

In the lab the sick program stands there, in the solution the healthy one. `# REASONS: plateau` in another
cell becomes the list of its reasons by letter. In the solution's module such a cell is a text, whose name is
that of the file.
"""

import difflib
import re

from lab_utils.check.clinic.ward import ward

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
    return f"globals()[{match[1]!r}] = r'''{match[2]}'''\n"
