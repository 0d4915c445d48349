"""`make instructor`: the guide, a page of it a lab, and the slides, into solutions/instructor/made.

The guide holds plans with minutes, demos, and questions for before and after; a lab's page has what to type
and to say, the minutes of its sections, hints, and the wrong answers to expect.
"""

import argparse
import importlib
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab_utils.check import sources, todos
from lab_utils.common import command, files
from lab_utils.teach import pages, plans, quiz, slides

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
            for lab in slides.read(ROOT):
                contents[f"slides_{lab:02d}.html"] = slides.deck(ROOT, lab, options.reveal)
    except (OSError, ValueError) as error:
        print(f"instructor: {error}", file=sys.stderr)
        return 2
    (ROOT / MADE).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        files.write(ROOT / MADE / name, content)
    print(f"{len(contents)} files in {MADE}: begin with guide.html")
    return 0


def texts(root: Path) -> dict[str, str]:
    """The guide and a page for each lab, by the name of the file."""
    labs = {lab: f"{lab:02d} {entry['title']}" for lab, entry in sources.labs().items()}
    rows = [
        (
            plan,
            plans.hours(plan),
            plans.sessions(root, plan),
            ", ".join(labs[lab] for lab in plans.not_taught(plan)),
        )
        for plan in plans.read(root)["plans"]
    ]
    demos = [
        (demo["title"], [_step(root, step) for step in demo["steps"]])
        for demo in plans.read(root)["demos"]
    ]
    questions = _questions(root)
    values = {"title": "Instructor's guide", "labs": labs, "plans": rows, "demos": demos}
    values["by_level"] = plans.route_by_level(root)
    contents = {"guide.html": pages.render("guide.html", questions=questions, **values)}
    values = {"title": "Before and after", "questions": questions}
    contents["questions.html"] = pages.render("questions.html", **values)
    for lab, name in labs.items():
        answers, spoken = _answers(root, lab), teaching(root).get(lab, {})
        values = {
            "title": name,
            "todos": answers,
            "sections": {k: each for k, each in plans.section_minutes(root, lab).items() if each},
            "live": _live(lab, spoken["live"], answers) if "live" in spoken else None,
            "stuck": spoken.get("stuck", ()),
        }
        contents[f"guide_{lab:02d}.html"] = pages.render("guide_lab.html", **values)
    return contents


def _questions(root: Path) -> list[tuple[str, list[tuple[str, list[str], str]]]]:
    """The questions for before and after, by the labs that they are of.

    Each has its answers in alphabetical order, and the right one.
    """
    asked = quiz.questions(root)

    def row(lab: int, number: int) -> tuple[str, list[str], str]:
        each = asked[f"{lab:02d}"][number - 1]
        answers = (str(answer[0]) for answer in [each["right"], *each["wrong"]])
        return each["ask"], sorted(answers), each["right"][0]

    groups = plans.read(root)["questions"]
    return [(group["of"], [row(*pair) for pair in group["ask"]]) for group in groups]


def teaching(root: Path) -> dict[int, dict[str, Any]]:
    """What is typed and said in each lab: solutions/instructor/teaching.yaml."""
    text = (root / "solutions/instructor/teaching.yaml").read_text(encoding="utf-8")
    return {int(lab): spoken for lab, spoken in yaml.safe_load(text).items()}


def _live(lab: int, live: dict[str, str], rows: list[tuple]) -> dict[str, str]:
    """What to type before the class: the region of a TODO with a mistake, the check's message, the region.

    Raises:
        ValueError: no wrong answer to the TODO is told what teaching.yaml expects.
    """
    (answers,) = (answers for todo, _, answers in rows if todo.id == live["todo"])
    for answer, says in answers:
        old = getattr(answer, "old", "")
        of_todo = [f"{region}\n" for region in sources.regions(lab)[live["todo"]]]
        found = [region for region in of_todo if old and region.count(old) == 1]
        if found and live["hears"] in says:
            pair = {"wrong": found[0].replace(old, answer.new), "right": found[0]}
            code = {name: textwrap.dedent(text).rstrip() for name, text in pair.items()}
            return live | code | {"says": says}
    raise ValueError(f"no wrong answer to TODO {live['todo']} is told: {live['hears']}")


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
