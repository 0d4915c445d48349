"""Dry runs as real processes that share one cache: of the same and of other programs, one killed."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PORT = """
from dry_run_models import CLASSES, ROWS, dense, make, reader

def small():
    return make(dense), reader((ROWS, CLASSES))

def other():
    return make(dense, batch=128), reader((ROWS, CLASSES))
"""


class Command:
    """The dry run of a function of port.py, as a process."""

    def __init__(self, folder: Path, function: str, name: str) -> None:
        (folder / "port.py").write_text(PORT)
        (folder / "tmp").mkdir(exist_ok=True)
        self.json = folder / f"{name}.json"
        self._command = [sys.executable, "-m", "lab_utils.dry_run", f"port.py:{function}"]
        self._command += ["--stages", "trace,read,compile", "--json", str(self.json)]
        self._options = {
            "cwd": folder,
            "env": os.environ
            | {
                "PYTHONPATH": str(Path(__file__).parent),
                "XDG_CACHE_HOME": str(folder / "cache"),
                "TMPDIR": str(folder / "tmp"),
            },
        }

    def start(self) -> "Command":
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **self._options,
        )
        return self

    def compiled(self) -> list:
        """What it says of the compiled steps, once it has ended."""
        out, self.said = self.process.communicate()
        assert self.process.returncode in (0, 1), out + self.said  # with or without findings
        return json.loads(self.json.read_text())["compiled"]


def entries(folder: Path) -> list[Path]:
    """The cache's entries, each of which can be read whole; nothing else lies there."""
    found = list((folder / "cache" / "lab_utils" / "dry_run").iterdir())
    assert all(path.name.endswith(".json.gz") for path in found), found
    for path in found:
        gzip.decompress(path.read_bytes())
    return found


def test_at_once_on_a_cold_cache_with_one_killed_each_says_what_it_says_alone(tmp_path):
    """It is struck once the first entry lies in the cache: while they compile."""
    killed, *three = (
        Command(tmp_path, function, name).start()
        for function, name in (("small", 0), ("small", 1), ("small", 2), ("other", 3))
    )
    cache = tmp_path / "cache" / "lab_utils" / "dry_run"
    while killed.process.poll() is None and not (cache.exists() and any(cache.glob("*.json.gz"))):
        time.sleep(0.01)
    assert killed.process.poll() is None
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.communicate()
    one, same, other = (each.compiled() for each in three)
    assert one == same != other
    count = len(entries(tmp_path))
    again = Command(tmp_path, "small", "4").start()
    assert again.compiled() == one
    assert len(entries(tmp_path)) <= count + 1  # its own report; what was compiled is taken over
    assert not list((tmp_path / "tmp").iterdir())
