"""The instructor's guide: plans with minutes a section, demos, a page a lab with wrong answers to expect."""

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import yaml

from lab_utils.check import sources, todos
from lab_utils.teach import minutes as formula
from lab_utils.teach import pages, slides, stored


def plans(root: Path) -> dict[str, list[dict]]:
    """Plans and demos of solutions/instructor/plans.yaml."""
    return yaml.safe_load((root / "solutions/instructor/plans.yaml").read_text(encoding="utf-8"))


def not_taught(plan: dict) -> list[int]:
    """The labs that a plan does not name."""
    named = {lab for session in plan["sessions"] for lab in session["labs"]}
    return [lab for lab in sources.labs() if lab not in named]


def taught(root: Path, plan: dict, lab: int) -> tuple[int, int]:
    """Minutes of a lab in a plan: of its lecture, which the plan may limit, and of the lab."""
    lecture = min(slides.minutes(root, lab), plan.get("lecture", math.inf))
    return lecture, sources.labs()[lab]["minutes"]


def of_session(root: Path, plan: dict, session: dict) -> int:
    """Minutes of a session with its lectures and its break."""
    return sum(sum(taught(root, plan, lab)) for lab in session["labs"]) + session.get("break", 0)


def minutes(root: Path, plan: dict) -> int:
    """Minutes of a plan with its lectures and breaks."""
    return sum(of_session(root, plan, session) for session in plan["sessions"])


def sections(root: Path, lab: int) -> list[tuple[str, int]]:
    """The sections of a lab with minutes, which add up to the lab's (teach/minutes.py has the formula).

    What stands above the first heading, the questions and the running time are shared out among them.
    """
    (path,) = (root / "solutions/source").glob(f"{lab:02d}_*.ipynb")
    _, *weights = formula.sections(nbformat.read(path, as_version=4))
    total, whole = sum(weight for _, weight in weights), sources.labs()[lab]["minutes"]
    shared, before, sofar = [], 0, 0.0
    for name, weight in weights:
        sofar += weight
        upto = round(whole * sofar / total)
        shared.append((name, upto - before))
        before = upto
    return shared


def made(root: Path) -> dict[str, str]:
    """The guide and a page for each lab, by the name of the file."""
    labs = {lab: f"{lab:02d} {entry['title']}" for lab, entry in sources.labs().items()}
    shown = []
    for plan in plans(root)["plans"]:
        rest = ", ".join(labs[lab] for lab in not_taught(plan))
        sessions = []
        for session in plan["sessions"]:
            taken = [(lab, *taught(root, plan, lab)) for lab in session["labs"]]
            sessions.append((session, of_session(root, plan, session), taken))
        shown.append((plan, minutes(root, plan), sessions, rest))
    demos = [
        (demo["title"], [_step(root, step) for step in demo["steps"]])
        for demo in plans(root)["demos"]
    ]
    title = "Instructor's guide"
    texts = {
        "guide.html": pages.render("guide.html", title=title, labs=labs, plans=shown, demos=demos)
    }
    for lab, name in labs.items():
        answers = list(_answers(root, lab))
        page = pages.render(
            "guide_lab.html", title=name, sections=sections(root, lab), todos=answers
        )
        texts[f"guide_{lab:02d}.html"] = page
    return texts


def _step(root: Path, step: dict) -> dict[str, Any]:
    code = "".join(stored.cells(root, step["lab"])[step["cell"]]["source"])
    return step | {"code": code, "output": stored.output(root, step["lab"], step["cell"])}


def _answers(root: Path, lab: int) -> Iterator[tuple[Any, str, list[tuple[Any, str]]]]:
    """Each TODO, what it is about, and wrong answers with what the check told them when it last ran."""
    sys.path.insert(0, str(root / "tests"))
    try:
        wrong_answers = importlib.import_module("wrong_answers")
    finally:
        sys.path.remove(str(root / "tests"))
    messages = wrong_answers.messages(lab)
    for todo in todos.of_lab(lab):
        pairs = [(each, wrong_answers.key(todo.id, each)) for each in wrong_answers.of_todo(todo)]
        yield todo, todo.why, [(each, messages[key]) for each, key in pairs if key in messages]
