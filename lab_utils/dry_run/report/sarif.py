"""A report as SARIF 2.1.0, the form in which code hosts and editors take findings (OASIS, 2020-03-27)."""

import json
from pathlib import PurePath
from urllib.parse import quote

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, Outcome
from lab_utils.dry_run.report.repository import file_and_cell

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def log(outcome: Outcome) -> str:
    """The SARIF log of one run, as JSON text: what is ignored is a suppressed result."""
    found = [(each, False) for each in outcome.findings] + [
        (each, True) for each in outcome.ignored
    ]
    ids = sorted({each.rule for each, _ in found})
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
        "results": [_result(each, ids.index(each.rule), ignored) for each, ignored in found],
        "properties": {"verdict": outcome.verdict, "topology": outcome.topology},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(id: str) -> dict:
    known = rules.rule(id)
    return {
        "id": id,
        "shortDescription": {"text": known.title},
        "help": {"text": known.body, "markdown": known.body},
        "defaultConfiguration": {"level": str(known.severity)},
    }


def _result(found: Finding, index: int, ignored: bool) -> dict:
    result = {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": str(found.severity),
        "message": {
            "text": "\n".join(t for t in (found.why, f"Fix: {found.fix}", found.message) if t)
        },
        "locations": [_location(found)],
    }
    if ignored:
        result["suppressions"] = [{"kind": "external"}]
    return result


def _location(found: Finding) -> dict:
    place = found.place
    location: dict = {"logicalLocations": [{"fullyQualifiedName": found.where or "the program"}]}
    file, cell = file_and_cell(place.file)
    if place.line and file:
        path = PurePath(file)
        uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}}
        region = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
        if not cell:  # a cell's lines are not those of its file
            location["physicalLocation"]["region"] = region
    return location
