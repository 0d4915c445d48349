"""What learners get wrong in lab 12, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_READING = r"""
def reading(report):
    losses = report["losses"]
    if not all(math.isfinite(loss) for loss in losses) or not losses[-1] < losses[0]:
        return "broken"
    if report["platform"] != "tpu":
        return "no chip"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    return "reached"
"""

ANSWERS = {
    "12a": [
        Right("answers = {1: 'c', 2: ' A ', 3: 'd', 4: 'b', 5: 'e'}"),
        Right("answers = dict(enumerate('CADBE', 1))"),
        Wrong("answers = {1: 'A', 2: 'A', 3: 'D', 4: 'B', 5: 'E'}", "a v5p needs PJRT"),
        Wrong("answers = {1: 'D', 2: 'A', 3: 'C', 4: 'B', 5: 'E'}", "Right: 3 of 5."),
        Wrong(
            "answers = {1: 'C', 2: 'D', 3: 'A', 4: 'B', 5: 'E'}", "pip installed the newest libtpu"
        ),
        Wrong(
            "answers = {1: 'C', 2: 'A', 3: 'D', 4: 'F', 5: 'E'}",
            "at its import, and they were set after",
        ),
        Wrong("answers = {1: 'C', 2: 'A', 3: 'D', 4: 'B', 5: 'F'}", "metadata server"),
        Wrong("answers = {1: 'C', 2: 'A', 3: 'D', 4: 'B'}", "Not decided yet: 5"),
        Wrong("answers = 'CADBE'", "Expected a dict"),
    ],
    "12b": [
        Mutant("spot / useful < full", "spot / useful <= full", "not cheaper"),
        Mutant("spot / useful < full", "spot * useful < full", "1.80"),
        # Lost time added instead of divided by
        Wrong(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    return spot * (1 + interruptions * lost_minutes / 60) < full
""",
            "0.60 / 0.5 = 1.20",
        ),
        # The price itself
        Wrong(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    return spot / (1 - interruptions * lost_minutes / 60 + 1e-9)
""",
            "True or False",
        ),
        # In minutes
        Right(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    left = 60 - interruptions * lost_minutes
    if left <= 0:
        return False
    return 60 * spot < full * left
"""
        ),
        # By infinity
        Right(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    useful = max(0.0, 1 - interruptions * lost_minutes / 60)
    price = spot / useful if useful else math.inf
    return price < full
"""
        ),
    ],
    "12c": [
        Mutant("not all(map(math.isfinite, losses)) or ", "", "infinite"),
        Mutant(" or losses[-1] >= losses[0]", "", "rose"),
        Mutant('report["platform"] != "tpu"', 'report["platform"] == "cpu"', "GPU"),
        Mutant('figure(report, "step") < figure(report, "least time")', "False", "least time"),
        Mutant(
            'figure(report, "step") < figure(report, "least time")',
            'figure(report, "step") > figure(report, "least time")',
            "bound",
        ),
        Mutant('figure(report, "step") <', 'figure(report, "first step") <', "first step"),
        Mutant('return "reached"', "return True", "one of"),
        # The one that the wrong ones below are made from
        Right(_READING),
        # Numpy, conditional chain
        Right(r"""
import numpy as np
def reading(report):
    losses = np.asarray(report["losses"], float)
    broken = not np.isfinite(losses).all() or losses[-1] >= losses[0]
    return ("broken" if broken else "no chip" if report["platform"] != "tpu"
            else "clock" if figure(report, "step") < figure(report, "least time") else "reached")
"""),
        # Helpers
        Right(r"""
def _falls(losses):
    return all(map(math.isfinite, losses)) and losses[0] > losses[-1]
def _too_fast(report):
    step, least = (figure(report, name) for name in ("step", "least time"))
    return step < least
def reading(report):
    for said, found in (("broken", lambda: not _falls(report["losses"])), ("no chip", lambda: report.get("platform") != "tpu"), ("clock", lambda: _too_fast(report))):
        if found():
            return said
    return "reached"
"""),
        # Any, early return
        Right(r"""
def reading(report):
    first, *_, last = report["losses"]
    if any(math.isnan(x) or math.isinf(x) for x in report["losses"]):
        return "broken"
    if last >= first:
        return "broken"
    if not report["platform"] == "tpu":
        return "no chip"
    if figure(report, "least time") > figure(report, "step"):
        return "clock"
    else:
        return "reached"
"""),
        # Platform first
        Wrong(
            r"""
def reading(report):
    losses = report["losses"]
    if report["platform"] != "tpu":
        return "no chip"
    if not all(math.isfinite(loss) for loss in losses) or not losses[-1] < losses[0]:
        return "broken"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    return "reached"
""",
            "A step that does not learn is broken on any machine",
        ),
        # Clock before the platform
        Wrong(
            r"""
def reading(report):
    losses = report["losses"]
    if not all(math.isfinite(loss) for loss in losses) or not losses[-1] < losses[0]:
        return "broken"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    if report["platform"] != "tpu":
        return "no chip"
    return "reached"
""",
            "The question about the platform comes before",
        ),
        # Nan alone
        Wrong(
            _READING.replace("math.isfinite(loss) for", "not math.isnan(loss) for"),
            "A loss in the middle was infinite: the last loss does",
        ),
        # Inf alone
        Wrong(
            _READING.replace("math.isfinite(loss) for", "not math.isinf(loss) for"),
            "A loss in the middle was not a number",
        ),
        # The last loss's finiteness alone
        Wrong(
            _READING.replace(
                "not all(math.isfinite(loss) for loss in losses)", "not math.isfinite(losses[-1])"
            ),
            "A loss in the middle was infinite: the last loss does",
        ),
        # Finite only where all are not
        Wrong(
            _READING.replace("not all(math", "not any(math"),
            "A loss in the middle was infinite: the last loss does",
        ),
        # Equal losses pass
        Wrong(
            _READING.replace("not losses[-1] < losses[0]", "losses[-1] > losses[0]"),
            "The last loss is not below the first: they are equal",
        ),
        # Must fall at every step
        Wrong(
            _READING.replace(
                "not losses[-1] < losses[0]", "not all(b < a for a, b in zip(losses, losses[1:]))"
            ),
            "The last loss is below the first: it may rise in the middle",
        ),
        # Slower than 10 times is the clock
        Wrong(
            _READING.replace(
                'figure(report, "step") < figure(report, "least time")',
                'figure(report, "step") <= figure(report, "least time")',
            ),
            "The step took exactly its least time",
        ),
        # Compares the lowest
        Wrong(
            _READING.replace("losses[-1] < losses[0]", "min(losses) < losses[0]"),
            "The last loss is above the first, whatever came between",
        ),
    ],
}
