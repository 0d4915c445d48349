"""What the dry run says of each small port at its public door, and which of the port's functions it calls.

The other corpora compare rule, severity and line. Here all that a person reads is frozen: the verdict, what
was judged, each finding with its function, the text of its line, why and fix, and the list NOT CHECKED. A
change behind the door that moves any of it is seen. FREEZE=1 writes the entries (tests/frozen).
"""

import functools
import inspect
import linecache
import re
import sys

import pytest
from frozen import same
from rules.judging import report_of, small_tensors_count_as_large  # noqa: F401
from test_dry_run_corpus import OF_GRAPHS, RIGHT

from lab_utils.dry_run.inspect import settings_finding
from lab_utils.dry_run.records import Stage

STAGES = [Stage.TRACE, Stage.READ]
# What differs from run to run or from machine to machine: addresses, temporary folders, paths.
_CHANGING = re.compile(r"0x[0-9a-f]+|/tmp/[\w./-]+|(?<=[ \"'(])/[\w./-]+/(?=[\w.-]+\.py)")


# Which rules cannot be asked without a fact is the matter of test_dry_run_facts.py: a new one changes no pin.
_LEFT_OUT = re.compile(r"^(TPU\d+, )+(?=of )")


def plain(text):
    """A text without what changes from run to run."""
    return _CHANGING.sub("…", text)


def said(finding):
    """A finding as it is frozen: its place by file, function and the line's text, not by number."""
    place = finding.place
    line = linecache.getline(place.file, place.line).strip() if place.file and place.line else ""
    line = f"{place.function}: {line}" if place.function else line
    file = place.file.rpartition("/")[2] if place.file else plain(str(place))
    why, fix = (
        plain(re.sub(r"\b(\w+\.py):\d+", r"\1", text)) for text in (finding.why, finding.fix)
    )
    return [finding.rule, str(finding.severity), file, line, why, fix]


class Calls:
    """Notes the calls of a port's own functions: name, mode and batch size, in their order."""

    NAMES = (
        *("model_fn", "input_fn", "metric_fn", "host_fn", "scaffold_fn"),
        *("train_input", "eval_input", "predict_input", "receiver"),
    )

    def __init__(self):
        self.made = []

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self.made

    def __exit__(self, *error):
        sys.setprofile(self._before)

    def _note(self, frame, event, argument):
        code = frame.f_code
        if event != "call" or code.co_name not in self.NAMES or "/rules/" not in code.co_filename:
            return
        values = inspect.getargvalues(frame).locals
        params = values.get("params")
        size = params.get("batch_size") if isinstance(params, dict) else None
        self.made.append([code.co_name, str(values.get("mode", "")), size])


def pinned(make):
    """What trace and read say of the port that `make` gives, as a person reads it."""
    with Calls() as calls:
        try:
            port = make()
        except ValueError as error:
            refused = settings_finding(error)
            if refused is None:
                raise
            return {"refused": said(refused)}
        report = report_of(port, STAGES)
    return {
        "exit": report.exit_status,
        "verdict": report.verdict_sentence,
        "judged": f"{report.framework} on {report.backend}, {report.devices} cores",
        "findings": sorted(said(finding) for finding in report.findings),
        "not checked": [_LEFT_OUT.sub("rules ", plain(text)) for text in report.not_checked],
        "calls": calls,
    }


PORTS = {
    f"{port.rule} {port.name} {'wrong' if wrong else 'fixed'}": functools.partial(port.make, wrong)
    for port in OF_GRAPHS
    for wrong in (True, False)
} | {f"right {make.__name__}": make for make in RIGHT}


@pytest.mark.rotating(12)
@pytest.mark.parametrize("key", PORTS)
def test_all_that_is_said_of_a_port_is_as_it_was(key):
    same("pins", key, pinned(PORTS[key]))
