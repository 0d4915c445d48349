"""Which tests a run takes: all, a shard, or those whose turn it is at this commit; and how long they took.

`@pytest.mark.rotating(n)` on a parametrised test: `make test` runs about one case in n, another one at
each commit. ROTATION=7 repeats a choice; a run prints its own. ROTATION=all takes every case, and SHARD=3/8
the third of eight parts of a run. `-k` and a test's full name take what they name, without any rotation.
"""

import collections
import contextlib
import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What kind of test a file holds; the others are units.
KINDS = {
    "labs": ("test_labs.py::test_a_solution_gives", "test_labs.py::test_an_untouched", "test_labs_restarted",
             "test_places"),
    "answers": ("test_labs.py::test_answers", "test_clinic"),
    "programs": ("test_programs", "test_contrib", "test_port", "test_reports"),
    "corpus": ("test_dry_run_corpus", "test_dry_run_pages", "test_dry_run_jax_programs",
               "test_dry_run_keras_jax"),
    "jobs": ("test_flowers", "test_convert", "test_grade", "test_hub"),
    "commands": ("test_dry_run_main", "test_dry_run_tool", "test_packaging"),
}  # fmt: skip


def rotation() -> str:
    """What chooses the cases of this run: ROTATION, or the commit."""
    if chosen := os.environ.get("ROTATION"):
        return chosen
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip()[:8] or "0"


def turn(name: str, chosen: str, of: int) -> bool:
    """Whether it is the turn of `name`: of many names about one in `of`, others for another choice."""
    return chosen == "all" or _number(f"{chosen} {name}") % of == 0


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def choose(items: list[pytest.Item], named: bool) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of this run, and those left out.

    Args:
        items: what pytest collected.
        named: they were asked for by name, so none of them is left to its turn.
    """
    chosen, taken, left = rotation(), [], []
    number, parts = map(int, os.environ.get("SHARD", "1/1").split("/"))
    for item in items:
        mark = item.get_closest_marker("rotating")
        wanted = named or mark is None or turn(item.nodeid, chosen, mark.args[0])
        in_shard = _number(item.nodeid) % parts == number - 1
        (taken if wanted and in_shard else left).append(item)
    return taken, left


def kind(test: str) -> str:
    """The kind of a test, by its name in full."""
    return next((k for k, parts in KINDS.items() if any(part in test for part in parts)), "units")


def durations(reports: list[pytest.TestReport], path: Path) -> list[str]:
    """Writes the seconds of every test to `path` as JSON; returns a line for each kind, the longest first."""
    seconds: dict[str, float] = collections.defaultdict(float)
    for report in reports:
        seconds[report.nodeid] += report.duration
    with contextlib.suppress(OSError):  # a clone may be read-only
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(dict(sorted(seconds.items(), key=lambda pair: -pair[1])), indent=0)
        )
    sums: dict[str, list[float]] = collections.defaultdict(list)
    for test, taken in seconds.items():
        sums[kind(test)].append(taken)
    rows = sorted(sums.items(), key=lambda row: -sum(row[1]))
    return [f"{name:9} {len(each):5} tests {sum(each):7.0f} s" for name, each in rows]
