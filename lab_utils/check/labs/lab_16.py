"""Lab 16, the clinic: two TODOs for each patient, the diagnosis without the dry run and the treatment with it."""

from collections.abc import Callable, Mapping
from typing import Any

from lab_utils.check.clinic.ward import Verdict, Ward, ward
from lab_utils.check.labs.treatment import treated
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect


def _diagnosed(name: str, diagnosis: Any) -> str:
    patient = ward(name)
    expect(
        isinstance(diagnosis, Mapping),
        f"A diagnosis is a dict from line numbers to letters, such as {{12: 'B'}}; yours is {a(diagnosis)}.",
    )
    last = len(patient.sick.splitlines())
    for line, letter in diagnosis.items():
        expect(
            isinstance(line, int) and 0 < line <= last,
            f"{line!r} is not a line of the program: they go from 1 to {last}.",
        )
        expect(
            str(letter).strip().upper() in patient.choices,
            f"Line {line}: {letter!r} is not one of the letters {min(patient.choices)} to {max(patient.choices)}.",
        )
    verdict = patient.judge(diagnosis)
    if verdict.misread or verdict.accused or len(verdict.found) < len(patient.faults):
        raise Wrong(_told(patient, verdict))
    silent = sum(fault.silent for fault in patient.faults)
    words = " ".join(f"({number}) {fault.told}" for number, fault in enumerate(verdict.found, 1))
    return f"All {len(patient.faults)} faults, {silent} of them silent on a TPU too. {words}"


def _told(patient: Ward, verdict: Verdict) -> str:
    said = [f"{len(verdict.found)} of {len(patient.faults)} faults found."]
    said += [f"Found: {fault.why}. {fault.told}" for fault in verdict.found]
    if verdict.misread:
        lines = ", ".join(map(str, sorted(verdict.misread)))
        said.append(f"Something is wrong at line {lines}, but not for the reason that you give.")
    for line, word in sorted(verdict.accused.items()):
        said.append(f"Line {line} is healthy. {word}".rstrip())
    if verdict.missed:
        silent = sum(fault.silent for fault in verdict.missed)
        said.append(
            f"Not seen yet: {len(verdict.missed)}, of which {silent} would give no message on a TPU."
        )
    return "\n".join(said)


_HINTS = {
    "digits": "Go through the four changes of lab 02 one by one, and compare each with the program.",
    "photographs": "Follow one example: from the file through preprocess and batch to the core, and what comes back.",
    "reviews": "Ask of each line: is it run while the graph is built, on the host, or on a core?",
    "portraits": "Two optimizers: what does each of the four changes ask of the second one?",
    "boxes": "Count: how many examples does each core get, and which of them does each metric count?",
    "films": "Write the shapes of stars and labels beside the line that subtracts them.",
}
_LAST = {
    "digits": "One fault is a line that is missing, and one an argument that is missing: name the line where it belongs.",
    "photographs": "Look for what happens in evaluation that belongs to training, and for ops that nothing runs.",
    "reviews": "Three of the faults are one word or one line that a TPU has no use for: a terminal, a table, a version.",
    "portraits": "NumPy's numbers have 64 bits unless they are cast. It happens twice here, at different places.",
    "boxes": "Of the two metrics one leaves the fillers out. And a name in metric_fn is not one of its parameters.",
    "films": "A function without return, a number that fits another machine, a number that should be a parameter, text.",
}


def _enter(name: str, first: str, second: str) -> None:
    # The names of the parameters are those of the learner's variables.
    names = {"diagnosis": f"{name}_diagnosis", "treatment": f"{name}_treatment"}
    hints = (_HINTS[name], "That it runs on a CPU proves nothing here. " + _LAST[name])
    todo(first, hints, "Each fault at its line, with what a TPU makes of it.")(
        _named(names["diagnosis"], lambda given: _diagnosed(name, given))
    )
    treatment_hints = (
        "Change as little as you can: the program must still compute what it was written for.",
        "The message names the rule. `python -m lab_utils.dry_run --rules` shows its page, with wrong and right code.",
    )
    todo(
        second,
        treatment_hints,
        "Each fault fixed at its own line, and nothing taken out that was wanted.",
    )(_named(names["treatment"], lambda given: treated(name, given)))


def _named(parameter: str, check: Callable[[Any], str]) -> Callable[..., str]:
    """`check` as a function whose one parameter bears that name."""
    import inspect

    def checked(given: Any) -> str:
        return check(given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    checked.__signature__ = inspect.Signature([inspect.Parameter(parameter, kind)])
    return checked


for _number, _name in enumerate(
    ("digits", "photographs", "reviews", "portraits", "boxes", "films")
):
    _enter(_name, f"16{chr(ord('a') + 2 * _number)}", f"16{chr(ord('b') + 2 * _number)}")
