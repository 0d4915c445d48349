"""Findings that a person has judged and does not want to hear of: by rule, or by a comment at the line."""

import re
from collections.abc import Sequence

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.report.outcome import Outcome

_COMMENT = re.compile(r"#\s*tpu:\s*ignore\[([^\]]*)\]", re.I)


def set_aside(outcome: Outcome, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
    """Moves findings from the stages to `outcome.ignored`.

    They are those that `select` does not name, if it names any, those that `ignore` names, and those whose
    own line says `# tpu: ignore[TPU305]`.
    """
    for stage in outcome.stages:
        for found in list(stage.findings):
            unselected = select and not found.rule.startswith(tuple(select))
            if unselected or found.rule.startswith(tuple(ignore)) or _at_line(found, outcome):
                stage.findings.remove(found)
                outcome.ignored.append(found)


def _at_line(found: Finding, outcome: Outcome) -> bool:
    comment = _COMMENT.search(found.place.code)
    if not comment:
        return False
    try:
        return found.rule.startswith(rules.chosen(comment[1]) or ("nothing",))
    except ValueError as error:
        said = f"The comment at {found.place.position}: {error}."
        if said not in outcome.not_checked:
            outcome.not_checked.append(said)
        return False
