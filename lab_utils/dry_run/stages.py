"""The stages of a dry run, in their order.

Each uses the results of earlier stages and is reported independently.
"""

import time

from lab_utils import source
from lab_utils.dry_run.compile import stage as compile
from lab_utils.dry_run.elsewhere import Elsewhere
from lab_utils.dry_run.feed import stage as feed
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.read import stage as read
from lab_utils.dry_run.records import Mode, Stage, StageResult, Status
from lab_utils.dry_run.report.progress import Progress
from lab_utils.dry_run.run import stage as run
from lab_utils.dry_run.session import Session, Skip, first_line
from lab_utils.dry_run.trace import stage as trace

# A stage's function adds its findings and figures to the session, and returns its detail.
STAGES = {
    Stage.TRACE: trace.carry_out,
    Stage.READ: read.carry_out,
    Stage.COMPILE: compile.carry_out,
    Stage.RUN: run.carry_out,
    Stage.FEED: feed.carry_out,
}


def carry_out(stage: Stage, session: Session, wanted: bool, bar: Progress) -> None:
    """Carries out one stage; whatever becomes of it stands in the session's results."""
    result = StageResult(stage, Status.SKIPPED, "not asked for")
    session.results.append(result)
    if not wanted:
        return
    bar.begin(stage)
    session.say = bar.say
    start = time.perf_counter()
    try:
        result.detail = STAGES[stage](session)
        result.status = Status.DONE
    except Skip as reason:
        result.detail = str(reason)
    except Elsewhere as error:
        result.detail = f"cannot be checked here: {error}"
    except (CannotLower, InputUnfit) as error:
        result.status, result.detail = session.cannot_lower(Mode.TRAIN, error)
    except (Exception, SystemExit) as error:  # what the earlier stages found must not be lost
        result.status, result.detail = Status.FAILED, _in_words(error)
    result.seconds = time.perf_counter() - start
    bar.end()


def not_checked(session: Session) -> list[str]:
    """What this run left out, and why; stages with the same reason together."""
    reasons: dict[tuple[Status, str], list[str]] = {}
    for result in session.results:
        if result.status is not Status.DONE:
            reasons.setdefault((result.status, result.detail), []).append(result.stage)
    return session.not_checked + [
        f"{', '.join(stages)} ({status}): {detail.rstrip('.')}."
        for (status, detail), stages in reasons.items()
    ]


def _in_words(error: Exception) -> str:
    """Type and first line of an exception, and the learner's line where it passed through one."""
    place = source.place(error)
    return f"{type(error).__name__}: {first_line(error)}" + (f" (at {place})" if place else "")
