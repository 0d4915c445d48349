"""Examines a program: a quick dry run, then whether it still computes what the healthy one does."""

import functools
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from lab_utils.check.clinic import signs
from lab_utils.check.clinic.ward import Ward, ward
from lab_utils.check.tools import failure
from lab_utils.common import files
from lab_utils.dry_run import Finding, Report, Severity, dry_run
from lab_utils.dry_run.inspect import module_of_file, refusal, settings_finding

QUICK = ("trace", "read")


class Unfit(Exception):
    """A program that cannot be examined; the message says where it breaks, in the learner's terms."""


@dataclass(frozen=True)
class Examination:
    """What was found.

    Attributes:
        findings: of the dry run, without notes, but those that name one of the planted faults.
        changed: a sentence on what the program no longer computes as the healthy one does; "" for none.
        report: the dry run's whole report.
    """

    findings: list[Finding]
    changed: str
    report: Report

    @property
    def well(self) -> bool:
        """Whether nothing is left to fix."""
        return not self.findings and not self.changed


def examine(patient: Ward, text: str) -> Examination:
    """A dry run of the program `text` in its quick stages; where that finds nothing, its signs on a CPU.

    Raises:
        Unfit: the program cannot be loaded, or has no port().
    """
    report, port = _report(patient, text)
    own = {fault.rule for fault in patient.faults}
    found = [f for f in report.findings if f.severity is not Severity.NOTE or f.rule in own]
    found = [f for f in found if f.rule not in patient.allowed]
    changed = "" if found else signs.difference(port, _healthy(patient.name), patient.weight)
    return Examination(found, changed, report)


def dry_run_of(patient: Ward, text: str) -> Report:
    """The dry run of a program of this ward, in its quick stages.

    Raises:
        Unfit: the program cannot be loaded, or has no port().
    """
    return _report(patient, text)[0]


def _report(patient: Ward, text: str) -> tuple[Report, signs.Port | None]:
    try:
        port = signs.Port.of(_made(patient.name, text))
    except Unfit:
        raise
    except Exception as error:  # whatever the learner's lines raise, or the constructor
        if isinstance(error, ValueError) and (refused := settings_finding(error)):
            return refusal(patient.name, "v2:2x2", refused), None
        raise Unfit(failure(error)) from error
    options = {"stages": QUICK, "progress": False, **port.others}
    return dry_run(port.estimator, port.train, "v2:2x2", **options), port


@functools.cache
def _healthy(name: str) -> signs.Signs:
    return signs.measured(signs.Port.of(_made(name, ward(name).healthy)))


def _made(name: str, text: str) -> tuple:
    """What port() of the program returns."""
    try:
        compile(text, f"{name}.py", "exec")
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise Unfit(f"{name}.py, line {error.lineno}: {error.msg}: `{line}`") from None
    port: Callable | None = getattr(loaded(name, text), "port", None)
    if port is None:
        raise Unfit(f"{name}.py has no function port() any more: the clinic calls it.")
    return port()


def loaded(name: str, text: str, folder: Path | None = None) -> ModuleType:
    """The program as a module with a file of its own, which AutoGraph reads.

    Args:
        name: of the program.
        text: its source.
        folder: where it gets a folder of its own, whose name follows from the text; in the system's for
            temporary files otherwise, and where that cannot be written.
    """
    own = folder and folder / f"{name}-{zlib.crc32(text.encode()):08x}"
    try:
        own = own or Path(tempfile.mkdtemp(prefix=f"{name}-"))
        own.mkdir(parents=True, exist_ok=True)
        files.write(own / f"{name}.py", text)
    except OSError:
        if folder is None:
            raise
        return loaded(name, text)
    return module_of_file(own / f"{name}.py", f"clinic_{own.name}".replace("-", "_"))
