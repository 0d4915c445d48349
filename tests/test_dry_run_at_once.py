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


def started(folder: Path, function: str, name: str) -> subprocess.Popen:
    """The dry run of a function of port.py, which writes NAME.json."""
    (folder / "port.py").write_text(PORT)
    own = {"PYTHONPATH": str(Path(__file__).parent), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "lab_utils.dry_run", f"port.py:{function}"]
        + ["--stages", "trace,read,compile", "--json", f"{name}.json"],
        cwd=folder,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def compiled(folder: Path, process: subprocess.Popen, name: str) -> list:
    """What it says of the compiled steps, once it has ended."""
    out, _ = process.communicate()
    assert process.returncode in (0, 1), out  # with or without findings
    return json.loads((folder / f"{name}.json").read_text())["compiled"]


def test_at_once_on_a_cold_cache_with_one_killed_each_says_what_it_says_alone(tmp_path):
    """It is struck once the first entry lies in the cache: while they compile."""
    functions = {"killed": "small", "one": "small", "same": "small", "other": "other"}
    processes = {name: started(tmp_path, functions[name], name) for name in functions}
    killed, cache = processes.pop("killed"), tmp_path / "cache" / "lab_utils" / "dry_run"
    while killed.poll() is None and not (cache.exists() and any(cache.glob("*.json.gz"))):
        time.sleep(0.01)
    assert killed.poll() is None
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    one, same, other = (compiled(tmp_path, each, name) for name, each in processes.items())
    assert one == same != other
    for entry in cache.iterdir():
        gzip.decompress(entry.read_bytes())
    assert compiled(tmp_path, started(tmp_path, "small", "again"), "again") == one
