"""Answers of learners, lab by lab: right ones in other habits, wrong ones with the words that they must hear.

`lab_NN.ANSWERS` holds them by TODO. tests/test_labs.py gives each to its check, and with them the slips that the
checks themselves hold (`todo(slips=...)`), each of which is a `Mutant`, too.
"""

import ast
import importlib
import json
import re
import tempfile
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab_utils.check import programs, sources, todos
from lab_utils.check.clinic.ward import ward

MESSAGES = Path(__file__).with_name("messages")  # a file a lab: what each wrong answer was told
_OF_THIS_MACHINE = re.compile(re.escape(tempfile.gettempdir()) + r"/[^\s'\"]*/")
Words = str | re.Pattern[str]


@dataclass(frozen=True)
class Mutant:
    """A wrong answer: the solution with `old`, which stands there once, replaced by `new`."""

    old: str
    new: str
    says: Words

    def source(self, todo: str) -> str:
        """The solution's module with this mistake in a TODO."""
        return sources.with_slip(todo, self.old, self.new)


@dataclass(frozen=True)
class Right:
    """A right answer as somebody else writes it: `code` is run after the solution, as a cell would be."""

    code: str

    @property
    def cell(self) -> str:
        """The code as it stands in a cell."""
        return textwrap.dedent(self.code).strip()

    def source(self, todo: str) -> str:
        """The solution's module with this cell at its end, whose names win."""
        return f"{_solution(todo)}\n\n{programs.as_python(self.cell)}\n"


def edited(name: str, *changes: tuple[str, str]) -> str:
    """The cell of a program with planted faults after a learner's changes, (old, new), each old once in it."""
    return _changed(name, ward(name).sick, changes)


def rewritten(name: str, *changes: tuple[str, str]) -> str:
    """The cell of such a program as it should be, but for some changes."""
    return _changed(name, ward(name).healthy, changes)


def _changed(name: str, text: str, changes: Sequence[tuple[str, str]]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{text.count(old)} times in {name}.py: {old}"
        text = text.replace(old, new)
    return f"%%writefile {name}.py\n{text}"


def as_object(names: tuple[str, ...]) -> Right:
    """The solution's functions as objects, which have no `__globals__` and no names of parameters."""
    code = f"""
        class Answer_:
            def __init__(self, function):
                self.function = function

            def __call__(self, *given):
                return self.function(*given)

        for name in {names}:
            if isinstance(globals()[name], type(lambda: 0)):
                globals()[name] = Answer_(globals()[name])
    """
    return Right(code)


@dataclass(frozen=True)
class Wrong(Right):
    """A wrong answer as somebody else writes it, a cell as in `Right`."""

    says: Words


@dataclass(frozen=True)
class Forgotten:
    """The solution without one of its returns: what stood there is computed and thrown away."""

    line: int
    column: int
    says: Words = "is a return missing?"

    def source(self, todo: str) -> str:
        """The solution's module without that return."""
        lines = _solution(todo).splitlines(keepends=True)
        text = lines[self.line - 1]
        lines[self.line - 1] = text[: self.column] + text[self.column :].removeprefix("return ")
        return "".join(lines)


def _solution(todo: str) -> str:
    return sources.text(todos.lab_of(todo))


Answer = Mutant | Right | Wrong | Forgotten


def of_lab(number: int) -> dict[str, list[Answer]]:
    """The answers kept for a lab, by TODO."""
    return importlib.import_module(f"wrong_answers.lab_{number:02d}").ANSWERS


def heard(says: Words, message: str) -> bool:
    """Whether a message holds those words: literally, or as the pattern that `re.compile` made."""
    return bool(re.search(says if isinstance(says, re.Pattern) else re.escape(says), message))


def key(todo: str, answer: Answer) -> str:
    """The name of an answer among the stored messages, by what it holds."""
    return f"{todo}-{zlib.crc32(repr(answer).encode()):08x}"


def messages(lab: int) -> dict[str, str]:
    """What the checks told the wrong answers of a lab when they last ran, by `key`."""
    path = MESSAGES / f"{lab:02d}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def store(lab: int, told: dict[str, str]) -> None:
    """Writes what all wrong answers of a lab were told."""
    MESSAGES.mkdir(exist_ok=True)
    told = {key: _OF_THIS_MACHINE.sub("", message) for key, message in told.items()}
    text = json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True)
    (MESSAGES / f"{lab:02d}.json").write_text(f"{text}\n", encoding="utf-8")


def of_todo(entry: todos.Todo) -> list[Answer]:
    """The answers kept for a TODO, then the slips that its check holds."""
    slips = [Mutant(slip.old, slip.new, slip.says) for slip in entry.slips]
    return [*of_lab(entry.lab).get(entry.id, []), *slips]


def forgotten(todo: str) -> Iterator[Forgotten]:
    """For each function that returns something within a TODO's last region, its last return forgotten."""
    solution, region = _solution(todo), sources.regions(todos.lab_of(todo))[todo][-1]
    first = solution[: solution.index(region)].count("\n") + 1
    lines = range(first, first + region.count("\n") + 1)
    for function in ast.walk(ast.parse(solution)):
        if isinstance(function, ast.FunctionDef):
            returns = [each for each in _returns(function) if each.lineno in lines]
            if returns:
                yield Forgotten(returns[-1].lineno, returns[-1].col_offset)


def _returns(function: ast.FunctionDef) -> list[ast.Return]:
    """A function's own returns of a value, from top to bottom."""
    found, inside = [], list(function.body)
    while inside:
        each = inside.pop()
        if isinstance(each, ast.Return) and each.value is not None:
            found.append(each)
        if not isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            inside += ast.iter_child_nodes(each)
    return sorted(found, key=lambda each: each.lineno)
