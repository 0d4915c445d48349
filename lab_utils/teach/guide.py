"""The instructor's guide: plans with minutes a section, demos, a page a lab with wrong answers to expect."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import yaml

from lab_utils.check import overview, todos
from lab_utils.teach import minutes as formula
from lab_utils.teach import pages, slides, stored


def plans(root: Path) -> dict[str, list[dict]]:
    """Plans and demos of solutions/instructor/plans.yaml."""
    return yaml.safe_load((root / "solutions/instructor/plans.yaml").read_text(encoding="utf-8"))


def parts(session: dict) -> list[tuple[int, list[str] | None]]:
    """The labs of a session, each with the sections that are taught; None for the whole lab."""
    pairs = [each if isinstance(each, dict) else {each: None} for each in session["labs"]]
    return [part for pair in pairs for part in pair.items()]


def not_taught(plan: dict) -> list[int]:
    """The labs that a plan does not name."""
    named = {lab for session in plan["sessions"] for lab, _ in parts(session)}
    return [lab for lab in overview.labs() if lab not in named]


def taught(root: Path, lab: int, chosen: list[str] | None) -> list[tuple[str, int]]:
    """What a plan takes of a lab, with minutes: the lecture, and the sections; all of them for None.

    Raises:
        ValueError: the lab has no section of that name.
    """
    of_lab = dict(sections(root, lab))
    if missing := set(chosen or ()) - of_lab.keys():
        raise ValueError(f"lab {lab:02d} has no section {missing}; there are {', '.join(of_lab)}")
    names = [name for name in of_lab if chosen is None or name in chosen]
    return [("lecture", slides.minutes(root, lab)), *((name, of_lab[name]) for name in names)]


def of_session(root: Path, session: dict) -> int:
    """Minutes of a session with its lectures and its break."""
    labs = sum(minutes for part in parts(session) for _, minutes in taught(root, *part))
    return labs + session.get("break", 0)


def minutes(root: Path, plan: dict) -> int:
    """Minutes of a plan with its lectures and breaks."""
    return sum(of_session(root, session) for session in plan["sessions"])


def sections(root: Path, lab: int) -> list[tuple[str, int]]:
    """The sections of a lab with minutes, which add up to the lab's (teach/minutes.py has the formula).

    What stands above the first heading, the questions and the running time are shared out among them.
    """
    (path,) = (root / "solutions/source").glob(f"{lab:02d}_*.ipynb")
    weights: list[list[Any]] = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            for part in re.split(r"^(?=## )", cell.source, flags=re.M):
                if heading := re.match(r"## (.+)", part):
                    weights.append([heading[1], 0.0])
                if weights:
                    weights[-1][1] += formula.of_text(part)
        elif weights:
            weights[-1][1] += formula.of_cell(cell)
    total, whole = sum(weight for _, weight in weights), overview.labs()[lab]["minutes"]
    shared, before, sofar = [], 0, 0.0
    for name, weight in weights:
        sofar += weight
        upto = round(whole * sofar / total)
        shared.append((name, upto - before))
        before = upto
    return shared


def made(root: Path) -> dict[str, str]:
    """The guide and a page for each lab, by the name of the file."""
    labs = {lab: f"{lab:02d} {entry['title']}" for lab, entry in overview.labs().items()}
    shown = []
    for plan in plans(root)["plans"]:
        rest = ", ".join(labs[lab] for lab in not_taught(plan))
        sessions = []
        for session in plan["sessions"]:
            taken = [(lab, chosen, taught(root, lab, chosen)) for lab, chosen in parts(session)]
            sessions.append((session, of_session(root, session), taken))
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
    """Each TODO, what it is about, and the wrong answers that the tests hold with the words to expect."""
    sys.path.insert(0, str(root / "tests"))
    try:
        wrong_answers = importlib.import_module("wrong_answers")
    finally:
        sys.path.remove(str(root / "tests"))
    for todo in todos.of_lab(lab):
        wrong = [answer for answer in wrong_answers.of_todo(todo) if hasattr(answer, "says")]
        yield todo, todo.about, [(each, getattr(each.says, "pattern", each.says)) for each in wrong]
