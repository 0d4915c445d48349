"""The stages of a dry run, in their order.

Each uses the results of earlier stages and is reported independently.
"""

import inspect
import time
from collections.abc import Callable, Collection, Generator
from contextlib import ExitStack, closing

from lab_utils.dry_run import read, trace
from lab_utils.dry_run.compile import stage as compile
from lab_utils.dry_run.feed import stage as feed
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.private.process import TookTooLong
from lab_utils.dry_run.records import Stage, StageResult, Status
from lab_utils.dry_run.run import stage as run
from lab_utils.dry_run.session import Session, Skip
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import in_words

Steps = Generator[None, None, str]
# A stage's function adds its findings and figures to the session, and returns its detail. One that waits for
# processes of its own is a generator: it yields once, when they are under way, and the next stage begins.
STAGES = {
    Stage.TRACE: trace.carry_out,
    Stage.READ: read.carry_out,
    Stage.COMPILE: compile.carry_out,
    Stage.RUN: run.carry_out,
    Stage.FEED: feed.carry_out,
}


def carry_out(session: Session, stages: Collection[Stage], say: Callable[[str], None]) -> None:
    """Carries out the stages that are wanted, and puts what became of each into the session's results.

    `say` is told what goes on.
    """
    with ExitStack() as stack:  # an interrupt ends the processes of all stages
        under_way: list[tuple[StageResult, Steps]] = []
        for stage in Stage:
            if stage is Stage.FEED:  # it measures this machine: nothing may run beside it
                for result, steps in under_way:
                    _go_on(result, steps, session, say)
            result = StageResult(stage, Status.SKIPPED, "not asked for")
            session.results.append(result)
            if stage in stages:
                steps = stack.enter_context(closing(_steps(stage, session)))
                if _go_on(result, steps, session, say):
                    under_way.append((result, steps))


def _steps(stage: Stage, session: Session) -> Steps:
    outcome = STAGES[stage](session)
    return (yield from outcome) if inspect.isgenerator(outcome) else outcome


def _go_on(result: StageResult, steps: Steps, session: Session, say: Callable[[str], None]) -> bool:
    """Goes on with a stage until its processes are under way (True), or it is over."""
    say(result.stage)
    session.say, session.result = lambda what: say(f"{result.stage}, {what}"), result
    start = time.perf_counter()
    try:
        next(steps)
        return True
    except StopIteration as over:
        result.status, result.detail = Status.DONE, over.value
    except Skip as reason:
        result.status, result.detail = reason.status, str(reason)
    except Unavailable as why:
        result.detail = f"cannot be checked here: {why}"
        if result.stage is Stage.TRACE:  # without the graph of the first step there is no verdict
            result.status = Status.FAILED
    except TookTooLong as error:
        result.detail = str(error)
        session.not_judged.append(f"the train step, which was {error}")
    except CannotLower as error:
        result.status, result.detail = session.cannot_lower(session.mode, error)
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # what the earlier stages found must not be lost, whatever is raised
        result.status, result.detail = Status.FAILED, in_words(error)
    finally:
        result.seconds += time.perf_counter() - start
    return False


def not_checked(session: Session) -> list[str]:
    """What this run left out, and why; stages with the same reason together."""
    reasons: dict[tuple[Status, str], list[str]] = {}
    for result in session.results:
        if result.status in (Status.SKIPPED, Status.FAILED):
            reasons.setdefault((result.status, result.detail), []).append(result.stage)
    sentences = [
        f"{', '.join(sorted(ids))}, of {mode.activity}: {why.rstrip('.')}."
        for (mode, why), ids in session.silent.left_out.items()
    ]
    not_asked = session.silent.not_asked.items()
    counts = [f"{len(ids)} of {mode.activity}" for mode, ids in not_asked if ids]
    if counts:
        sentences.append(f"Rules that are asked of a TPUEstimator only: {', '.join(counts)}.")
    return (
        session.not_checked
        + sentences
        + [
            f"{', '.join(stages)} ({status}): {detail.rstrip('.')}."
            for (status, detail), stages in reasons.items()
        ]
    )
