"""How a report judges, and how it shows itself: text, HTML, JSON. Made-up results; no TensorFlow."""

import dataclasses
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import dry_run_reports as made
import pytest

from lab_utils.common.figures import Figure, Kind, figure_text
from lab_utils.common.source import Place
from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Severity, Stage, StageResult, Status
from lab_utils.dry_run.report import html, terminal, words
from lab_utils.dry_run.report.report import Report

ALL = [made.ready, made.with_findings, made.out_of_memory]


def report_of(*stages: StageResult) -> Report:
    return Report("a port", "v2:2x2", 8, list(stages))


def done(*findings) -> StageResult:
    return StageResult(Stage.READ, Status.DONE, findings=list(findings))


FAILED = StageResult(Stage.COMPILE, Status.FAILED, "the compiler crashed")
SKIPPED = StageResult(Stage.COMPILE, Status.SKIPPED, "libtpu is not installed")


@pytest.mark.parametrize(
    ("stages", "verdict", "status"),
    [
        ([done()], "ready", 0),
        ([done(made.finding(severity=Severity.NOTE))], "ready", 0),
        ([done(made.finding(severity=Severity.WARNING))], "findings", 1),
        ([done(made.finding()), FAILED], "findings", 1),
        ([done(), FAILED], "could not run", 2),
        ([done(), SKIPPED], "ready", 0),
        ([SKIPPED], "could not run", 2),
        ([], "could not run", 2),
    ],
)
def test_verdict_and_exit_status(stages, verdict, status):
    report = report_of(*stages)
    assert (report.verdict, report.exit_status) == (verdict, status)


def test_a_skipped_stage_limits_what_ready_says():
    sentence = report_of(done(), SKIPPED).verdict_sentence
    assert "as far as was checked" in sentence and "compile" in sentence
    assert "as far as" not in report_of(done()).verdict_sentence


@pytest.mark.parametrize("make", ALL)
def test_the_second_line_says_what_was_judged(make):
    """The framework, what computes it, and how many of the topology's cores take part."""
    report = make()
    assert "; TPUEstimator on TensorFlow; 8 cores of v2:2x2; " in words.subject_line(report)
    second = " ".join(str(report).removeprefix(report.verdict_sentence).split())
    assert second.startswith(words.subject_line(report))
    assert words.subject_line(report) in html.page(report)
    written = json.loads(report.to_json())
    assert (written["framework"], written["backend"], written["devices"]) == (
        *("TPUEstimator", "TensorFlow"),
        8,
    )
    report.framework = report.backend = "JAX"
    report.devices = 1
    assert "; JAX; 1 of the 8 cores of v2:2x2; " in words.subject_line(report)
    report.devices = None
    assert "; not lowered for the 8 cores of v2:2x2; " in words.subject_line(report)
    assert "devices" not in json.loads(report.to_json())


def test_what_was_not_judged_keeps_a_report_from_being_ready():
    report = report_of(done())
    report.not_covered = ["fit at train.py:40"]
    assert report.exit_status == 0
    assert report.verdict_sentence == (
        "Ready for v2:2x2, as far as was checked. Only the first training was judged, not fit at "
        "train.py:40."
    )
    report.not_judged = ["the train step, which cannot be lowered here"]
    assert report.exit_status == 2
    assert "Not judged: the train step, which cannot be lowered here." in report.verdict_sentence


def test_a_stage_that_found_an_error_has_no_tick():
    error, note = (made.finding(severity=each) for each in (Severity.ERROR, Severity.NOTE))
    for findings, mark in (([error], "✗"), ([note], "✓"), ([], "✓")):
        report = report_of(done(*findings))
        assert f"{mark} read" in str(report) and f"<b>{mark} read</b>" in report._repr_html_()


def test_a_message_that_the_reason_quotes_stands_there_once():
    facts = {"mode": "train", "error": "ValueError: no such layer", "hint": "Write one."}
    found = rules.finding(
        "TPU199", Place("model.py", 3), message="ValueError: no such layer.", **facts
    )
    assert str(report_of(done(found))).count("no such layer") == 1


def test_json_carries_figures_that_are_not_finite():
    stage = StageResult(Stage.RUN, Status.DONE)
    stage.figures.append(Figure("loss", math.nan, "", Kind.MEASURED))
    written = report_of(stage).to_json()
    assert "NaN" not in written
    assert json.loads(written)["stages"][0]["figures"][0]["value"] == "nan"


@pytest.mark.parametrize("columns", (80, None))
@pytest.mark.parametrize("make", ALL)
def test_text_is_whole_and_no_wider_than_the_terminal(make, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns or 300))
    report = make()
    shown = str(report)
    assert " ".join(shown.split()).startswith(report.verdict_sentence)
    assert max(map(len, shown.splitlines())) <= (columns or terminal.WIDTH)
    joined = " ".join(shown.split())
    for finding in report.findings:
        for said in (finding.rule, finding.where, finding.message, finding.why, finding.fix):
            assert " ".join(said.split()) in joined
        assert rules.rule(finding.rule).title in joined
    for item in report.not_checked:
        assert item in joined
    assert joined.endswith(report.not_checked[-1])


def test_speed_follows_from_the_figures():
    on_a_slice = SimpleNamespace(cores=8, topology="v2:2x2")
    sentence = "".join(words.speed_sentences(made.train_step(), on_a_slice))
    assert "at least 34.9 ms" in sentence and "bound by HBM traffic" in sentence
    assert "6.33 ms" in sentence  # 145.5 GFLOP at 23 TFLOP/s
    assert "bound by FLOPs" in words.speed_sentences(made.eval_step(), on_a_slice)[0]
    alone = dataclasses.replace(made.train_step(), cores=1)
    assert words.speed_sentences(alone, on_a_slice)[0].endswith(
        "a core, and the step uses 1 of the 8 cores."
    )


class _Balance(HTMLParser):
    """Fails on an element that is not closed, and gathers what would load something from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.outside, self.seen = [], [], ""

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.outside += [
            value for name, value in attributes if name in ("src", "href") and "//" in (value or "")
        ]
        assert tag not in ("script", "link", "iframe")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.seen += data


@pytest.mark.parametrize("make", ALL)
def test_html_is_whole_and_needs_nothing_from_outside(make):
    report = make()
    for content in (report._repr_html_(), html.page(report)):
        parser = _Balance()
        parser.feed(content)
        assert not parser.open
        assert not parser.outside
        assert "url(" not in content and "@import" not in content
        for finding in report.findings:
            assert f"<h1>{finding.rule}: {rules.rule(finding.rule).title}</h1>" in content
            for said in (finding.where, finding.message, finding.why.replace("`", "")):
                assert said in parser.seen
        for item in (report.verdict_sentence, *report.not_checked):
            assert item in parser.seen


def test_html_shows_learners_text_as_text():
    hostile = made.finding(message="<script>alert(1)</script>", where="<b>model.py</b>")
    content = report_of(done(hostile))._repr_html_()
    assert "<script>" not in content and "<b>model.py" not in content
    assert "&lt;script&gt;" in content


def test_the_bar_of_memory_has_each_part_in_its_share():
    content = made.ready()._repr_html_().split("eval step")[0]
    shares = [float(each) for each in re.findall(r"width:([\d.]+)%", content)]
    assert shares[0] == pytest.approx(100 * 515 / (7.48 * 1024), abs=0.01) and len(shares) == 4
    content = made.out_of_memory()._repr_html_()
    assert sum(map(float, re.findall(r"width:([\d.]+)%", content))) == pytest.approx(100, abs=1)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (999.6, "examples/s", "1,000 examples/s"),
        (2_987_000_000, "bytes", "2.78 GiB"),
        (12.51e9, "B", "12.5 GB"),
        (0.982, "share", "98%"),
        (3, "batches", "3 batches"),
    ],
)
def test_figures_read_as_people_write_them(value, unit, shown):
    assert figure_text(Figure("a figure", value, unit, Kind.MEASURED)) == shown


def test_importing_the_package_imports_no_framework():
    code = (
        "import sys, lab_utils.dry_run, lab_utils.dry_run.__main__, lab_utils.dry_run.report.outcome\n"
        "print([name for name in ('tensorflow', 'jax', 'keras') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
