"""What learners get wrong in lab 12, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_CHEAPEST = r"""
def cheapest(trials, steps, deadline, budget):
    known = [t for t in trials if t.hours(steps) and t.price is not None]
    bills = [(t.price * t.hours(steps)[1], t.hours(steps)[1], t.topology) for t in known]
    possible = [bill for bill in bills if bill[1] <= deadline and bill[0] <= budget]
    return min(possible)[2] if possible else None
"""

ANSWERS = {
    "12a": [
        Right("answers = {1: 'c', 2: ' A ', 3: 'd', 4: 'b', 5: 'e', 6: 'g'}"),
        Right("answers = dict(enumerate('CADBEG', 1))"),
        Wrong("answers = {1: 'A', 2: 'A', 3: 'D', 4: 'B', 5: 'E', 6: 'G'}", "a v5p needs PJRT"),
        Wrong("answers = {1: 'D', 2: 'A', 3: 'C', 4: 'B', 5: 'E', 6: 'G'}", "Right: 4 of 6."),
        Wrong(
            "answers = {1: 'C', 2: 'D', 3: 'A', 4: 'B', 5: 'E', 6: 'G'}",
            "pip installed the newest libtpu",
        ),
        Wrong(
            "answers = {1: 'C', 2: 'A', 3: 'D', 4: 'F', 5: 'E', 6: 'G'}",
            "when it is imported, and here they were set later",
        ),
        Wrong("answers = {1: 'C', 2: 'A', 3: 'D', 4: 'B', 5: 'F', 6: 'G'}", "metadata server"),
        Wrong("answers = {1: 'C', 2: 'A', 3: 'D', 4: 'B', 6: 'G'}", "Not decided yet: 5"),
        Wrong(
            "answers = {1: 'C', 2: 'A', 3: 'D', 4: 'B', 5: 'E', 6: 'F'}",
            "Only one process at a time can use a chip",
        ),
        Wrong("answers = 'CADBEG'", "Expected a dict"),
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
    price = spot / useful if useful else float("inf")
    return price < full
"""
        ),
    ],
    "12c": [
        # The one that the wrong ones below are made from
        Right(_CHEAPEST),
        # A loop that keeps the best so far; memory and reasons asked first
        Right(r"""
def cheapest(trials, steps, deadline, budget):
    best, least = None, float("inf")
    for trial in trials:
        if trial.why or trial.step.memory.used > trial.step.memory.available.value:
            continue
        if not trial.hours(steps) or not trial.price:
            continue
        _, high = trial.hours(steps)
        bill = high * trial.price
        if high > deadline or bill > budget or bill >= least:
            continue
        best, least = trial.topology, bill
    return best
"""),
        # Sorted, with a helper
        Right(r"""
def _bill(trial, steps):
    hours = trial.hours(steps)
    if trial.seconds is None or hours is None or trial.price is None:
        return None
    return max(hours) * trial.price
def cheapest(trials, steps, deadline, budget):
    paid = [t for t in trials if _bill(t, steps) is not None and _bill(t, steps) <= budget]
    paid = [t for t in paid if max(t.hours(steps)) <= deadline]
    ranked = sorted(paid, key=lambda t: _bill(t, steps))
    return next((t.topology for t in ranked), None)
"""),
        # NumPy
        Right(r"""
import numpy as np
def cheapest(trials, steps, deadline, budget):
    high = np.array([(t.hours(steps) or (np.inf, np.inf))[1] for t in trials])
    price = np.array([np.inf if t.price is None else t.price for t in trials])
    cost = np.where((high <= deadline) & (high * price <= budget), high * price, np.inf)
    return trials[int(cost.argmin())].topology if np.isfinite(cost).any() else None
"""),
        # The row in the place of its name
        Wrong(
            _CHEAPEST.replace("t.topology) for", "t) for").replace(
                "min(possible)", "sorted(possible, key=lambda b: b[0])[0]"
            ),
            "should return a topology",
        ),
        # The fastest
        Wrong(
            _CHEAPEST.replace("min(possible)[2]", "min(possible, key=lambda bill: bill[1])[2]"),
            "The cheapest",
        ),
        # Hours of its own where the dry run refuses them
        Wrong(
            r"""
def cheapest(trials, steps, deadline, budget):
    bills = {}
    for t in trials:
        if t.seconds is None or t.price is None:
            continue
        high = t.seconds * steps / 3600 * 1.5
        if high <= deadline and high * t.price <= budget:
            bills[t.topology] = high * t.price
    return min(bills, key=bills.get, default=None)
""",
            "gives no hours",
        ),
        # A text for none
        Wrong(_CHEAPEST.replace("else None", 'else "none"'), "expected None"),
        # A missing price counts as nothing
        Wrong(
            _CHEAPEST.replace(" and t.price is not None", "").replace(
                "t.price * t", "(t.price or 0) * t"
            ),
            "The price of one slice is not known",
        ),
        # None is not asked for
        Wrong(_CHEAPEST.replace("if t.hours(steps) and t.price", "if t.price"), "raised"),
    ],
}
