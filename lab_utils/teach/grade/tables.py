"""The results of a class: one row a learner, one column a TODO."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from lab_utils.check import todos
from lab_utils.teach.grade.runs import Graded
from lab_utils.teach.grade.submissions import Submission

BEGINNING = rb'(\xef\xbb\xbf)?"?learner\W'  # of a table as CSV, also saved by a spreadsheet
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


@dataclass(frozen=True)
class Row:
    """One learner: each lab's graded notebook, and what is to be said of all that was handed in."""

    learner: str
    labs: dict[int, Graded]
    statuses: list[str]
    remarks: list[str]

    @property
    def points(self) -> int:
        """The sum over the labs."""
        return sum(graded.points for graded in self.labs.values())


def rows(graded: Sequence[tuple[Submission, Graded]]) -> list[Row]:
    """The rows of a class. Of several notebooks of one lab by one learner the one with most points counts."""
    by_learner: dict[str, list[tuple[Submission, Graded]]] = {}
    for submission, result in graded:
        by_learner.setdefault(submission.learner, []).append((submission, result))
    return [_row(learner, own) for learner, own in by_learner.items()]


def _row(learner: str, own: list[tuple[Submission, Graded]]) -> Row:
    best: dict[int, tuple[Submission, Graded]] = {}
    for submission, result in own:
        if result.lab is not None and (
            result.lab not in best or result.points > best[result.lab][1].points
        ):
            best[result.lab] = (submission, result)
    statuses, remarks = [], []
    for submission, result in own:
        name = submission.path.name
        chosen = result.lab is None or best[result.lab][0] is submission
        if chosen:
            statuses.append(f"{name}: {result.status}")
            remarks += [f"{name}: {told}" for told in (*submission.remarks, *result.remarks)]
        else:
            remarks.append(
                f"{name}: left out, {best[result.lab][0].path.name} has as many points or more"
            )
    return Row(
        learner, {lab: result for lab, (_, result) in sorted(best.items())}, statuses, remarks
    )


def columns(table: Sequence[Row]) -> list[str]:
    """The ids of all TODOs of the labs that anybody handed in."""
    labs = sorted({lab for row in table for lab in row.labs})
    return [todo.id for lab in labs for todo in todos.of_lab(lab)]


def as_csv(table: Sequence[Row]) -> str:
    """The table as CSV: learner, points, possible points, a column a TODO, status, remarks.

    A TODO has 1 or 0; nothing where the learner handed in no notebook of its lab, and where it cannot be
    checked on this machine.
    """
    ids = columns(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["learner", "points", "of", *ids, "status", "remarks"])
    for row in table:
        results = {
            id: result for graded in row.labs.values() for id, result in graded.results.items()
        }
        points = [
            ""
            if id not in results or results[id].status == "cannot be checked here"
            else results[id].points
            for id in ids
        ]
        of = sum(point != "" for point in points)
        told = map(_plain, ("; ".join(row.statuses), "; ".join(row.remarks)))
        writer.writerow([_plain(row.learner), row.points, of, *points, *told])
    return text.getvalue()


def _plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula, on one line."""
    line = " ".join(text.split())
    return f"'{line}" if line.startswith(_FORMULA) else line
