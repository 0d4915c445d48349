"""The forms in which a report can be printed, by the names that `--format` takes."""

from collections.abc import Callable

from lab_utils.dry_run.report import code_hosts, html, terminal
from lab_utils.dry_run.report.outcome import Outcome

FORMATS: dict[str, Callable[[Outcome], str]] = {
    "text": terminal.render,
    "html": html.page,
    "json": Outcome.to_json,
    "sarif": code_hosts.sarif,
    "github": code_hosts.github,
}
