"""A dry run's report as HTML: a fragment for notebooks, and a page of its own. No scripts, no outside resources.

Colours follow JupyterLab's theme through its CSS variables; elsewhere the fragment brings its own, light or
dark as the reader's system asks.
"""

from collections.abc import Iterable
from html import escape
from itertools import groupby

from lab_utils.dry_run import pages_html, svg, text, units
from lab_utils.dry_run.findings import Figure, Finding, Severity, StageResult
from lab_utils.dry_run.report import (
    COULD_NOT_RUN,
    FINDINGS,
    MEMORY_PARTS,
    READY,
    CompiledStep,
    Report,
)

_ICONS = {READY: "✓", FINDINGS: "✗", COULD_NOT_RUN: "?"}
_STATUS = {"done": "✓", "failed": "✗", "skipped": "–"}

STYLE = """
.lu-dry-run{--fg:var(--jp-content-font-color1,#1f2328);--soft:var(--jp-content-font-color2,#57606a);
--bg:var(--jp-layout-color1,#fff);--bg2:var(--jp-layout-color2,#f3f4f6);--line:var(--jp-border-color2,#d0d7de);
--link:var(--jp-content-link-color,#0b5cad);--mono:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);
--error:#b3261e;--warning:#8a5a00;--note:#2f5f9e;--ready:#1e6b34;
--arguments:#3f72af;--temporaries:#c8701e;--outputs:#2f8f83;--code:#8d62a8;
color:var(--fg);background:var(--bg);font:14px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);
max-width:1080px;border:1px solid var(--line);border-radius:8px;padding:14px 16px;box-sizing:border-box}
.lu-dry-run *{box-sizing:border-box}
.lu-dry-run h3,.lu-dry-run h4{margin:18px 0 6px;font-size:15px;line-height:1.3;font-weight:600;color:var(--fg)}
.lu-dry-run h4{margin:14px 0 4px;font-size:14px}
.lu-dry-run p{margin:4px 0 8px}
.lu-dry-run .head{display:flex;flex-wrap:wrap;gap:6px 12px;align-items:center}
.lu-dry-run .badge{color:#fff;border-radius:5px;padding:3px 10px;font-weight:600;white-space:nowrap}
.lu-dry-run .verdict{font-size:16px;font-weight:600}
.lu-dry-run .soft{color:var(--soft);font-size:13px;overflow-wrap:anywhere}
.lu-dry-run .ready{background:var(--ready)}.lu-dry-run .findings{background:var(--error)}
.lu-dry-run .could{background:var(--warning)}
.lu-dry-run .error{background:var(--error)}.lu-dry-run .warning{background:var(--warning)}
.lu-dry-run .note{background:var(--note)}
.lu-dry-run .stages{display:flex;flex-wrap:wrap;gap:6px;margin:10px 0 0;padding:0;list-style:none}
.lu-dry-run .stages li{flex:1 1 150px;margin:0;border:1px solid var(--line);border-radius:5px;padding:5px 8px;
font-size:13px;overflow-wrap:anywhere}
.lu-dry-run details{border:1px solid var(--line);border-radius:5px;margin:6px 0;background:var(--bg)}
.lu-dry-run summary{cursor:pointer;padding:6px 10px;overflow-wrap:anywhere}
.lu-dry-run summary .badge{font-size:12px;padding:1px 7px;margin-right:6px}
.lu-dry-run summary code{color:var(--soft)}
.lu-dry-run details>.body{padding:2px 12px 8px;border-top:1px solid var(--line)}
.lu-dry-run dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 14px;margin:8px 0}
.lu-dry-run dt{font-weight:600;color:var(--soft);margin:0}
.lu-dry-run dd{margin:0;white-space:pre-line;overflow-wrap:anywhere}
.lu-dry-run code,.lu-dry-run pre{font-family:var(--mono);font-size:12.5px;color:inherit;background:none;padding:0}
.lu-dry-run pre{background:var(--bg2);border-radius:4px;padding:8px 10px;margin:6px 0;overflow-x:auto;white-space:pre}
.lu-dry-run dd pre{white-space:pre-wrap;margin:0;max-height:15em;overflow:auto}
.lu-dry-run .cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(340px,100%),1fr));gap:10px;margin-top:14px}
.lu-dry-run .card{border:1px solid var(--line);border-radius:5px;padding:8px 12px}
.lu-dry-run .card h3{margin:0 0 6px}
.lu-dry-run .card p{font-size:13px}
.lu-dry-run .legend{list-style:none;padding:0;margin:4px 0 6px;display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px}
.lu-dry-run .legend li{margin:0}
.lu-dry-run .swatch{display:inline-block;width:1.35em;text-align:center;border-radius:3px;color:#fff;font-size:11px;
font-weight:600;margin-right:5px}
.lu-dry-run .arguments{fill:var(--arguments);background:var(--arguments)}
.lu-dry-run .temporaries{fill:var(--temporaries);background:var(--temporaries)}
.lu-dry-run .outputs{fill:var(--outputs);background:var(--outputs)}
.lu-dry-run .code{fill:var(--code);background:var(--code)}
.lu-dry-run svg{display:block;width:100%;max-width:560px;height:auto;font-size:12px}
.lu-dry-run svg text{fill:var(--fg)}.lu-dry-run svg text.on{fill:#fff;font-weight:600}
.lu-dry-run svg text.halo{paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}
.lu-dry-run svg .room{fill:var(--bg2);stroke:var(--line)}
.lu-dry-run svg .limit{stroke:var(--fg);stroke-width:2}
.lu-dry-run svg .beyond{fill:none;stroke:var(--error);stroke-width:2.5;stroke-dasharray:5 3}
.lu-dry-run svg .axis{stroke:var(--soft)}.lu-dry-run svg .grid{stroke:var(--line)}
.lu-dry-run svg .roof{fill:none;stroke:var(--arguments);stroke-width:2.5}
.lu-dry-run svg .point{fill:var(--temporaries);stroke:var(--bg)}
.lu-dry-run svg .drop{stroke:var(--temporaries);stroke-dasharray:4 3}
.lu-dry-run svg .ridge{fill:var(--arguments);stroke:var(--bg)}
.lu-dry-run svg .measured{fill:var(--outputs)}.lu-dry-run svg .demand{fill:var(--temporaries)}
.lu-dry-run table{border-collapse:collapse;width:100%;margin:6px 0;font-size:13px;color:var(--fg)}
.lu-dry-run th,.lu-dry-run td{text-align:left;padding:3px 10px 3px 0;border-bottom:1px solid var(--line);
background:none;vertical-align:top;white-space:normal;overflow-wrap:anywhere}
.lu-dry-run td.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.lu-dry-run a{color:var(--link)}
.lu-dry-run ul.plain{margin:4px 0;padding-left:20px}
"""

# Where no JupyterLab theme speaks, as in a page of its own.
_DARK = """
@media (prefers-color-scheme:dark){body{background:#0d1117}
.lu-dry-run{--fg:#e6edf3;--soft:#9aa4af;--bg:#161b22;--bg2:#21262d;--line:#3d444d;--link:#6cb6ff}}
"""


def page(report: Report) -> str:
    """The report as a whole HTML document."""
    return document(f"Dry run: {report.subject}", fragment(report))


def document(title: str, body: str) -> str:
    """A whole HTML document around `body`, in the report's style, light or dark as the system asks."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>body{{margin:16px}}.lu-dry-run{{margin:auto}}{STYLE}{_DARK}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def fragment(report: Report) -> str:
    """The report as one HTML element with its own style, for a notebook's output."""
    css = "could" if report.verdict == COULD_NOT_RUN else report.verdict
    parts = [
        f'<div class="head"><span class="badge {css}">{_ICONS[report.verdict]} {report.verdict}</span>'
        f'<span class="verdict">{escape(report.verdict_sentence)}</span></div>',
        f'<div class="soft">{escape(text.subject_line(report))}</div>',
        f'<ul class="stages">{"".join(map(_stage, report.stages))}</ul>',
        *_findings(report),
        _cards(report),
        _table(report.figures()),
        "<h3>Not checked</h3>",
        f'<ul class="plain">{"".join(f"<li>{escape(item)}</li>" for item in report.not_checked)}</ul>',
    ]
    return f'<div class="lu-dry-run"><style>{STYLE}</style>{"".join(parts)}</div>'


def _stage(stage: StageResult) -> str:
    took = f" {units.scaled(stage.seconds, 's')}" if stage.status != "skipped" else ""
    count = len(stage.findings)
    said = "; ".join(
        part
        for part in (f"{count} finding{'s' * (count > 1)}" if count else "", stage.detail)
        if part
    )
    return (
        f"<li><b>{_STATUS.get(stage.status, '?')} {stage.stage}</b> "
        f'<span class="soft">{escape(stage.status)}{took}<br>{escape(said)}</span></li>'
    )


def _findings(report: Report) -> Iterable[str]:
    """Findings by stage; those that differ in place alone stand under one rule."""
    for stage, found in groupby(report.findings, key=lambda finding: finding.stage):
        yield f"<h3>{str(stage).capitalize()}</h3>"
        same: dict[tuple, list[Finding]] = {}
        for finding in found:
            same.setdefault((finding.rule, finding.severity, finding.why, finding.fix), []).append(
                finding
            )
        yield from map(_finding_group, same.values())


def _finding_group(group: list[Finding]) -> str:
    first = group[0]
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    places = "".join(
        f"<div><code>{escape(finding.where)}</code></div>"
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
    rule_page = pages_html.rule_html(first.rule)
    if rule_page:
        rule_page = f'<details><summary>Rule page {first.rule}</summary><div class="body">{rule_page}</div></details>'
    opened = " open" if first.severity is not Severity.NOTE else ""
    return (
        f'<details{opened}><summary><span class="badge {first.severity}">{first.severity} {escape(first.rule)}</span>'
        f"<b>{_inline(text.title(first))}</b> <code>{escape(first.where)}{more}</code></summary>"
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


def _cards(report: Report) -> str:
    cards = [_memory_card(step) for step in report.compiled if step.used is not None]
    steps = [step for step in report.compiled if step.has_roofline]
    if steps:
        sentences = [text.speed_sentence(step, report.cores) for step in steps]
        cards.append(
            f"<h3>Speed</h3>{svg.roofline(steps, ' '.join(sentences))}"
            + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
            + f'<p class="soft">{escape(text.speed_basis(steps[0]))}</p>'
        )
    if "examples_per_second" in report.feed:
        sentence = text.feed_sentence(report)
        gauge = (
            svg.feed_gauge(
                report.feed["examples_per_second"].value, report.feed["demand"].value, sentence
            )
            if "demand" in report.feed
            else ""
        )
        cards.append(f"<h3>Input pipeline</h3>{gauge}<p>{escape(sentence)}</p>")
    return f'<div class="cards">{"".join(f"<div class=card>{card}</div>" for card in cards)}</div>' if cards else ""


def _memory_card(step: CompiledStep) -> str:
    sentence = text.memory_sentence(step)
    bar = legend = ""
    if "available" in step.memory:
        bar = svg.memory_bar(step, sentence)
        legend = "".join(
            f'<li><span class="swatch {part}">{part[0].upper()}</span>{part} {units.figure_text(step.memory[part])}</li>'
            for part in MEMORY_PARTS
            if part in step.memory
        )
    kinds = sorted({str(figure.kind) for figure in step.memory.values()})
    return (
        f"<h3>Memory, {escape(step.name)}</h3>{bar}<ul class=legend>{legend}</ul>"
        f'<p>{escape(sentence)}</p><p class="soft">{escape(", ".join(kinds)).capitalize()}.</p>'
    )


def _table(rows: list[tuple[str, Figure]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f"<tr><td>{escape(group)}</td><td>{escape(figure.name)}</td>"
        f'<td class="number">{escape(units.figure_text(figure))}</td><td>{escape(units.kind_text(figure))}</td></tr>'
        for group, figure in rows
    )
    return (
        "<details><summary>All figures, each with its kind</summary><div class=body><table>"
        f"<tr><th>Of</th><th>Figure</th><th>Value</th><th>Kind</th></tr>{body}</table></div></details>"
    )
