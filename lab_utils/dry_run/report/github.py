"""A report's findings as annotations of a pull request (GitHub's docs: Workflow commands)."""

from pathlib import PurePath

from lab_utils.dry_run.records import Finding, Severity
from lab_utils.dry_run.report.outcome import Outcome
from lab_utils.dry_run.report.words import title

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(outcome: Outcome) -> str:
    """A workflow command for each finding, and one for the verdict."""
    lines = [_annotation(finding) for finding in outcome.findings]
    return "\n".join([*lines, f"::notice title=Dry run::{_escape(outcome.verdict_sentence)}"])


def _annotation(finding: Finding) -> str:
    place = finding.place
    file, cell = _file_and_cell(place.file)
    fields: dict[str, object] = {"file": file}
    if not cell:  # a cell's lines are not those of its file
        fields |= {"line": place.line, "col": place.column}
    fields["title"] = f"{finding.rule} {title(finding)}"
    texts = {
        key: _escape(str(value)).replace(":", "%3A").replace(",", "%2C")
        for key, value in fields.items()
        if value
    }
    where = "" if file and not cell else f"At {finding.where}: "
    return (
        f"::{_LEVELS[finding.severity]} {','.join(f'{key}={text}' for key, text in texts.items())}"
        f"::{_escape(f'{where}{finding.why} Fix: {finding.fix}')}"
    )


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _file_and_cell(file: str) -> tuple[str, str]:
    """Path and cell: ("nb.ipynb", "cell 3"), ("", "cell In [5]") of a notebook at work, ("train.py", "")."""
    if file.startswith(("cell ", "a notebook cell")):
        return "", file
    path, _, cell = file.partition("[cell ")
    return (PurePath(path).as_posix() if path else ""), cell
