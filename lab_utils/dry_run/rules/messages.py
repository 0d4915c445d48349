"""What TPUEstimator refuses of a program (the ids of facts/messages.py), and a session of a hook (TPU115)."""

from collections.abc import Iterator

from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.base import GRAPHS
from lab_utils.dry_run.facts.messages import MESSAGES, refused_settings
from lab_utils.dry_run.facts.refusal import Refusal
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding


def settings_finding(error: BaseException) -> Finding | None:
    """The finding for an exception met while the learner's own code made the estimator.

    None where it is not about the settings of a TPUEstimator.
    """
    refused = refused_settings(error)
    return _finding(refused) if refused else None


@rule("TPU115", needs=("refused_fetch",), modes=GRAPHS)
@rule(*dict.fromkeys(row.id for row in MESSAGES), needs=("refusal",), modes=GRAPHS)
def refusals(refused: Refusal | None) -> Iterator[Finding]:
    """The finding for the exception that ended the graph of a mode, or for the first hook that is refused."""
    if refused is not None:
        yield _finding(refused)


def _finding(refused: Refusal) -> Finding:
    facts = {"message": refused.message, "because_of": refused.because_of, **refused.facts}
    return finding(refused.id, refused.where, **facts)
