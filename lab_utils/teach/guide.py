"""The instructor's guide: plans with minutes a section, demos, each TODO and the wrong answers to expect."""

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import nbformat
import yaml

from lab_utils.check import overview, todos
from lab_utils.teach import minutes as formula
from lab_utils.teach import stored


def plans(root: Path) -> dict[str, list[dict]]:
    """Plans and demos of solutions/instructor/plans.yaml."""
    return yaml.safe_load((root / "solutions/instructor/plans.yaml").read_text(encoding="utf-8"))


def parts(session: dict) -> list[tuple[int, list[str] | None]]:
    """The labs of a session, each with the sections that are taught; None for the whole lab."""
    found: list[tuple[int, list[str] | None]] = []
    for each in session["labs"]:
        found += each.items() if isinstance(each, dict) else [(each, None)]
    return found


def not_taught(plan: dict) -> list[int]:
    """The labs that a plan does not name."""
    named = {lab for session in plan["sessions"] for lab, _ in parts(session)}
    return [lab for lab in overview.labs() if lab not in named]


def taught(root: Path, lab: int, chosen: list[str] | None) -> list[tuple[str, int]]:
    """The sections of a lab that a plan takes, with minutes; all of them for None.

    Raises:
        ValueError: the lab has no section of that name.
    """
    own = sections(root, lab)
    if chosen is None:
        return own
    if missing := set(chosen) - {name for name, _ in own}:
        known = ", ".join(name for name, _ in own)
        raise ValueError(f"lab {lab:02d} has no section {missing}; there are {known}")
    return [(name, minutes) for name, minutes in own if name in chosen]


def minutes(root: Path, plan: dict) -> int:
    """What a plan takes of its labs, and its breaks."""
    return sum(
        session.get("break", 0)
        + sum(own for each in parts(session) for _, own in taught(root, *each))
        for session in plan["sessions"]
    )


def sections(root: Path, lab: int) -> list[tuple[str, int]]:
    """The sections of a lab with minutes, which add up to the lab's (teach/minutes.py has the formula).

    What stands above the first heading, the questions and the running time are shared out among them.
    """
    (path,) = (root / "solutions/source").glob(f"{lab:02d}_*.ipynb")
    weights: list[list[Any]] = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            for part in re.split(r"^(?=## )", cell.source, flags=re.M):
                if found := re.match(r"## (.+)", part):
                    weights.append([found[1], 0.0])
                if weights:
                    weights[-1][1] += formula.of_text(part)
        elif weights:
            weights[-1][1] += formula.of_cell(cell)
    total, whole = sum(weight for _, weight in weights), overview.labs()[lab]["minutes"]
    shared, before = [], 0
    for number, (name, _) in enumerate(weights, 1):
        upto = round(whole * sum(weight for _, weight in weights[:number]) / total)
        shared.append((name, upto - before))
        before = upto
    return shared


def text(root: Path) -> str:
    """The whole guide as one HTML page."""
    style = Path(__file__).parents[1].joinpath("grade/page.css").read_text(encoding="utf-8")
    body = "\n".join([*_plans(root), *_day_before(), *_afterwards(), *_demos(root), *_todos(root)])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Instructor\'s guide</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style}'
        "pre { overflow-x: auto; border-left: 3px solid var(--line); padding-left: .8em; }"
        "img { background: #fff; max-width: 100%; }</style></head><body>\n"
        f"<h1>Instructor's guide</h1>\n{body}\n</body></html>\n"
    )


def _plans(root: Path) -> Iterator[str]:
    labs = overview.labs()
    yield "<h2>Plans</h2><p>Minutes follow from words, lines of code, exercises and running time "
    yield "(lab_utils/teach/minutes.py has the formula). They are estimates: nobody has timed learners "
    yield "of these labs. In other lessons with estimated minutes, instructors took 1.5 times as long "
    yield "(datacarpentry/r-socialsci issue 75, 2018) to nearly 2 times (swcarpentry/make-novice issue 142, "
    yield "2019). So keep half as much again in reserve when you teach a plan for the first time.</p>"
    for plan in plans(root)["plans"]:
        told = f"{minutes(root, plan)} of {60 * plan['hours']} minutes"
        yield f"<h3>{escape(plan['title'])}: {told}</h3><p>{escape(plan['for'])}</p><table>"
        for session in plan["sessions"]:
            for lab, chosen in parts(session):
                own = taught(root, lab, chosen)
                names = ", ".join(f"{escape(name)} ({m})" for name, m in own if m)
                yield f"<tr><td>{escape(session['title'])}</td>"
                part = "" if chosen is None else " (in part)"
                yield f"<td>{lab:02d} {escape(labs[lab]['title'])}{part}</td>"
                yield f"<td>{sum(m for _, m in own)}</td><td class='soft'>{names}</td></tr>"
            if "break" in session:
                yield f"<tr><td></td><td>break</td><td>{session['break']}</td><td></td></tr>"
        rest = ", ".join(f"{lab:02d} {escape(labs[lab]['title'])}" for lab in not_taught(plan))
        if rest:
            yield f"</table><p>Not taught: {rest}. {escape(plan['next'])}</p>"
        else:
            yield "</table><p>All labs are taught.</p>"


def _day_before() -> Iterator[str]:
    yield "<h2>The day before</h2><ul>"
    yield "<li>On a machine of the class, as a learner: <code>make doctor</code>. Each line must say OK. "
    yield "Where all share one machine: <code>.venv/bin/python -m lab_utils doctor --class 30</code>.</li>"
    yield "<li>Open lab 00 and run all cells. The last report comes from the TPU compiler.</li>"
    yield "<li>One machine for all: fill the shared cache (hub.md), and open lab 02 as a second user.</li>"
    yield "<li>Without network in the room: unplug it and do the same again.</li></ul>"


_GRADE = ".venv/bin/python -m lab_utils.grade SUBMISSIONS -o grades.csv --page class.html --feedback feedback"


def _afterwards() -> Iterator[str]:
    yield "<h2>Collect, grade, give back</h2><ol>"
    yield "<li>Download what was handed in, as your learning platform gives it: a folder or an archive. "
    yield "Unpack and rename nothing.</li>"
    yield "<li>In the clone that the class has worked from, as a user who may change nothing but the "
    yield "results: "
    yield f"<pre>{_GRADE}</pre></li>"
    yield "<li>In <code>grades.csv</code> read the columns <code>status</code> and <code>remarks</code>: "
    yield "what could not be graded and what to ask for, and what to look at yourself.</li>"
    yield "<li><code>class.html</code> is for the next lesson: which TODO stopped whom, and what the class "
    yield "predicted. Each learner gets the page of their name from the folder <code>feedback</code>.</li>"
    yield "</ol><p>solutions/instructor/grading.md has the names that are understood, nbgrader, and what is "
    yield "secured.</p>"


def _demos(root: Path) -> Iterator[str]:
    yield "<h2>Demos of ten minutes, with stored outputs</h2>"
    for demo in plans(root)["demos"]:
        yield f"<h3>{escape(demo['title'])}</h3><ol>"
        for step in demo["steps"]:
            code = "".join(stored.cells(root, step["lab"])[step["cell"]]["source"])
            yield f"<li>{step['minutes']} minutes, lab {step['lab']:02d}: {escape(step['say'])}"
            yield f"<details><summary>the cell</summary><pre>{escape(code)}</pre></details>"
            yield stored.output(root, step["lab"], step["cell"]) + "</li>"
        yield "</ol>"


def _todos(root: Path) -> Iterator[str]:
    yield "<h2>The TODOs, and the wrong answers to expect</h2>"
    for lab, entry in overview.labs().items():
        yield f"<h3>{lab:02d} {escape(entry['title'])}</h3>"
        for todo in todos.of_lab(lab):
            names = escape(", ".join(todo.names))
            yield f"<h4>TODO {todo.id}: {names}</h4><p>{escape(todo.about)}</p><ul>"
            for answer in _answers(root, todo):
                if not hasattr(answer, "says"):
                    continue  # a right one
                says = getattr(answer.says, "pattern", answer.says)
                if hasattr(answer, "old"):
                    wrong = f"<code>{escape(answer.old.strip())}</code> becomes "
                    wrong += (
                        f"<code>{escape(answer.new.strip())}</code>"
                        if answer.new.strip()
                        else "nothing"
                    )
                else:
                    own = escape(inspect.cleandoc(answer.code))
                    wrong = f"<details><summary>another way</summary><pre>{own}</pre></details>"
                yield f"<li>{wrong}<br><span class='soft'>the check says: ... {escape(says)} ...</span></li>"
            yield "</ul>"


def _answers(root: Path, todo: todos.Todo) -> list:
    """The answers that the tests of the course hold, and the slips of the check."""
    sys.path.insert(0, str(root / "tests"))
    try:
        return importlib.import_module("wrong_answers").of_todo(todo)
    finally:
        sys.path.remove(str(root / "tests"))
