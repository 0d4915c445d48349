"""A dry run's report as HTML: a fragment for notebooks, and a page of its own.

No scripts, no outside resources. Colours follow JupyterLab's theme through its CSS variables; a page of
its own is light or dark as the reader's system asks.
"""

from collections.abc import Iterable
from html import escape
from itertools import groupby
from textwrap import shorten

from lab_utils.common.figures import Figure, figure_text, kind_text, scaled
from lab_utils.dry_run.records import CompiledStep, Finding, Severity, StageResult
from lab_utils.dry_run.report import plain, site, svg, words
from lab_utils.dry_run.report.document import document
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, FINDINGS, READY, Outcome

_ICONS = {READY: "✓", FINDINGS: "✗", COULD_NOT_RUN: "?"}
_STATUS = {"done": "✓", "failed": "✗", "skipped": "–"}


def page(report: Outcome) -> str:
    """The report as a whole HTML document."""
    return document(f"Dry run: {report.subject}", _body(report))


def fragment(report: Outcome) -> str:
    """The report as one HTML element with its own style, for a notebook's output, trusted or not."""
    return plain.untrusted(_body(report))


def _body(report: Outcome) -> str:
    css = "could" if report.verdict == COULD_NOT_RUN else report.verdict
    parts = [
        f'<div class="head"><span class="badge {css}">{_ICONS[report.verdict]} {report.verdict}</span> '
        f'<span class="verdict">{escape(report.verdict_sentence)}</span></div>',
        f'<div class="soft">{escape(words.subject_line(report))}</div>',
        f'<ul class="stages">{"".join(map(_stage, report.stages))}</ul>',
        *_findings(report),
        *_ignored(report),
        _cards(report),
        _table(report.figures()),
        "<h3>Not checked</h3>",
        f'<ul class="plain">{"".join(f"<li>{escape(item)}</li>" for item in report.not_checked)}</ul>',
    ]
    return "".join(parts)


def _stage(stage: StageResult) -> str:
    seconds = scaled(stage.seconds, "s").replace(" ", "\N{NO-BREAK SPACE}")
    took = f" {seconds}" if stage.status != "skipped" else ""
    count = len(stage.findings)
    said = "; ".join(
        part
        for part in (f"{count} finding{'s' * (count > 1)}" if count else "", stage.detail)
        if part
    )
    return (
        f"<li><b>{_STATUS.get(stage.status, '?')} {stage.stage}</b> "
        f'<span class="soft">{escape(stage.status)}{took}<br>{escape(shorten(said, 120))}</span></li>'
    )


def _ignored(report: Outcome) -> Iterable[str]:
    if report.ignored:
        told = (escape(f"{found.rule} at {found.where}") for found in report.ignored)
        yield f'<h3>Ignored</h3><ul class="plain">{"".join(f"<li>{each}</li>" for each in told)}</ul>'


def _findings(report: Outcome) -> Iterable[str]:
    for stage, groups in groupby(report.grouped_findings(), key=lambda group: group[0].stage):
        yield f"<h3>{str(stage).capitalize()}</h3>"
        yield from map(_finding_group, groups)


def _finding_group(group: list[Finding]) -> str:
    first = group[0]
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
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
    rule_page = site.rule_html(first.rule)
    if rule_page:
        rule_page = (
            f"<details><summary>Rule page {first.rule}</summary>"
            f'<div class="body">{rule_page}</div></details>'
        )
    opened = " open" if first.severity is not Severity.NOTE else ""
    place = first.place.position + more  # the line's code is in the body
    return (
        f"<details{opened}><summary>"
        f'<span class="badge {first.severity}">{first.severity} {escape(first.rule)}</span> '
        f"<b>{_inline(words.title(first))}</b> <code>{escape(place)}</code></summary>"
        f'<div class="body"><dl>{body}</dl>{rule_page}</div></details>'
    )


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
        cards.append(f"<h3>Memory of a core</h3>{''.join(map(_memory, steps))}{_kinds(steps)}")
    if steps := [step for step in report.compiled if step.cost.roofline]:
        sentences = [words.speed_sentence(step, report.cores) for step in steps]
        cards.append(
            f"<h3>Speed</h3>{svg.roofline(steps, ' '.join(sentences))}"
            + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
            + f'<p class="soft">{escape(words.speed_basis(steps[0]))}</p>'
        )
    cards += [_lines(step) for step in report.compiled if step.lines]
    if report.feed.examples_per_second is not None:
        cards.append(_feed(report))
    if not cards:
        return ""
    return f'<div class="cards">{"".join(f"<div class=card>{card}</div>" for card in cards)}</div>'


def _memory(step: CompiledStep) -> str:
    sentence = words.memory_sentence(step)
    if step.memory.available is None:
        return f"<p>{escape(sentence)}</p>"
    legend = "".join(
        f'<li><span class="swatch {part}">{part[0].upper()}</span> '
        f"{part} {figure_text(step.memory[part])}</li>"
        for part in step.memory.parts
    )
    return (
        f"<h4>{escape(step.name).capitalize()}</h4>{svg.memory_bar(step, sentence)}"
        f"<ul class=legend>{legend}</ul><p>{escape(sentence)}</p>"
    )


def _kinds(steps: list[CompiledStep]) -> str:
    kinds = {kind_text(figure) for step in steps for figure in step.memory.values()}
    return f'<p class="soft">Sizes {escape("; ".join(sorted(kinds)))}.</p>'


def _lines(step: CompiledStep) -> str:
    rows = "".join(
        f'<tr><td class="place" colspan="3">{_inline(str(each.place) or "no line")}</td></tr>'
        f'<tr><td class="number">{each.cycles:,.0f}</td>'
        f'<td class="number">{escape(scaled(each.bytes, "B"))}</td>'
        f'<td class="number">{escape(scaled(each.flops, "FLOP"))}</td></tr>'
        for each in step.lines
    )
    head = "<tr><th>Cycles</th><th>HBM traffic</th><th>FLOPs</th></tr>"
    return (
        f"<h3>Lines of the {escape(step.name)}</h3><table class=lines>{head}{rows}</table>"
        f'<p class="soft">{escape(words.LINES_BASIS)}</p>'
    )


def _feed(report: Outcome) -> str:
    sentence = words.feed_sentence(report)
    gauge = ""
    if report.feed.required is not None:
        rate, required = report.feed.examples_per_second.value, report.feed.required.value
        gauge = svg.feed_gauge(rate, required, sentence)
    return f"<h3>Input pipeline</h3>{gauge}<p>{escape(sentence)}</p>"


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
        "<details><summary>All figures, each with its kind</summary><div class=body><table>"
        f"<tr><th>Of</th><th>Figure</th><th>Value</th><th>Kind</th></tr>{body}</table></div></details>"
    )
