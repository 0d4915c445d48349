"""A report's findings where code is reviewed: GitHub's annotations, and SARIF 2.1.0 (OASIS, 2020-03-27)."""

import json
from pathlib import PurePath
from urllib.parse import quote

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Finding, Severity
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, Outcome
from lab_utils.dry_run.report.words import title

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github(outcome: Outcome) -> str:
    """A workflow command for each finding, and one for the verdict (GitHub's docs: Workflow commands)."""
    lines = [_annotation(found) for found in outcome.findings]
    return "\n".join([*lines, f"::notice title=Dry run::{_escaped(outcome.verdict_sentence)}"])


def _annotation(found: Finding) -> str:
    place = found.place
    file, cell = _file_and_cell(place.file)
    fields: dict[str, object] = {"file": file}
    if not cell:  # a cell's lines are not those of its file
        fields |= {"line": place.line, "col": place.column}
    fields["title"] = f"{found.rule} {title(found)}"
    escaped = {
        key: _escaped(str(value)).replace(":", "%3A").replace(",", "%2C")
        for key, value in fields.items()
        if value
    }
    where = "" if file and not cell else f"At {found.where}: "
    return (
        f"::{_LEVELS[found.severity]} {','.join(f'{key}={text}' for key, text in escaped.items())}"
        f"::{_escaped(f'{where}{found.why} Fix: {found.fix}')}"
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def sarif(outcome: Outcome) -> str:
    """The SARIF log of one run, as JSON text: what is ignored is a suppressed result."""
    results = [_result(found) for found in outcome.findings]
    results += [
        _result(found) | {"suppressions": [{"kind": "external"}]} for found in outcome.ignored
    ]
    ids = sorted({result["ruleId"] for result in results})
    run = {
        "tool": {"driver": {"name": "tpu-dry-run", "rules": [_rule(id) for id in ids]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": outcome.verdict != COULD_NOT_RUN,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": f"Not checked: {said}"}}
                    for said in outcome.not_checked
                ],
            }
        ],
        "results": [result | {"ruleIndex": ids.index(result["ruleId"])} for result in results],
        "properties": {"verdict": outcome.verdict, "topology": outcome.topology},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(id: str) -> dict:
    rule = rules.rule(id)
    return {
        "id": id,
        "shortDescription": {"text": rule.title},
        "help": {"text": rule.body, "markdown": rule.body},
        "defaultConfiguration": {"level": str(rule.severity)},
    }


def _result(found: Finding) -> dict:
    text = "\n".join(part for part in (found.why, f"Fix: {found.fix}", found.message) if part)
    return {
        "ruleId": found.rule,
        "level": str(found.severity),
        "message": {"text": text},
        "locations": [_location(found)],
    }


def _location(found: Finding) -> dict:
    place = found.place
    location: dict = {"logicalLocations": [{"fullyQualifiedName": found.where or "the program"}]}
    file, cell = _file_and_cell(place.file)
    if place.line and file:
        path = PurePath(file)
        uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}}
        if not cell:  # a cell's lines are not those of its file
            column = {"startColumn": place.column} if place.column else {}
            location["physicalLocation"]["region"] = {"startLine": place.line} | column
    return location


def _file_and_cell(file: str) -> tuple[str, str]:
    """Path and cell: ("nb.ipynb", "cell 3"), ("", "cell In [5]") of a notebook at work, ("train.py", "")."""
    if file.startswith(("cell ", "a notebook cell")):
        return "", file
    path, _, cell = file.partition("[cell ")
    return (PurePath(path).as_posix() if path else ""), cell
