"""A report's findings as GitHub annotations, which a pull request shows beside the lines."""

from lab_utils.dry_run.records import Finding, Severity
from lab_utils.dry_run.report.outcome import Outcome
from lab_utils.dry_run.report.repository import file_and_cell
from lab_utils.dry_run.report.words import title

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github(outcome: Outcome) -> str:
    """A workflow command for each finding, and one for the verdict (GitHub's docs: Workflow commands)."""
    lines = [_line(found) for found in outcome.findings]
    return "\n".join([*lines, f"::notice title=Dry run::{_escaped(outcome.verdict_sentence)}"])


def _line(found: Finding) -> str:
    place = found.place
    file, cell = file_and_cell(place.file)
    at: dict[str, object] = {"file": file}
    if not cell:  # a cell's lines are not those of its file
        at |= {"line": place.line, "col": place.column}
    at["title"] = f"{found.rule} {title(found)}"
    fields = ",".join(f"{key}={_property(str(value))}" for key, value in at.items() if value)
    where = "" if file and not cell else f"At {found.where}: "
    said = f"{where}{found.why} Fix: {found.fix}"
    return f"::{_LEVELS[found.severity]} {fields}::{_escaped(said)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
