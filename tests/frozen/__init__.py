"""Answers that must stay as they are while the code behind them changes.

A corpus is a JSON file of this folder, an entry of it one line. FREEZE=1 in the environment writes the
entries of the tests that run, instead of comparing them; entries of tests that are gone stay until
they are deleted by hand.
"""

import fcntl
import functools
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_FILE_AND_LINE = re.compile(r"(?:.*[/\\])?([^/\\]+:\d+)\b")


def row(rule: str, severity: str, where: str) -> list[str]:
    """A finding as it is frozen; of its place the file and line, or what is known instead."""
    line = _FILE_AND_LINE.match(where.partition("`")[0])
    return [rule, str(severity), line[1] if line else where]


def rows(findings: Iterable) -> list[list[str]]:
    """The rows of findings, sorted."""
    return sorted(row(each.rule, each.severity, each.where) for each in findings)


def same(corpus: str, key: str, answer: Any) -> None:
    """Asserts that `answer`, plain data, equals the entry `key` of `corpus`.json."""
    answer = json.loads(json.dumps(answer))
    if os.environ.get("FREEZE"):
        return _write(corpus, key, answer)
    stored = entries(corpus)
    assert key in stored, f"{corpus}.json has no entry {key!r}: FREEZE=1 writes it"
    assert stored[key] == answer, (
        f"{corpus}.json, {key!r}\nfrozen: {json.dumps(stored[key])}\nnow:    {json.dumps(answer)}"
    )


@functools.cache
def entries(corpus: str) -> dict[str, Any]:
    """What is frozen of a corpus, key -> answer."""
    path = FOLDER / f"{corpus}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _write(corpus: str, key: str, answer: Any) -> None:
    with (FOLDER / f"{corpus}.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # other processes of pytest write, too
        file.seek(0)
        frozen = json.loads(file.read() or "{}") | {key: answer}
        lines = (f"{json.dumps(name)}: {json.dumps(frozen[name])}" for name in sorted(frozen))
        file.truncate(0)
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
