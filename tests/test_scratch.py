"""Nothing stays in the system's temporary folder: of notebooks, dry runs, processes that were killed."""

import os
import subprocess
import sys

import pytest

from lab_utils.common import scratch

READY = """
from lab_utils.check import ready
ready()
import subprocess, sys, tempfile
tempfile.mkdtemp(prefix="digits-"), tempfile.NamedTemporaryFile(delete=False)
subprocess.run([sys.executable, "-c", "import tempfile; tempfile.mkdtemp()"], check=True)
print("made", flush=True)
"""
PORT = """
import tempfile
from pathlib import Path
def port():
    Path(tempfile.mkdtemp(), "of the port").touch()
    raise SystemExit(Path("made").touch())
"""


@pytest.fixture
def system(tmp_path) -> dict[str, str]:
    """The environment of a process whose system has an empty temporary folder."""
    (tmp_path / "tmp").mkdir()
    return os.environ | {"TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_a_notebook_leaves_nothing_and_clears_up_after_one_that_was_killed(system, tmp_path):
    killed = subprocess.Popen(
        [sys.executable, "-c", READY + "import time; time.sleep(60)"],
        stdout=subprocess.PIPE,
        text=True,
        env=system,
    )
    assert any("made" in line for line in killed.stdout)
    killed.kill()
    killed.communicate()
    (left,) = (tmp_path / "tmp").iterdir()  # all in one folder
    assert left.name.startswith("lab_utils-") and len(list(left.iterdir())) == 4  # and its owner
    os.utime(left / scratch.OWNER, (0, 0))
    subprocess.run([sys.executable, "-c", READY], check=True, env=system, capture_output=True)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_dry_run_leaves_nothing_of_a_port_that_ends_its_process(system, tmp_path):
    (tmp_path / "my_port.py").write_text(PORT)
    command = [sys.executable, "-m", "lab_utils.dry_run", "my_port.py:port", "--stages", "trace"]
    ran = subprocess.run(command, cwd=tmp_path, env=system, capture_output=True, text=True)
    assert ran.returncode == 2, ran.stderr
    assert (tmp_path / "made").exists() and not list((tmp_path / "tmp").iterdir())


def test_the_first_cell_again_makes_what_the_system_has_cleared_away(system):
    """As macOS clears temporary files of some days, under a notebook that stayed open."""
    code = "import shutil, tempfile; from lab_utils.common import scratch\n"
    code += "shutil.rmtree(scratch.use_process_folder()); scratch.use_process_folder(); tempfile.mkdtemp()"
    subprocess.run([sys.executable, "-c", code], check=True, env=system)
    assert not os.listdir(system["TMPDIR"])


def test_an_interrupt_before_the_judging_begins_is_one_word(system):
    code = (
        "from lab_utils.common import scratch\nfrom lab_utils.dry_run import isolation\n"
        "def interrupted():\n    raise KeyboardInterrupt\n"
        "scratch.folder = interrupted\nisolation.supervise(lambda: 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=system, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "\ninterrupted\n")


ENDS = {
    "descriptors closed": "import os; os.closerange(3, 1000)",
    "open replaced": "import builtins; builtins.open = None",
}


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
def test_what_a_program_has_closed_or_replaced_costs_no_verdict(program, system):
    code = (
        "from lab_utils.dry_run import isolation\n"
        f"isolation.supervise(lambda: exec({program!r}) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=system, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
