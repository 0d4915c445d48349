"""The table of published speeds beside bounds: its form, and where it is shown."""

import ast
import datetime
import pathlib
import re
import statistics

import pytest

from lab_utils.dry_run.report.words import published, shares_sentence, times_of_estimates
from lab_utils.runtime import chips

ROWS = published()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.program} on {row.chip}")
def test_a_row_says_what_was_measured_and_where_it_was_read(row):
    kinds = ("matmul", "convolutional net", "mixer", "transformer", "vision transformer")
    assert row.kind in kinds
    assert row.bound in ("compiled", "peak")
    assert 0 < row.of_bound < 1, "nothing is faster than its bound"
    assert datetime.date.fromisoformat(row.read) <= datetime.date.today() and row.source
    chip = chips.CHIPS[row.chip]
    assert row.cores <= chip.pod * chip.cores
    if row.measured.endswith("TFLOP/s a chip"):
        share = float(row.measured.split()[0]) * 1e12 / chip.flops
        assert share == pytest.approx(row.of_bound, abs=0.005)


def test_what_is_called_compiled_is_compiled_by_the_benchmark():
    script = pathlib.Path(__file__).with_name("benchmarks") / "published.py"
    (pairs,) = (
        node.value
        for node in ast.parse(script.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PAIRS"
    )
    names = {key.value for key in pairs.keys}
    assert names == {f"{row.program} on {row.chip}" for row in ROWS if row.bound == "compiled"}


def test_estimates_are_near_enough_to_be_printed():
    """What README says of them: enough trainings, some on chips of today, and a narrow interval."""
    trainings = [row for row in ROWS if hasattr(row, "of_estimate") and row.kind != "matmul"]
    assert len(trainings) >= 12 and sum(row.chip in ("v5e", "v6e") for row in trainings) >= 5
    assert statistics.median(abs(row.of_estimate - 1) for row in trainings) <= 0.2
    low, high = times_of_estimates()
    assert high <= 2 * low


def test_the_sentence_of_every_report_gives_the_range_of_each_kind():
    shares = [row.of_bound for row in ROWS if row.kind == "transformer"]
    assert re.search(rf"transformer: {100 * min(shares):.0f}.*{max(shares):.0%}", shares_sentence())


def test_the_page_of_figures_shows_every_row():
    readme = (pathlib.Path(__file__).with_name("benchmarks") / "README.md").read_text(
        encoding="utf-8"
    )
    for row in ROWS:
        cores = "1 core" if row.cores == 1 else f"{row.cores:,} cores"
        estimate = f"{row.of_estimate:.0%}" if row.bound == "compiled" else "–"
        shares = f"{row.of_bound:.0%} | {estimate}"
        shown = f"| {row.program} | {row.chip}, {cores} | {row.measured} | {shares} |"
        assert shown in readme, shown
