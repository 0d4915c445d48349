"""The instructor's guide: plans with minutes a section, demos, each TODO and the wrong answers to expect."""

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import yaml

from lab_utils.author import stored
from lab_utils.check import overview, todos

_SECTION_WORDS, _TODO_WORDS = 60, 250  # what a section and a TODO count for, beside its words


def plans(root: Path) -> dict[str, list[dict]]:
    """Plans and demos of solutions/instructor/plans.yaml."""
    return yaml.safe_load((root / "solutions/instructor/plans.yaml").read_text(encoding="utf-8"))


def homework(plan: dict) -> list[int]:
    """The labs that a plan does not name."""
    named = {lab for session in plan["sessions"] for lab in session["labs"]}
    return [lab for lab in overview.labs() if lab not in named]


def minutes(plan: dict) -> int:
    """The labs of a plan and its breaks."""
    labs = overview.labs()
    return sum(
        sum(labs[lab]["minutes"] for lab in session["labs"]) + session.get("break", 0)
        for session in plan["sessions"]
    )


def sections(root: Path, lab: int) -> list[tuple[str, int]]:
    """The sections of a lab with minutes, which add up to the lab's.

    The lab's minutes are shared out by the words of each section and its TODOs; nobody has timed a section.
    """
    (path,) = (root / "labs").glob(f"{lab:02d}_*.ipynb")
    weights: list[list[Any]] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and (found := re.search(r"^## (.+)$", text, re.M)):
            weights.append([found[1], _SECTION_WORDS])
        if weights:
            weights[-1][1] += len(text.split()) + _TODO_WORDS * text.startswith("check(")
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
    body = "\n".join([*_plans(root), *_day_before(), *_demos(root), *_todos(root)])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Instructor\'s guide</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style}'
        "pre { overflow-x: auto; border-left: 3px solid var(--line); padding-left: .8em; }"
        "img { background: #fff; max-width: 100%; }</style></head><body>\n"
        f"<h1>Instructor's guide</h1>\n{body}\n</body></html>\n"
    )


def _plans(root: Path) -> Iterator[str]:
    labs = overview.labs()
    yield "<h2>Plans</h2><p>A lab's minutes are those that it states. Minutes of sections are shared out by "
    yield "their words and TODOs; they were not timed.</p>"
    for plan in plans(root)["plans"]:
        yield f"<h3>{escape(plan['title'])}: {minutes(plan)} of {60 * plan['hours']} minutes</h3><table>"
        for session in plan["sessions"]:
            for lab in session["labs"]:
                parts = ", ".join(f"{escape(name)} ({m})" for name, m in sections(root, lab) if m)
                yield f"<tr><td>{escape(session['title'])}</td>"
                yield f"<td>{lab:02d} {escape(labs[lab]['title'])}</td>"
                yield f"<td>{labs[lab]['minutes']}</td><td class='soft'>{parts}</td></tr>"
            if "break" in session:
                yield f"<tr><td></td><td>break</td><td>{session['break']}</td><td></td></tr>"
        rest = ", ".join(f"{lab:02d} {escape(labs[lab]['title'])}" for lab in homework(plan))
        yield f"</table><p>Homework: {rest or 'none'}.</p>"


def _day_before() -> Iterator[str]:
    yield "<h2>The day before</h2><ul>"
    yield "<li>On a machine of the class, as a learner: <code>make doctor</code>. Each line must say OK. "
    yield "Where all share one machine: <code>python -m lab_utils doctor --class 30</code>.</li>"
    yield "<li>Open lab 00 and run all cells. The last report comes from the TPU compiler.</li>"
    yield "<li>One machine for all: fill the shared cache (hub.md), and open lab 02 as a second user.</li>"
    yield "<li>Without network in the room: unplug it and do the same again.</li></ul>"


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
        answers = _answers(root, lab)
        for todo in todos.of_lab(lab):
            about = todo.why or inspect.getdoc(todo.function) or ""
            yield f"<h4>TODO {todo.id}: {escape(', '.join(todo.names))}</h4><p>{escape(about)}</p><ul>"
            for answer in answers.get(todo.id, []):
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


def _answers(root: Path, lab: int) -> dict[str, list]:
    """The wrong answers that the tests of the course hold."""
    sys.path.insert(0, str(root / "tests"))
    try:
        return importlib.import_module("wrong_answers").of_lab(lab)
    finally:
        sys.path.remove(str(root / "tests"))
