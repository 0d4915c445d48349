"""Commands whose output is closed, full or not read, and Ctrl-C where nothing expects it."""

import functools
import os
import re
import signal
import subprocess
import sys

import pytest

from lab_utils.common import command

HELP = [sys.executable, "-m", "lab_utils", "progress"]
OWN = [sys.executable, "-c"]


def test_a_reader_that_has_gone_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(HELP, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_an_output_without_room_is_one_line():
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*HELP[:3], "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    assert ran.stderr == (
        "No space left on device: the output, or a temporary file, cannot be written\n"
    )


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path):
    (tmp_path / "train.py").write_text("x = 1")
    code = (
        "import sys; sys.modules['tensorflow'] = None  # as if it were not installed\n"
        "from lab_utils.common import command\nfrom lab_utils.port.__main__ import main\n"
        "command.run(lambda: main(['train.py']))"
    )
    ran = subprocess.run([*OWN, code], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"tensorflow is not installed\. .*`make setup`.*\n", ran.stderr)


def test_an_interrupt_where_nothing_expects_it_is_one_word():
    code = "import os; from lab_utils.common import command; command.run(lambda: os.kill(os.getpid(), 2))"
    heard = functools.partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # also in the background
    ran = subprocess.run([*OWN, code], stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGINT, "\ninterrupted\n")


@pytest.mark.parametrize("status", [1, 2])
def test_without_room_a_sentence_names_the_place(status, capsys):
    """A dry run without room has found nothing: its status is that of one that could not run."""

    def full():
        raise OSError(28, "No space left on device", "/here/file")

    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    def unforeseen():
        raise FileNotFoundError(2, "No such file", "/here/file")

    for fails in (full, nowhere, lambda: bytearray(2**62)):
        assert command.status_of(fails, status) == status
    room, place, memory = capsys.readouterr().err.splitlines()
    assert room.startswith("/here/file: No space left on device. Make room there")
    assert place.endswith("found in ['/tmp']: set TMPDIR to a folder that can be written")
    assert memory.startswith("The system refused memory")
    with pytest.raises(FileNotFoundError):
        command.status_of(unforeseen, status)
