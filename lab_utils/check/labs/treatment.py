"""Programs with planted faults as TODOs: the program after its fix, and the reasons of the changes."""

import itertools
from collections.abc import Sequence
from typing import Any

from lab_utils.check.clinic.examine import examine
from lab_utils.check.clinic.ward import Ward, ward
from lab_utils.check.outcome import NotAttempted, Wrong
from lab_utils.check.programs import AS_IT_WAS, read_program
from lab_utils.check.todos import todo
from lab_utils.check.tools import expect

_MOST = 4  # findings in one message


def enter_program(
    id: str,
    name: str,
    hints: Sequence[str],
    why: str = "",
) -> None:
    """Enters the TODO of a program with faults, which learners fix in a cell, with the reason of each change.

    The learner hands over the file `NAME.py` and `NAME_reason`: a letter for each fault, in the order of the
    changes.

    Args:
        id: of the TODO.
        name: of the program.
        hints: in order.
        why: what stands below our solution.
    """

    def check_both(program: Any, letters: Any) -> str:
        patient, text = ward(name), read_program(program, f"{name}.py")
        sentence, changed = _fixed(patient, text), _changed(patient, text)
        wrong = _why_not(patient, text, letters)
        expect(not wrong, f"{changed} The program is fixed. {wrong}")
        comments = (fault.comment for fault in patient.faults)
        return (" " if len(patient.faults) == 1 else "\n").join([changed, *comments, sentence])

    todo(id, hints, why, names=(f"{name}.py", f"{name}_reason"))(check_both)


def enter_fixing(id: str, name: str, hints: Sequence[str], why: str = "") -> None:
    """Enters the TODO of fixing a program with several faults, without reasons: the file `NAME.py`."""

    def check_fixing(program: Any) -> str:
        patient, text = ward(name), read_program(program, f"{name}.py")
        return f"{_changed(patient, text)} {_fixed(patient, text)}"

    todo(id, hints, why, names=(f"{name}.py",))(check_fixing)


def _fixed(patient: Ward, text: str) -> str:
    """What is right about a program, in a sentence; raises `Wrong` with all that is to be said otherwise."""
    changes = patient.changes(text)
    if not changes:
        raise NotAttempted(AS_IT_WAS)
    try:
        return expect_healthy(patient, text)
    except Wrong as error:
        lines = [_changed(patient, text), str(error)]
    if not any(patient.places(text).values()):
        lines.append("The fault is not at the lines that you changed.")
    for number in sorted({number for change in changes for number in change.sick}):
        if word := patient.word(number):
            code = patient.sick.splitlines()[number - 1].strip()
            lines.append(f"You changed `{code}`, which was correct. {word}")
    raise Wrong("\n".join(lines))


def _changed(patient: Ward, text: str) -> str:
    """Which lines of the learner's file are new, and where lines went, in a sentence."""
    parts = []
    for change in patient.changes(text):
        first, last = (change.edited[0], change.edited[-1]) if change.edited else (0, 0)
        where = f"{first}" if first == last else f"{first} to {last}"
        parts.append(where if change.edited else f"{change.at} (taken out)")
    single = len(parts) == 1 and " to " not in parts[0]
    return f"You changed line{'' if single else 's'} {', '.join(parts)}." if parts else ""


def _why_not(patient: Ward, text: str, letters: Any) -> str:
    """What speaks against the letters of the reasons; "" where they are right."""
    choices, letters, number = patient.choices, str(letters).strip().upper(), len(patient.faults)
    given = [each for each in letters if each.isalnum()]
    if len(given) != number or len(set(given)) != number or not choices.keys() >= {*given}:
        some = "one of the letters" if number == 1 else f"{number} different letters from"
        within = f"{some} {min(choices)} to {max(choices)}"
        return f"{patient.name}_reason is {within}, not {letters!r}."
    faults = {fault.why: fault for fault in patient.faults}
    wrong = []
    for letter in given:
        if (reason := choices[letter]) not in faults:
            wrong.append(f"The reason is not {letter}, {reason}. {patient.others[reason]}")
    if wrong:
        return "\n".join(wrong)
    places = patient.places(text)
    pairs = itertools.combinations((places[faults[choices[letter]]] for letter in given), 2)
    swapped = any(above and below and min(above) > max(below) for above, below in pairs)
    order = "The reasons are right, but not in the order of your changes, from top to bottom."
    return order if swapped else ""


def expect_healthy(patient: Ward, text: str) -> str:
    """What is right about a program, in a sentence; raises `Wrong` with what is left to fix."""
    findings, change = examine(patient, text)
    if findings:
        lines = [f"{f.rule} at {_place(f.place)}: {f.why}" for f in findings[:_MOST]]
        raise Wrong("The dry run still finds:\n" + "\n".join(lines))
    found = "It runs" if patient.allowed else "The dry run finds nothing"
    expect(not change, f"{found}, but the program is not what it was meant to be. {change}")
    same = "on a CPU the batches, training, evaluation and predictions are those of the healthy program."
    return f"O{same[1:]}" if patient.allowed else f"The dry run has no finding left, and {same}"


def _place(place: Any) -> str:
    if not place.line:
        return place.text or str(place)
    return f"line {place.line} `{place.code}`"
