"""`make instructor`: the guide, a page of it a lab, and the slides, into solutions/instructor/made.

The guide holds plans with minutes, and demos; a lab's page has the wrong answers to expect.
"""

import argparse
import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab_utils.check import sources, todos
from lab_utils.common import command, files
from lab_utils.teach import pages, slides

ROOT = Path(__file__).parents[2]
MADE = Path("solutions/instructor/made")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 2 where something is missing."""
    parser = argparse.ArgumentParser(prog="python -m lab_utils.teach.guide", description=__doc__)
    parser.add_argument(
        "--reveal", type=files.path_argument, help="reveal.js 5, as npm unpacks it: makes slides"
    )
    options = parser.parse_args(arguments)
    try:
        contents = texts(ROOT)
        if options.reveal:
            for lab in slides.of_all(ROOT):
                contents[f"slides_{lab:02d}.html"] = slides.deck(ROOT, lab, options.reveal)
    except (OSError, ValueError) as error:
        print(f"instructor: {error}", file=sys.stderr)
        return 2
    (ROOT / MADE).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        files.write(ROOT / MADE / name, content)
        print(MADE / name)
    return 0


def plans(root: Path) -> dict[str, list[dict]]:
    """Plans and demos of solutions/instructor/plans.yaml."""
    return yaml.safe_load((root / "solutions/instructor/plans.yaml").read_text(encoding="utf-8"))


def not_taught(plan: dict) -> list[int]:
    """The labs that a plan does not name."""
    labs = {lab for session in plan["sessions"] for lab in session["labs"]}
    return [lab for lab in sources.labs() if lab not in labs]


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


def texts(root: Path) -> dict[str, str]:
    """The guide and a page for each lab, by the name of the file."""
    labs = {lab: f"{lab:02d} {entry['title']}" for lab, entry in sources.labs().items()}
    rows = []
    for plan in plans(root)["plans"]:
        rest = ", ".join(labs[lab] for lab in not_taught(plan))
        sessions = []
        for session in plan["sessions"]:
            lectures = [(lab, *taught(root, plan, lab)) for lab in session["labs"]]
            sessions.append((session, of_session(root, plan, session), lectures))
        rows.append((plan, minutes(root, plan), sessions, rest))
    demos = [
        (demo["title"], [_step(root, step) for step in demo["steps"]])
        for demo in plans(root)["demos"]
    ]
    values = {"title": "Instructor's guide", "labs": labs, "plans": rows, "demos": demos}
    contents = {"guide.html": pages.render("guide.html", **values)}
    for lab, name in labs.items():
        values = {"title": name, "todos": _answers(root, lab)}
        contents[f"guide_{lab:02d}.html"] = pages.render("guide_lab.html", **values)
    return contents


def _step(root: Path, step: dict) -> dict[str, Any]:
    code = pages.cells(root, step["lab"])[step["cell"]]["source"]
    return step | {"code": code, "output": pages.output(root, step["lab"], step["cell"])}


def _answers(root: Path, lab: int) -> list[tuple[Any, str, list[tuple[Any, str]]]]:
    """Each TODO, what it is about, and wrong answers with the message that the check last had for them."""
    sys.path.insert(0, str(root / "tests"))
    try:
        wrong_answers = importlib.import_module("wrong_answers")
    finally:
        sys.path.remove(str(root / "tests"))
    messages, rows = wrong_answers.messages(lab), []
    for todo in todos.of_lab(lab):
        answers = [(a, wrong_answers.key(todo.id, a)) for a in wrong_answers.of_todo(todo)]
        answers = [(answer, messages[key]) for answer, key in answers if key in messages]
        rows.append((todo, todo.why, answers))
    return rows


if __name__ == "__main__":
    command.run(main)
