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
<h2>The dry run</h2>
<p>{verdict}</p>
{findings}
<h2>Figures</h2>
<div><table><tr><th>what</th><th>figure</th><th>kind</th></tr>{figures}</table></div>
{sections}
<h2>What was not checked</h2>
<ul>{gaps}</ul>
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
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(figure_text(figure))}</td><td>{escape(kind_text(figure))}</td></tr>"
        for name, figure in figures
    )
    found = "".join(
        f"<li>{escape(f'{each.rule}, {each.where}: {each.why}')}</li>" for each in report.findings
    )
    page = _PAGE.format(
        title=escape(title),
        author=escape(author),
        topology=escape(report.topology),
        verdict=escape(report.verdict_sentence),
        findings=f"<ul>{found}</ul>" if found else "",
        figures=rows,
        sections="".join(
            f"<h2>{escape(each.heading)}</h2><pre>{escape(each.text)}</pre>" for each in sections
        ),
        gaps="".join(f"<li>{escape(each)}</li>" for each in report.not_checked),
    )
    files.write(path, page)
