"""The demos of solutions/instructor/demos.md, typed as they stand: each command shows what the page says."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "solutions/instructor/demos.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh|text|diff)\n(.*?)^```$", re.M | re.S)
SECTIONS = dict(re.findall(r"^## (\d)\. [^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder in which the paths of a clone lead to this one."""
    for name in ("datasets", "solutions"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def type_in(folder: Path, text: str) -> None:
    """Runs the blocks of a section in their order, in one folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    output = ""
    for kind, block in BLOCK.findall(text):
        if kind == "sh":
            command = ["bash", "-c", block.replace("8501", port)]
            ran = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            output = ran.stdout
        elif kind == "text":
            for line in block.splitlines():
                seen = line in output or line in " ".join(output.split())
                assert seen, f"{line!r} is not in:\n{output[-3000:]}"
        else:
            edit(folder / "demo_port.py", block)


def edit(program: Path, diff: str) -> None:
    """Changes the lines of a program that the page tells to change."""
    old, new = (
        "".join(line[1:] + "\n" for line in diff.splitlines() if line[0] == sign) for sign in "-+"
    )
    text = program.read_text()
    assert text.count(old) == 1, old
    program.write_text(text.replace(old, new))


@pytest.mark.slow
def test_a_broken_port_is_judged_and_fixed(folder):
    type_in(folder, SECTIONS["1"])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("curl"), reason="the third demo asks a server with curl")
def test_a_killed_job_goes_on_and_its_model_is_served(folder):
    """The third demo serves the model of the second."""
    type_in(folder, SECTIONS["2"])
    type_in(folder, SECTIONS["3"])
    type_in(folder, SECTIONS["2"])  # rehearsed on the day before, and shown again
