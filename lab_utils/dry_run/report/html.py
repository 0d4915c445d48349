"""A dry run's report as HTML: a fragment for notebooks, and a page of its own.

No scripts, no outside resources. Colours follow JupyterLab's theme through its CSS variables; a page of
its own is light or dark as the reader's system asks. A notebook that is not trusted drops style sheets: what
must not be lost there is in style attributes.
"""

from collections.abc import Iterable
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import shorten

import markdown

from lab_utils.common.figures import Figure, counted, figure_text, kind_text, scaled
from lab_utils.dry_run import rules
from lab_utils.dry_run.records import CompiledStep, Finding, Severity, StageResult
from lab_utils.dry_run.report import words
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, FINDINGS, READY, Outcome
from lab_utils.notebook import look

_COLOURS = {
    READY: look.RIGHT,
    FINDINGS: look.WRONG,
    COULD_NOT_RUN: look.UNSURE,
    Severity.ERROR: look.WRONG,
    Severity.WARNING: look.UNSURE,
    Severity.NOTE: look.NOTE,
}
_ICONS = {READY: "✓", FINDINGS: "✗", COULD_NOT_RUN: "?"}


def page(report: Outcome) -> str:
    """The report as a whole HTML document, which needs nothing else."""
    title = escape(f"Dry run: {report.subject}")
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
        f'<body class="lu-page">{fragment(report)}</body></html>\n'
    )


def fragment(report: Outcome) -> str:
    """The report as one HTML element with its own style, for a notebook's output."""
    parts = [
        f'<div class="head">{_badge(report.verdict, f"{_ICONS[report.verdict]} {report.verdict}")} '
        f'<span class="verdict">{escape(report.verdict_sentence)}</span></div>',
        f'<div class="soft">{escape(words.subject_line(report))}</div>',
        f'<ul class="stages">{"".join(map(_stage, report.stages))}</ul>',
        *_findings(report),
        _list("Ignored", (f"{found.rule} at {found.where}" for found in report.ignored)),
        _cards(report),
        _table(report.figures()),
        _list("Not checked", report.not_checked),
    ]
    fits = "overflow-x:auto;overflow-wrap:break-word"  # also where the style sheet is dropped
    return f'<div class="lu-dry-run" style="{fits}"><style>{_style()}</style>{"".join(parts)}</div>'


@cache
def _style() -> str:
    sheet = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    # Twice: JupyterLab's own rules for outputs are more specific than one class.
    return sheet.replace(".lu-dry-run", ".lu-dry-run.lu-dry-run")


def _badge(kind: str, text: str) -> str:
    style = f"background:{_COLOURS[kind]};color:#fff"
    return f'<span class="badge" style="{style}">{escape(text)}</span>'


def _list(heading: str, items: Iterable[str]) -> str:
    rows = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<h3>{heading}</h3><ul class="plain">{rows}</ul>' if rows else ""


def _stage(stage: StageResult) -> str:
    seconds = scaled(stage.seconds, "s").replace(" ", "\N{NO-BREAK SPACE}")
    took = f" {seconds}" if stage.status != "skipped" else ""
    number = counted(len(stage.findings), "finding") if stage.findings else ""
    said = "; ".join(part for part in (number, stage.detail) if part)
    return (
        f"<li><b>{words.MARKS[stage.status]} {stage.stage}</b> "
        f'<span class="soft">{escape(stage.status)}{took}<br>{escape(shorten(said, 120))}</span></li>'
    )


def _findings(report: Outcome) -> Iterable[str]:
    for stage, groups in groupby(report.grouped_findings(), key=lambda group: group[0].stage):
        yield f"<h3>{str(stage).capitalize()}</h3>"
        yield from map(_finding_group, groups)


def _finding_group(group: list[Finding]) -> str:
    first = group[0]
    places = "".join(
        f"<div>{_inline(finding.where)}</div>"
        + (f"<pre>{escape(finding.message)}</pre>" if finding.message else "")
        for finding in group
    )
    rows = {
        "Where": places,
        "Why": _inline(first.why),
        "Fix": _inline(first.fix),
        "Lab": _inline(first.lab),
    }
    body = "".join(f"<dt>{label}</dt><dd>{said}</dd>" for label, said in rows.items() if said)
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    place = first.place.position + more  # the line's code is in the body
    opened = " open" if first.severity is not Severity.NOTE else ""
    return (
        f"<details{opened}><summary>{_badge(first.severity, f'{first.severity} {first.rule}')} "
        f"<b>{_inline(words.title(first))}</b> <code>{escape(place)}</code></summary>"
        f'<div class="body"><dl>{body}</dl>{_rule_page(first.rule)}</div></details>'
    )


@cache
def _rule_page(id: str) -> str:
    """The page of a rule, folded; "" for a rule that this version does not know."""
    try:
        text = markdown.markdown(rules.page(id), extensions=["fenced_code", "tables"])
    except KeyError:
        return ""
    return f'<details><summary>Rule page {id}</summary><div class="body">{text}</div></details>'


def _inline(said: str) -> str:
    """Text as HTML, with `code` between backticks."""
    pieces = escape(said).split("`")
    if len(pieces) % 2 == 0:  # an odd backtick: leave them all as they are
        return escape(said)
    return "".join(
        f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces)
    )


def _cards(report: Outcome) -> str:
    cards = []
    if steps := [step for step in report.compiled if step.memory.used is not None]:
        cards.append(f"<h3>Memory of a core</h3>{''.join(map(_memory, steps))}")
    if steps := [step for step in report.compiled if step.cost.roofline]:
        sentences = [words.speed_sentence(step, report.cores) for step in steps]
        cards.append(
            "<h3>Speed</h3>"
            + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
            + f'<p class="soft">{escape(words.speed_basis(steps[0]))}</p>'
        )
    cards += [_lines(step) for step in report.compiled if step.lines]
    if report.feed.examples_per_second is not None:
        cards.append(f"<h3>Input pipeline</h3><p>{escape(words.feed_sentence(report))}</p>")
    shown = "".join(f'<div class="card">{card}</div>' for card in cards)
    return f'<div class="cards">{shown}</div>' if cards else ""


def _memory(step: CompiledStep) -> str:
    """A core's memory by part, as a bar with its legend."""
    sentence = f"<p>{escape(words.memory_sentence(step))}</p>"
    available = step.memory.available
    if available is None:
        return sentence
    whole, bar, legend = max(available.value, step.memory.used), "", ""
    for part, size in step.memory.parts.items():
        colour = look.MEMORY[part]
        bar += f'<div style="width:{100 * size / whole:.2f}%;background:{colour}"></div>'
        legend += (
            f'<li><span class="swatch" style="background:{colour};color:#fff">{part[0].upper()}</span> '
            f"{part} {figure_text(step.memory[part])}</li>"
        )
    frame = f"display:flex;height:16px;border:1px solid {look.NEUTRAL}"
    return (
        f'<h4>{escape(step.name).capitalize()}</h4><div class="bar" style="{frame}">{bar}</div>'
        f'<ul class="legend">{legend}</ul>{sentence}'
    )


def _lines(step: CompiledStep) -> str:
    rows = "".join(
        f"<li>{_inline(str(line.place) or 'no line')}<br>{line.cycles:,.0f} cycles, "
        f"{scaled(line.bytes, 'B')}, {scaled(line.flops, 'FLOP')}</li>"
        for line in step.lines
    )
    return (
        f'<h3>Lines of the {escape(step.name)}</h3><ul class="plain">{rows}</ul>'
        f'<p class="soft">{escape(words.LINES_BASIS)}</p>'
    )


def _table(rows: list[tuple[str, Figure]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f"<tr><td>{escape(group)}</td><td>{escape(figure.name)}</td>"
        f'<td class="number">{escape(figure_text(figure))}</td>'
        f"<td>{escape(kind_text(figure))}</td></tr>"
        for group, figure in rows
    )
    return (
        '<details><summary>All figures, each with its kind</summary><div class="body"><table>'
        f"<tr><th>Of</th><th>Figure</th><th>Value</th><th>Kind</th></tr>{body}</table></div></details>"
    )
