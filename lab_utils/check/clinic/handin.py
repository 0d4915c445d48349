"""The page that a learner hands in: what was measured, computed and quoted about a port, in one HTML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from lab_utils.common import files
from lab_utils.common.figures import Figure, figure_text, kind_text
from lab_utils.dry_run import Report

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
  h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.15rem; margin-top: 2rem; }}
  table {{ border-collapse: collapse; }} div {{ overflow-x: auto; }}
  td, th {{ text-align: left; padding: .2rem 1.2rem .2rem 0; vertical-align: top; }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
</style></head><body>
<h1>{title}</h1>
<p>By {author}. Judged for {topology}, without a TPU.</p>
{body}
</body></html>
"""


@dataclass(frozen=True)
class Section:
    """A part of the page in the learner's words or a tool's: a heading and plain text."""

    heading: str
    text: str


def write_page(
    path: str | Path,
    title: str,
    author: str,
    report: Report,
    figures: Sequence[tuple[str, Figure]],
    sections: Sequence[Section] = (),
) -> None:
    """Writes the page; it is whole or not there, and needs nothing else.

    Args:
        path: of the HTML file, local or gs://.
        title, author: in plain text, as everything else: markup in it is shown, not followed.
        report: the dry run's.
        figures: what each figure is, and the figure, which bears its unit and its kind.
        sections: further parts, such as the ladder as text, or what the learner concludes.
    """
    findings = [f"{each.rule}, {each.where}: {each.why}" for each in report.findings]
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(figure_text(each))}</td><td>{escape(kind_text(each))}</td></tr>"
        for name, each in figures
    ]
    parts = [
        ("The dry run", f"<p>{escape(report.verdict_sentence)}</p>{_list(findings)}"),
        (
            "Figures",
            f"<table><tr><th>what</th><th>figure</th><th>kind</th></tr>{''.join(rows)}</table>",
        ),
        *((each.heading, f"<pre>{escape(each.text)}</pre>") for each in sections),
        ("What was not checked", _list(report.not_checked)),
    ]
    body = "\n".join(f"<h2>{escape(heading)}</h2>\n<div>{html}</div>" for heading, html in parts)
    words = {"title": title, "author": author, "topology": report.topology}
    page = _PAGE.format(body=body, **{name: escape(word) for name, word in words.items()})
    files.write(path, page)


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
