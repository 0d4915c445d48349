"""A patient of the clinic as TODOs: its diagnosis, judged line by line, and its treatment, judged by the dry run."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from lab_utils.check.clinic import Unfit, examine, loaded, ward
from lab_utils.check.clinic.ward import Verdict, Ward
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, failure

_MOST = 4  # findings in one message


def enter_diagnosis(id: str, name: str, hints: Sequence[str], why: str = "") -> None:
    """Enters a TODO: `{name}_diagnosis`, a dict from lines of the listing to letters of `choices`."""
    _enter(id, hints, why, lambda diagnosis: diagnosed(name, diagnosis), f"{name}_diagnosis")


def enter_treatment(id: str, name: str, hints: Sequence[str], why: str = "") -> None:
    """Enters a TODO: `{name}_treatment`, new text by line of the listing, a whole program, or its Path."""
    _enter(id, hints, why, lambda treatment: treated(name, treatment), f"{name}_treatment")


def enter_patient(
    id: str,
    name: str,
    hints: Sequence[str],
    why: str = "",
    run: Callable[[ModuleType], str] | None = None,
) -> None:
    """Enters one TODO of both, for a small program with one fault: which line, why, and its fix.

    Args:
        id: of the TODO.
        name: of the program.
        hints: in order.
        why: what stands below our solution.
        run: for a program that is not a port: runs the treated one, and returns a sentence or raises `Wrong`.
    """

    def judged(diagnosis: Any, treatment: Any) -> str:
        sentence = diagnosed(name, diagnosis)
        result = _run(name, treatment, run) if run else treated(name, treatment)
        return f"{sentence} {result}"

    _enter(id, hints, why, judged, f"{name}_diagnosis", f"{name}_treatment")


def _run(name: str, treatment: Any, run: Callable[[ModuleType], str]) -> str:
    """What `run` says of a treated program; raises `Wrong` where the program cannot be run."""
    try:
        return run(loaded(name, ward(name).treated(treatment)))
    except Wrong:
        raise
    except Exception as error:  # whatever the learner's lines raise
        raise Wrong(f"The treated program fails. {failure(error)}") from None


def _enter(id: str, hints: Sequence[str], why: str, check: Callable, *parameters: str) -> None:
    """`check` as a TODO; its parameters bear the names of the learner's variables."""

    def function(*results: Any) -> str:
        return check(*results)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [inspect.Parameter(parameter, kind) for parameter in parameters]
    function.__signature__ = inspect.Signature(names)
    todo(id, hints, why)(function)


def diagnosed(name: str, diagnosis: Any) -> str:
    """What is right about a diagnosis, in a sentence; raises `Wrong` where a fault is missed or misread."""
    patient = ward(name)
    message = f"A diagnosis is a dict from line numbers to letters, such as {{12: 'B'}}; yours is {a(diagnosis)}."
    expect(isinstance(diagnosis, Mapping), message)
    last = len(patient.sick.splitlines())
    for line, letter in diagnosis.items():
        message = f"{line!r} is not a line of the program: they go from 1 to {last}."
        expect(isinstance(line, int) and 0 < line <= last, message)
        expect(
            str(letter).strip().upper() in patient.choices,
            f"Line {line}: {letter!r} is not one of the letters {min(patient.choices)} to {max(patient.choices)}.",
        )
    verdict = patient.judge(diagnosis)
    if verdict.misread or verdict.accused or len(verdict.found) < len(patient.faults):
        raise Wrong(_message(patient, verdict))
    if len(patient.faults) == 1:
        return verdict.found[0].told
    silent = sum(fault.silent for fault in patient.faults)
    words = [f"({number}) {fault.told}" for number, fault in enumerate(verdict.found, 1)]
    first = f"All {len(patient.faults)} faults found, {silent} of them without an error on a TPU."
    return "\n".join([first, *words])


def _message(patient: Ward, verdict: Verdict) -> str:
    only = len(patient.faults) == 1
    sentences = [] if only else [f"{len(verdict.found)} of {len(patient.faults)} faults found."]
    sentences += [f"Found: {fault.why}. {fault.told}" for fault in verdict.found]
    if verdict.misread:
        lines = ", ".join(map(str, sorted(verdict.misread)))
        misread = f"Something is wrong at line {lines}, but not for the reason that you give."
        sentences.append(misread)
    for line, word in sorted(verdict.accused.items()):
        sentences.append(f"Line {line} is healthy. {word}".rstrip())
    if verdict.missed and only:
        sentences.append("The fault is not found yet.")
    elif verdict.missed:
        silent = sum(fault.silent for fault in verdict.missed)
        missed = f"Not seen yet: {len(verdict.missed)}, of which {silent} would raise no error"
        sentences.append(f"{missed} on a TPU.")
    return "\n".join(sentences)


def treated(name: str, treatment: Any) -> str:
    """What becomes of a treatment, in a sentence; raises `Wrong` where something is left."""
    patient = ward(name)
    kinds = "a dict from line numbers of the listing to new lines, a whole program, or the Path of your file"
    fits = isinstance(treatment, Mapping | str | Path)
    expect(fits, f"A treatment is {kinds}; yours is {a(treatment)}.")
    try:
        found = examine(patient, patient.treated(treatment))
    except (Unfit, ValueError, OSError) as error:
        raise Wrong(f"The program cannot be examined. {error}") from None
    if found.findings:
        shown = [f"{f.rule} at {_place(f.place)}: {f.why}" for f in found.findings[:_MOST]]
        raise Wrong("The dry run still finds:\n" + "\n".join(shown))
    message = f"The dry run finds nothing, but the program is not what it was meant to be. {found.changed}"
    expect(not found.changed, message)
    same = "on a CPU the batches, training, evaluation and predictions are those of the healthy program."
    return f"O{same[1:]}" if patient.allowed else f"The dry run has no finding left, and {same}"


def _place(place: Any) -> str:
    if not place.line:
        return place.text or str(place)
    return f"line {place.line} `{place.code}`"
