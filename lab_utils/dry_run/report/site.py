"""The rule pages as HTML: each inside a report, and all of them as a small site that needs no network."""

from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path

import markdown

from lab_utils.dry_run import rules
from lab_utils.dry_run.report.document import document


@cache
def rule_html(rule_id: str) -> str:
    """The page of a rule as HTML; "" for a rule that this version does not know."""
    try:
        return markdown.markdown(rules.page(rule_id), extensions=["fenced_code", "tables"])
    except KeyError:
        return ""


def write_pages(folder: str | Path) -> list[Path]:
    """Writes a page for each rule, and index.html that lists them by stage; returns the files written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    catalogue = list(rules.catalogue().values())
    written = []
    for before, rule, after in zip(
        [None, *catalogue[:-1]], catalogue, [*catalogue[1:], None], strict=True
    ):
        links = [
            f'<a href="{other.id}.html">{arrow.format(other.id)}</a>'
            for other, arrow in ((before, "← {}"), (after, "{} →"))
            if other
        ]
        links.insert(len(links) - 1 if after else len(links), '<a href="index.html">all rules</a>')
        body = f'<p class="soft">{" · ".join(links)}</p>{rule_html(rule.id)}'
        written.append(folder / f"{rule.id}.html")
        written[-1].write_text(document(f"{rule.id} {rule.title}", body), encoding="utf-8")
    sections = "".join(
        f"<h3>{str(stage).capitalize()}</h3><table>{''.join(map(_row, group))}</table>"
        for stage, group in groupby(catalogue, key=lambda rule: rule.stage)
    )
    index = f"<h1>Rules of the dry run</h1>{sections}"
    written.append(folder / "index.html")
    written[-1].write_text(document("Rules of the dry run", index), encoding="utf-8")
    return written


def _row(rule: "rules.Rule") -> str:
    return (
        f'<tr><td><a href="{rule.id}.html">{rule.id}</a></td><td>{escape(rule.title)}</td>'
        f"<td>{rule.severity}</td></tr>"
    )
