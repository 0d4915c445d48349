"""Lab 16, the clinic: each program after its fix, with the reasons; a fault of one's own."""

from collections.abc import Sequence
from typing import Any

from lab_utils.check.clinic.examine import examine
from lab_utils.check.clinic.ward import ward
from lab_utils.check.labs.treatment import enter_program, expect_healthy, read_program
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, several

_HINTS = {
    "digits": "Go through the four changes of lab 02 one by one, and compare each with the program.",
    "photographs": "Follow one example through preprocess and batch to the core, and its prediction back to the host.",
    "reviews": "Ask of each line: does it run while the graph is built, on the host, or on a core?",
    "portraits": "There are two optimizers: what does each of the four changes mean for the second one?",
    "boxes": "Count: how many examples does each core get, and which of them does each metric count?",
    "films": "Write the shapes of stars and labels next to the line that subtracts them.",
}
_LAST = {
    "digits": "One fault is a missing line, and one is a missing argument.",
    "photographs": "Look for something in evaluation that belongs to training, and for ops that nothing runs.",
    "reviews": "Three of the faults are each a single word or line that a TPU cannot use. Look for one that writes to a terminal, one that looks something up in a table, and one that an older version of TensorFlow needed.",
    "portraits": "NumPy's numbers have 64 bits unless they are cast. This happens twice here, at different places.",
    "boxes": "Only one of two metrics leaves the fillers out. And a name in metric_fn is not among its parameters.",
    "films": "Look for a missing return, a number for another machine, a number that should be a parameter, a string.",
}
_FIXING = (
    "Change as little as you can: the program must still compute what it was written for.",
    "The message names the rule. `python -m lab_utils.dry_run --rules` shows its page, with wrong and right code.",
)

for _letter, _name in zip("abcdef", _HINTS, strict=True):
    enter_program(
        f"16{_letter}",
        _name,
        (_HINTS[_name], f"A run on a CPU proves nothing here. {_LAST[_name]}", *_FIXING),
        "Each fault is fixed at its own line, for the reason of that letter, and nothing else is removed.",
    )

_NO_DIFFERENCE = (
    "No stage of the dry run complains of your change, and on a CPU the batches, training, evaluation and predictions "
    "are what they were. Change what the program computes, or what a TPU would do with it."
)
_STAGES = {"1": "trace", "2": "read", "4": "run"}  # by the first digit of a rule


@todo(
    "16g",
    hints=(
        "Which faults of this lab raise an error while TPUEstimator builds its graphs, and which show only in a graph?",
        "The stage run compares eight cores with one. Which change does nothing on one core?",
        "No stage knows what you want. Which changes make a different program that is just as correct on a "
        "TPU?",
    ),
    why="Without the wrapper, the graph has no all-reduce, and the stage read notices this. A rule can judge "
    "what is wrong in every program, but not what your program was meant to compute.",
    names=("digits.py", "change", "verdict"),
)
def own_fault(program: Any, change: Sequence[str], verdict: str) -> str:
    """The first stage that complains of the learner's own change is the one that they predicted."""
    patient, text = ward("digits"), read_program(program, "digits.py")
    try:
        if text != patient.healthy:
            expect_healthy(patient, text)
    except Wrong as error:
        raise Wrong(
            f"Fix digits.py first (TODO 16a): else nobody can tell the faults apart.\n{error}"
        ) from None
    texts = several(change, 2) and all(isinstance(part, str) for part in change)
    expect(texts, f"change is a pair of texts, (old, new); yours is {a(change)}.")
    old, new = change
    count = text.count(old)
    expect(count == 1, f"{old!r} stands {count} times in your digits.py, not once.")
    choices = [*_STAGES.values(), "none"]
    said = str(verdict).strip().lower()
    expect(said in choices, f"verdict is one of {', '.join(choices)}; yours is {verdict!r}.")
    findings, other = examine(patient, text.replace(old, new))
    if not findings and not other:
        only_there = "use_tpu" in new and said == "none"  # no stage sees it, and no run on a CPU
        expect(only_there, _NO_DIFFERENCE)
        return "As you said: none. Your change acts only where use_tpu is true, and no rule is about it."
    first = min((finding.rule for finding in findings), default="")
    stage = _STAGES[first[3]] if first else "none"
    found = next((f"{f.rule}: {f.why}" for f in findings if f.rule == first), other)
    expect(said == stage, f"Not {said}, but {stage}. {found}")
    return f"As you said: {stage}. {found}"
