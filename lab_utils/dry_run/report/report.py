"""The report: the outcome of a dry run, which shows itself in a terminal, in a notebook and as a page."""

from dataclasses import dataclass
from pathlib import Path

from lab_utils.common import files
from lab_utils.dry_run.report import html, terminal
from lab_utils.dry_run.report.outcome import Outcome


@dataclass(repr=False)
class Report(Outcome):
    """The outcome of a dry run; shows itself in a terminal (`print`) and in a notebook."""

    def write_html(self, path: str | Path) -> None:
        """Writes the report as one HTML page that needs nothing else."""
        files.write(path, html.page(self))

    def __repr__(self) -> str:
        return f"<Report on {self.subject}: {self.verdict_sentence}>"

    def __str__(self) -> str:
        return terminal.render(self)

    def _repr_html_(self) -> str:
        return html.fragment(self)
