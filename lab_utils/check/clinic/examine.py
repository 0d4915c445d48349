"""Examines a program: a quick dry run, then whether it does what the healthy one does, then virtual cores."""

import functools
import tempfile
from pathlib import Path
from types import ModuleType

from lab_utils.check.clinic import signs
from lab_utils.check.clinic.ward import Ward, ward
from lab_utils.check.outcome import Wrong
from lab_utils.check.tools import failure
from lab_utils.common import files
from lab_utils.convert.logs import quiet
from lab_utils.dry_run import Finding, Report, Severity, dry_run
from lab_utils.dry_run.inspect import module_of_file, refusal, settings_finding
from lab_utils.estimator import tpu


@functools.lru_cache(maxsize=8)  # learners try the letters on the same program
@quiet()
def examine(patient: Ward, text: str) -> tuple[list[Finding], str]:
    """What is left to fix in the program `text`.

    Returns:
        The findings of a dry run in its quick stages, without notes, but those that name one of the planted
        faults; where there are none, a sentence on what the program no longer computes as the healthy one
        does, "" for nothing; and where it computes the same on a CPU, the findings of a run on virtual cores,
        which alone tells an update that depends on their number.

    Raises:
        Wrong: the program cannot be loaded, or has no port().
    """
    report, port = report_and_port(patient, text)
    findings = _to_fix(patient, report)
    change = "" if findings else _change(patient, port)
    if not findings and not change and isinstance(port.estimator, tpu.TPUEstimator):
        findings = _to_fix(patient, _report(port, "trace", "read", "run"))
    return findings, change


def _change(patient: Ward, port: signs.Port) -> str:
    """What the program no longer computes as the healthy one does."""
    was_right = not any("train_batch_size" in fault.right for fault in patient.faults)
    healthy = _healthy(patient.name)
    return signs.difference(port, healthy, patient.weight, patient.columns, was_right)


def _to_fix(patient: Ward, report: Report) -> list[Finding]:
    rules = {fault.rule for fault in patient.faults}
    findings = [f for f in report.findings if f.severity is not Severity.NOTE or f.rule in rules]
    return [f for f in findings if f.rule not in patient.allowed]


def report_and_port(patient: Ward, text: str) -> tuple[Report, signs.Port | None]:
    """The dry run of a program of this ward, in its quick stages, and what its port() returns.

    Raises:
        Wrong: the program cannot be loaded, or has no port().
    """
    try:
        port = signs.Port(*loaded(patient.name, text).port())
    except Exception as error:  # whatever the learner's lines raise, or the constructor
        if isinstance(error, ValueError) and (finding := settings_finding(error)):
            return refusal(patient.name, "v2:2x2", finding), None
        raise Wrong(f"The program cannot be examined. {failure(error)}") from error
    return _report(port, "trace", "read"), port


def _report(port: signs.Port, *stages: str) -> Report:
    options = {"stages": stages, "progress": False, **port.options}
    return dry_run(port.estimator, port.train, "v2:2x2", **options)


@functools.cache
def _healthy(name: str) -> signs.Signs:
    return signs.signs_of(signs.Port(*loaded(name, ward(name).healthy).port()))


def loaded(name: str, text: str) -> ModuleType:
    """The program `text` as a module with a file of its own, which AutoGraph reads."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    files.write(folder / f"{name}.py", text)
    return module_of_file(folder / f"{name}.py", f"clinic_{folder.name}".replace("-", "_"))
