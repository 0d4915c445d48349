"""What grading makes: the table as CSV, pages of the class with and without names, a page a learner."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lab_utils.check import todos
from lab_utils.teach import pages
from lab_utils.teach.grade.runs import OUTCOMES, Graded, Result
from lab_utils.teach.grade.submissions import Submission

CSV = rb'(\xef\xbb\xbf)?"?learner\W'  # what a table begins with, also one that a spreadsheet saved
_FORMULA = ("=", "+", "-", "@")  # what a spreadsheet would compute


@dataclass(frozen=True)
class Row:
    """One learner: each lab's graded notebook, and what is to be said of all that was handed in."""

    learner: str
    labs: dict[int, Graded] = field(default_factory=dict)
    statuses: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def results(self) -> dict[str, Result]:
        """The results of all labs by TODO."""
        return {id: result for lab in self.labs.values() for id, result in lab.results.items()}

    @property
    def points(self) -> int:
        """The sum over the labs."""
        return sum(graded.points for graded in self.labs.values())


def rows(graded: Sequence[tuple[Submission, Graded]]) -> list[Row]:
    """The rows of a class. Of several notebooks of one lab by one learner the best one counts."""
    table: dict[str, Row] = {}
    for submission, result in sorted(graded, key=lambda pair: -pair[1].points):
        row = table.setdefault(submission.learner, Row(submission.learner))
        if result.lab in row.labs:
            row.remarks.append(submission.say("left out, another has as many points or more"))
            continue
        if result.lab is not None:
            row.labs[result.lab] = result
        row.statuses.append(submission.say(result.status))
        row.remarks.extend(map(submission.say, submission.remarks + result.remarks))
    return sorted(table.values(), key=lambda row: row.learner.casefold())


def as_csv(table: Sequence[Row]) -> str:
    """The table as CSV: learner, points, possible points, a column a TODO, status, remarks.

    A TODO has 1 or 0; nothing where the learner handed in no notebook of its lab, and where it cannot be
    checked on this machine.
    """
    heads, text = _heads(table), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["learner", "points", "of", *heads, "status", "remarks"])
    for row in table:
        points = {id: r.points for id, r in row.results.items() if r.status != OUTCOMES[-1]}
        texts = map(_plain, ("; ".join(row.statuses), "; ".join(row.remarks)))
        marks = [points.get(id, "") for id in heads]
        writer.writerow([_plain(row.learner), row.points, len(points), *marks, *texts])
    return text.getvalue()


def of_class(table: Sequence[Row]) -> str:
    """The page for the screen: counts and the commonest messages; no names, no remarks."""
    heads = _heads(table)
    counts, stops = [], []
    for id, head in heads.items():
        results = [row.results[id] for row in table if id in row.results]
        kinds = Counter(result.status for result in results)
        limits = len(results) - sum(kinds[kind] for kind in OUTCOMES)
        counts.append((head, [*(kinds[kind] for kind in OUTCOMES), limits]))
        if wrong := Counter(replace(each, place="") for each in results if not each.points):
            stops.append((head, wrong.most_common()))
    return pages.render(
        "class.html",
        title="The class",
        learners=len(table),
        unread=sum(not row.labs for row in table),
        kinds=[*OUTCOMES, "met a limit"],
        counts=counts,
        stops=stops,
    )


def of_teacher(table: Sequence[Row]) -> str:
    """The page with names, points and remarks, and below them what each learner heard."""
    heads = _heads(table)
    return pages.render(
        "teacher.html", title="For the teacher", ids=list(heads), heads=heads, rows=table
    )


def of_learners(table: Sequence[Row]) -> dict[str, str]:
    """A page for each learner by the name of its file: what each check says, without the remarks."""
    texts: dict[str, str] = {}
    for row in table:
        stem = re.sub(r"[^\w.@ ()-]+", "_", row.learner).strip(". ")[:60] or "_"
        others = sum(name.casefold().startswith(f"{stem}.".casefold()) for name in texts)
        name = f"{stem}.{others + 1}.html" if others else f"{stem}.html"
        texts[name] = pages.render("learner.html", title=row.learner, row=row, heads=_heads(table))
    return texts


def _heads(table: Sequence[Row]) -> dict[str, str]:
    """The TODOs of the labs that anybody handed in, by id."""
    labs = sorted({lab for row in table for lab in row.labs})
    all_todos = (todo for lab in labs for todo in todos.of_lab(lab))
    return {todo.id: f"TODO {todo.id}: {', '.join(todo.names)}" for todo in all_todos}


def _plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula, on one line."""
    line = " ".join(text.split())
    return f"'{line}" if line.startswith(_FORMULA) else line
