"""Programs with planted faults as TODOs: what is wrong with one, line by line, and the program after its fix."""

from collections.abc import Mapping, Sequence
from typing import Any

from lab_utils.check.clinic.examine import examine
from lab_utils.check.clinic.ward import Fault, Ward, ward
from lab_utils.check.outcome import NotAttempted, Wrong
from lab_utils.check.programs import AS_IT_WAS, read_program
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

_MOST = 4  # findings in one message
_LINES = 3  # of a program that one text may name


def enter_program(
    id: str,
    name: str,
    hints: Sequence[str],
    why: str = "",
) -> None:
    """Enters the TODO of a small program with one fault, which learners fix in a cell, with the reason.

    The learner hands over the file `NAME.py` and `NAME_reason`, a letter.

    Args:
        id: of the TODO.
        name: of the program.
        hints: in order.
        why: what stands below our solution.
    """

    def check_both(program: Any, letter: Any) -> str:
        patient = ward(name)
        (fault,) = patient.faults
        text = read_program(program, f"{name}.py")
        wrong = _why_not(patient, fault, letter)
        try:
            sentence = _fixed(patient, text)
        except Wrong as error:
            raise Wrong("\n".join(filter(None, [str(error), wrong]))) from None
        changed = _changed(patient, text)
        expect(not wrong, f"{changed} The program is fixed. {wrong}")
        return f"{changed} {fault.comment} {sentence}"

    todo(id, hints, why, names=(f"{name}.py", f"{name}_reason"))(check_both)


def _fixed(patient: Ward, text: str) -> str:
    """What is right about a program, in a sentence; raises `Wrong` with all that is to be said otherwise."""
    changes = patient.changes(text)
    if not changes:
        raise NotAttempted(AS_IT_WAS)
    try:
        return expect_healthy(patient, text)
    except Wrong as error:
        lines = [_changed(patient, text), str(error)]
    touched = {number for change in changes for number in change.sick}
    if not any(patient.lines(fault) & touched for fault in patient.faults):
        lines.append("The fault is not at the lines that you changed.")
    for number in sorted(touched):
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


def enter_reading(id: str, name: str, hints: Sequence[str], why: str = "") -> None:
    """Enters the TODO of reading a program: `NAME_diagnosis`, from the letter of each reason to the line."""

    def check_reading(diagnosis: Any) -> str:
        return _read(ward(name), diagnosis)

    todo(id, hints, why, names=(f"{name}_diagnosis",))(check_reading)


def enter_fixing(id: str, name: str, hints: Sequence[str], why: str = "") -> None:
    """Enters the TODO of fixing a program with several faults: the file `NAME.py`."""

    def check_fixing(program: Any) -> str:
        patient, text = ward(name), read_program(program, f"{name}.py")
        return f"{_changed(patient, text)} {_fixed(patient, text)}"

    todo(id, hints, why, names=(f"{name}.py",))(check_fixing)


def _read(patient: Ward, diagnosis: Any) -> str:
    """What is right about a diagnosis; raises `Wrong` where a fault is missed or misread."""
    places = {fault: patient.lines(fault) for fault in patient.faults}
    given = _lines_of_reasons(patient, diagnosis)
    most = f"The program has {len(places)} faults: name at most so many; yours names {len(given)}."
    expect(len(given) <= len(places), most)
    right = [fault for fault in places if places[fault] & given.get(fault.why, (set(), ""))[0]]
    found = [f"({number}) {fault.comment}" for number, fault in enumerate(right, 1)]
    wrong = []
    for why, (lines, code) in given.items():
        faulty = [fault for fault in places if places[fault] & lines]
        if not faulty:
            word = next(filter(None, map(patient.word, sorted(lines))), "")
            wrong.append(f"`{code}` is correct. {word or _elsewhere(patient, why)}")
        elif why not in [fault.why for fault in faulty]:
            wrong.append(f"Something is wrong at `{code}`, but not for the reason that you give.")
    if len(right) == len(places) and not wrong:
        silent = f"{_silent(right)} of them without an error on a TPU"
        return "\n".join([f"All {len(right)} faults found, {silent}.", *found])
    named = set().union(*(lines for lines, _ in given.values()))
    missing = [fault for fault in places if fault not in right and not places[fault] & named]
    silent = f"{len(missing)}, of which {_silent(missing)} would raise no error on a TPU"
    unseen = [f"Not seen yet: {silent}."] if missing else []
    first = f"{len(right)} of {len(places)} faults found."
    raise Wrong("\n".join([first, *found, *wrong, *unseen]))


def _elsewhere(patient: Ward, why: str) -> str:
    """What is to be said of a reason that stands at a correct line."""
    if any(fault.why == why for fault in patient.faults):
        return "The reason that you give fits another line."
    return patient.others[why] or "The reason that you give fits no line of this program."


def _lines_of_reasons(patient: Ward, diagnosis: Any) -> dict[str, tuple[set[int], str]]:
    """By reason the lines of the sick program that a learner names, and the text by which they are named."""
    kind = 'a dict from letters to lines of the program, such as {"B": "return dataset"}'
    expect(isinstance(diagnosis, Mapping), f"A diagnosis is {kind}; yours is {a(diagnosis)}.")
    given = {}
    for letter, code in diagnosis.items():
        key, choices = str(letter).strip().upper(), patient.choices
        within = f"is not one of the letters {min(choices)} to {max(choices)}"
        expect(key in choices, f"{letter!r} {within}: a diagnosis is {kind}.")
        expect(isinstance(code, str), f"{key}: copy the line as a text; yours is {a(code)}.")
        given[choices[key]] = _lines_with(patient, code), " ".join(code.split())
    return given


def _lines_with(patient: Ward, code: str) -> set[int]:
    """The lines of the sick program that are, or hold, what a learner copied of it."""
    copied = [" ".join(line.split()) for line in code.splitlines() if line.strip()]
    lines = [" ".join(line.split()) for line in patient.sick.splitlines()]
    whole = {number for number, line in enumerate(lines, 1) if line in copied}
    within = {n for n, line in enumerate(lines, 1) if any(part in line for part in copied)}
    expect(bool(within), f"`{code.strip()}` is not in the program: copy a line, or a part of it.")
    places = whole or within
    message = f"`{code.strip()}` is in {len(places)} lines: copy the whole line."
    expect(len(places) <= _LINES, message)
    return places


def _why_not(patient: Ward, fault: Fault, letter: Any) -> str:
    """What speaks against a letter; "" where it is that of the fault."""
    choices, letter = patient.choices, str(letter).strip().upper()
    kind = f"{patient.name}_reason is one of the letters {min(choices)} to {max(choices)}"
    if letter not in choices:
        return f"{kind}, not {letter!r}."
    if choices[letter] == fault.why:
        return ""
    against = patient.others[choices[letter]]
    return f"The reason is not {letter}, {choices[letter]}. {against}".rstrip()


def _silent(faults: Sequence[Fault]) -> int:
    return sum(fault.silent for fault in faults)


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
