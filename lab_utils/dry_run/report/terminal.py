"""A dry run's report for a terminal: plain text, as wide as the terminal, from 80 to 100 columns."""

import shutil
import textwrap
from collections.abc import Sequence
from itertools import groupby

from lab_utils.common.figures import Figure, figure_text, kind_text
from lab_utils.dry_run.records import Finding, StageResult
from lab_utils.dry_run.report import words
from lab_utils.dry_run.report.outcome import Outcome

WIDTH = 100  # at most; also where there is no terminal
_NARROWEST = 80  # the heads of some lines take 64
_BAR = 12  # signs of a bar that stands for the whole time
_MOST = 5_000  # characters of one text


def render(report: Outcome) -> str:
    """The whole report as text; COLUMNS in the environment stands for the terminal's own width."""
    blocks = [
        _wrap(report.verdict_sentence) + _wrap(words.subject_line(report)),
        [line for stage in report.stages for line in _stage_lines(stage)],
    ]
    for stage, groups in groupby(report.grouped_findings(), key=lambda group: group[0].stage):
        for index, group in enumerate(groups):
            heading = [str(stage).upper()] if index == 0 else []
            blocks.append(heading + _finding_lines(group))
    if report.ignored:
        blocks.append(["IGNORED", *_items(words.ignored(report))])
    for step in report.compiled:
        lines = _wrap(words.memory_sentence(step)) if step.memory.used is not None else []
        if step.cost.roofline or step.cost.estimated_seconds:
            lines += _wrap(" ".join(words.speed_sentences(step, report)))
        lines += [text for line in words.line_shares(step) for text in _bar(line)]
        if lines:
            blocks.append([step.name.upper(), *lines])
    if bases := words.bases(report):
        head = "{:<18}"
        rows = [_wrap(text, head.format(name), head.format("")) for name, text in bases]
        blocks.append(["WHERE THESE COME FROM", *(line for row in rows for line in row)])
    if report.feed.examples_per_second is not None:
        blocks.append(["INPUT PIPELINE", *_wrap(words.feed_sentence(report))])
    if rows := report.figures():
        blocks.append(["FIGURES", *_table(rows)])
    blocks.append(["NOT CHECKED", *_items(report.not_checked)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _bar(line: words.LineShare) -> list[str]:
    """A line of a step with its share of the time as a bar."""
    bar = "█" * round(_BAR * line.share)
    return _wrap(
        f"{line.where} ({line.costs})", f"{line.percent:>4} {bar:<{_BAR}} ", " " * (_BAR + 6)
    )


def _items(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in _wrap(text, "- ", "  ")]


def _wrap(text: str, first: str = "", then: str = "") -> list[str]:
    """`text` in lines that fit the terminal, its own line breaks and indents kept."""
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    width = min(WIDTH, max(columns, _NARROWEST))
    lines = []
    if len(text) > _MOST:  # textwrap's time grows with the square of it
        text = f"{text[:_MOST]} ..."
    for number, line in enumerate(text.splitlines() or [""]):
        indent = len(line) - len(line.lstrip())
        lines += textwrap.wrap(
            line.strip(),
            width,
            initial_indent=(first if number == 0 else then) + " " * indent,
            subsequent_indent=then + " " * indent,
            break_on_hyphens=False,
        )
    return lines


def _stage_lines(stage: StageResult) -> list[str]:
    mark, took, text = words.stage_words(stage)
    head = f"{mark} {stage.stage:<8}{stage.status:<8} {took:>8}  "
    return _wrap(text, head, " " * len(head)) or [head.rstrip()]


def _finding_lines(group: list[Finding]) -> list[str]:
    """One rule's findings: each place with its message, then what they share."""
    finding = group[0]
    name = f"{str(finding.severity).upper()} {finding.rule}"
    lines = _wrap(words.title(finding), f"  {name}  ", "  ")
    parts = [part for item in group for part in (("where", item.where), ("message", item.message))]
    parts += [("why", finding.why), ("fix", finding.fix), ("lab", finding.lab)]
    parts.append(("page", f"python -m lab_utils.dry_run --rule {finding.rule}"))
    for label, text in parts:
        if text:
            lines += _wrap(text, f"    {label:<9}", " " * 13)
    return lines


def _table(rows: list[tuple[str, Figure]]) -> list[str]:
    """Figures by group, each with its value and its kind."""
    lines = []
    for group, figures in groupby(rows, key=lambda row: row[0]):
        lines.append(group)
        for _, figure in figures:
            head = f"  {figure.name:<42} {figure_text(figure):>16}  "
            lines += _wrap(kind_text(figure), head, " " * len(head))
    return lines
