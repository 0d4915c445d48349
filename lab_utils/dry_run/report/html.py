"""A dry run's report as HTML: a fragment for notebooks, and a page of its own.

No scripts, no outside resources. Colours follow JupyterLab's theme through its CSS variables; a page of
its own is light or dark as the reader's system asks.
"""

from functools import cache
from html import escape
from pathlib import Path
from textwrap import shorten

import jinja2
import markdown
from markupsafe import Markup

from lab_utils.common.figures import figure_text, kind_text
from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Severity
from lab_utils.dry_run.report import words
from lab_utils.dry_run.report.curves import curves
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, FINDINGS, READY, Outcome
from lab_utils.notebook import look

_FOLDER = Path(__file__).parent
_COLOURS = {
    READY: look.RIGHT,
    FINDINGS: look.WRONG,
    COULD_NOT_RUN: look.UNSURE,
    Severity.ERROR: look.WRONG,
    Severity.WARNING: look.UNSURE,
    Severity.NOTE: look.NOTE,
}


def page(report: Outcome) -> str:
    """The report as a whole HTML document, which needs nothing else."""
    return document(f"Dry run: {report.subject}", fragment(report))


def document(title: str, body: str) -> str:
    """A fragment as a whole HTML document with this title."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"></head>'
        f'<body class="lu-page">{body}</body></html>\n'
    )


def fragment(report: Outcome) -> str:
    """The report as one HTML element with its own style, for a notebook's output."""
    return render("report.html", report=report)


def render(template: str, **values: object) -> str:
    """A template of this folder as HTML, with these values; the style and the colours are there."""
    return _template(template).render(**values)


@cache
def _template(name: str) -> jinja2.Template:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    functions = (figure_text, kind_text, shorten)
    templates.filters |= {item.__name__: item for item in functions}
    templates.filters["code"] = lambda text: Markup(look.with_code(text))
    sheet = (_FOLDER / "report.css").read_text(encoding="utf-8")
    # Twice: JupyterLab's own rules for outputs are more specific than one class.
    style = Markup(sheet.replace(".lu-dry-run", ".lu-dry-run.lu-dry-run"))
    icons = {READY: "✓", FINDINGS: "✗", COULD_NOT_RUN: "?"}
    names = {
        "words": words,
        "look": look,
        "rule_page": _rule_page,
        "style": style,
        "curves": curves,
    }
    names |= {"colours": _COLOURS, "icons": icons}
    return templates.get_template(name, globals=names)


@cache
def _rule_page(id: str) -> Markup:
    """The page of a rule."""
    return Markup(markdown.markdown(rules.page(id), extensions=["fenced_code", "tables"]))
