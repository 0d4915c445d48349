"""A treatment of a patient of the clinic, judged by the dry run and by what the program computes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab_utils.check.clinic import Unfit, examine, ward
from lab_utils.check.outcome import Wrong
from lab_utils.check.tools import a, expect

_MOST = 4  # findings in one message


def treated(name: str, treatment: Any) -> str:
    """What becomes of a treatment, in a sentence; raises `Wrong` where something is left."""
    patient = ward(name)
    expect(
        isinstance(treatment, Mapping | str | Path),
        "A treatment is a dict from line numbers of the listing to new lines, a whole program, or the Path of "
        f"your file; yours is {a(treatment)}.",
    )
    try:
        found = examine(patient, patient.treated(treatment))
    except (Unfit, ValueError, OSError) as error:
        raise Wrong(f"The program cannot be examined. {error}") from None
    if found.findings:
        shown = [f"{f.rule} at {_place(f.place)}: {f.why}" for f in found.findings[:_MOST]]
        raise Wrong("The dry run still finds:\n" + "\n".join(shown))
    expect(
        not found.changed,
        f"The dry run finds nothing, but the program is not what it was meant to be. {found.changed}",
    )
    return (
        "The dry run has no finding left, and on a CPU the program feeds, trains, evaluates and predicts what "
        "the healthy one does."
    )


def _place(place: Any) -> str:
    if not place.line:
        return place.text or str(place)
    return f"line {place.line} `{place.code}`"
