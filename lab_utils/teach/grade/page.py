"""The page of a class: who has what, which TODO stopped whom with which message, and the predictions.

And a page for each learner, with what the checks say.
"""

import bisect
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from lab_utils.check import todos
from lab_utils.teach.grade.runs import Result
from lab_utils.teach.grade.tables import Row, columns

_MARKS = {
    "correct": ("✓", "right"),
    "incorrect": ("✗", "wrong"),
    "not attempted": ("○", "soft"),
    "cannot be checked here": ("?", "unsure"),
}
_LIMIT = ("!", "unsure")  # what met a limit of time or memory
_LEGEND = (
    "✓ correct, ✗ incorrect, ○ not attempted, ? cannot be checked here, "
    "! met a limit or ended its process"
)
_BINS = 8


def html(table: Sequence[Row]) -> str:
    """The whole page, which needs nothing but itself. All that learners wrote is escaped."""
    body = [
        "<h1>The class</h1>",
        _marks(table),
        "<h2>Where they stopped</h2>",
        *_stops(table),
        "<h2>Predictions, for the discussion</h2>",
        *_predictions(table),
    ]
    return _whole("The class", body)


def feedback(table: Sequence[Row]) -> dict[str, str]:
    """A page for each learner, by the name of its file: points, and what each check says.

    Without the remarks, which are for the person who grades.
    """
    pages: dict[str, str] = {}
    for row in table:
        stem = re.sub(r"[^\w.@ ()-]+", "_", row.learner).strip(". ")[:60] or "_"
        taken = sum(name.casefold().startswith(f"{stem}.".casefold()) for name in pages)
        name = f"{stem}.{taken + 1}.html" if taken else f"{stem}.html"
        body = [f"<h1>{escape(row.learner)}</h1>"]
        body += [f"<p>{escape(told)}</p>" for told in row.statuses]
        for lab, graded in row.labs.items():
            body.append(f"<h2>Lab {lab:02d}: {graded.points} of {len(graded.results)}</h2><ul>")
            for id, result in graded.results.items():
                mark, kind = _MARKS.get(result.status, _LIMIT)
                said = f'<div class="said">{escape(result.why)}</div>'
                head = f"{mark} TODO {id}: {escape(result.status)}"
                names = escape(", ".join(todos.find(id).names))
                body.append(f'<li><b class="{kind}">{head}</b> <code>{names}</code>{said}</li>')
            body.append("</ul>")
        pages[name] = _whole(row.learner, body)
    return pages


def _whole(title: str, body: Sequence[str]) -> str:
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>\n{style}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _results(row: Row) -> dict[str, Result]:
    return {id: result for graded in row.labs.values() for id, result in graded.results.items()}


def _mark(result: Result | None) -> str:
    if result is None:
        return "<td></td>"
    mark, kind = _MARKS.get(result.status, _LIMIT)
    return f'<td class="mark {kind}" title="{escape(result.status)}">{mark}</td>'


def _marks(table: Sequence[Row]) -> str:
    ids = columns(table)
    heads = "".join(
        f"<th>{escape(head)}</th>" for head in ("learner", "points", *ids, "status", "remarks")
    )
    lines = []
    for row in table:
        marks = "".join(_mark(_results(row).get(id)) for id in ids)
        told = "".join(
            f'<td class="said">{escape(chr(10).join(t))}</td>' for t in (row.statuses, row.remarks)
        )
        points = f"{row.points} of {len(_results(row))}"  # of the labs that are handed in
        lines.append(f"<tr><td>{escape(row.learner)}</td><td>{points}</td>{marks}{told}</tr>")
    marks_table = f'<div class="wide"><table><tr>{heads}</tr>{"".join(lines)}</table></div>'
    return f'{marks_table}<p class="soft">{_LEGEND}</p>'


def _stops(table: Sequence[Row]) -> Iterable[str]:
    """A heading a TODO, and below it each message with those who heard it."""
    stopped = False
    for id in columns(table):
        heard: dict[tuple[str, str], list[str]] = {}
        for row in table:
            result = _results(row).get(id)
            if result and result.status != "correct":
                heard.setdefault((result.status, result.why), []).append(row.learner)
        if not heard:
            continue
        stopped = True
        names = ", ".join(todos.find(id).names)
        yield f"<h3>TODO {id}: {escape(names)}</h3><ul>"
        for (status, why), learners in sorted(heard.items(), key=lambda item: -len(item[1])):
            kind = _MARKS.get(status, _LIMIT)[1]
            who = escape(", ".join(learners))
            said = f'<div class="said">{escape(why)}</div>'
            yield f'<li><b class="{kind}">{escape(status)}</b>: {who}{said}</li>'
        yield "</ul>"
    if not stopped:
        yield "<p>All that was handed in is correct.</p>"


def _predictions(table: Sequence[Row]) -> Iterable[str]:
    values: dict[tuple[int, str], list[float]] = {}
    for row in table:
        for lab, graded in row.labs.items():
            for name, value in graded.predictions.items():
                values.setdefault((lab, name), []).append(value)
    for (lab, name), own in sorted(values.items()):
        yield f"<h3>Lab {lab:02d}: {escape(name)}</h3>"
        finite = [value for value in own if math.isfinite(value)]
        lines = "".join(
            f"<tr><td>{escape(span)}</td>"
            f'<td><span class="bar" style="width:{count * 2}em"></span> {count}</td></tr>'
            for span, count in histogram(finite)
        )
        yield f"<table>{lines}</table>"
    if not values:
        yield "<p>Nobody wrote one down.</p>"


def histogram(values: Sequence[float]) -> list[tuple[str, int]]:
    """How many values lie in each of at most eight spans; few different ones stand for themselves."""
    different = sorted(set(values))
    if len(different) <= _BINS:
        return [(f"{value:,.4g}", values.count(value)) for value in different]
    low, width = different[0], different[-1] / _BINS - different[0] / _BINS
    edges = [low + width * n for n in range(_BINS + 1)]
    bins = [0] * _BINS
    for value in values:
        bins[min(_BINS, bisect.bisect_right(edges, value)) - 1] += 1
    return [
        (f"{edges[n]:,.4g} to {edges[n + 1]:,.4g}", count) for n, count in enumerate(bins) if count
    ]
