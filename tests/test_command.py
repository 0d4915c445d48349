"""Commands whose output is closed, full or not read, and Ctrl-C where nothing expects it."""

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lab_utils.common import command, interrupts, source

HELP = [sys.executable, "-m", "lab_utils", "progress"]


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
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"tensorflow is not installed\. .*`make setup`.*\n", ran.stderr)


def test_tensorflow_without_docstrings_is_one_sentence():
    line = [sys.executable, "-OO", "-c", "import lab_utils.estimator"]
    ran = subprocess.run(line, capture_output=True, text=True)
    assert ran.returncode == 1
    assert (
        ran.stderr
        == "TensorFlow needs docstrings: run Python without -OO, and unset PYTHONOPTIMIZE\n"
    )


def test_an_interrupt_where_nothing_expects_it_is_one_word(capsys):
    def interrupted():
        raise KeyboardInterrupt

    assert command.status_of(interrupted) == 130 and capsys.readouterr().err == "\ninterrupted\n"


def test_an_interrupt_is_held_back_whatever_other_threads_there_are():
    done, over = [], threading.Event()
    threading.Thread(target=over.wait).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.held_back():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(sum(range(1000)))
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
    assert done == [499500]


@pytest.mark.parametrize("name", ["datasets", "dry_run", "flowers.task", "runtime"])
def test_an_interrupt_before_a_command_begins_shows_no_stack(name, tmp_path):
    """What each command imports first interrupts it here."""
    interrupted = "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "argparse.py").write_text(interrupted)
    ran = subprocess.run(
        [sys.executable, "-m", f"lab_utils.{name}", "--help"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        # A shell that runs the tests in the background has its children ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")


def test_without_room_a_sentence_names_the_place(capsys):
    """A dry run without room has found nothing: its status is that of one that could not run."""

    def full(number):
        raise OSError(number, os.strerror(number), "/here/file")

    assert command.status_of(lambda: full(errno.ENOSPC), 2) == 2
    assert capsys.readouterr().err.startswith("/here/file: No space left on device. Make room")


def test_a_file_that_cannot_be_used_is_named(capsys):
    def ends(*arguments):
        raise OSError(*arguments)

    refused = (errno.EACCES, "Permission denied", "/here/file")
    assert command.status_of(lambda: ends(*refused)) == 1
    assert capsys.readouterr().err == (
        "/here/file: Permission denied. Give another path, or correct what is at this one\n"
    )
    for nameless in (errno.ENOENT, errno.ECONNREFUSED):  # shows where it was raised
        with pytest.raises(OSError, match="nameless"):
            command.status_of(lambda number=nameless: ends(number, "nameless"))


def test_a_folder_that_has_been_removed_is_named_where_it_is_needed(tmp_path):
    def in_removed_folder(arguments):
        line = f"cd gone && rmdir ../gone && {shlex.quote(sys.executable)} {arguments}"
        (tmp_path / "gone").mkdir()
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        return subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    ran = in_removed_folder("-m lab_utils.datasets folder x --output_dir y")
    assert ran.returncode == 1
    assert ran.stderr == "the current folder has been removed: change to another one with cd\n"
    ran = in_removed_folder("-m lab_utils.dry_run --rule TPU101")
    assert (ran.returncode, ran.stderr) == (0, "")
    code = "from lab_utils.common import source; print(source.place(source.place).file)"
    ran = in_removed_folder(f"-c {shlex.quote(code)}")
    assert ran.stdout == f"{source.__file__}\n"


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", "<&- >&- 2>&-", ""])
def test_a_closed_stream_leads_nowhere(redirection, tmp_path):
    """Also for the files that a command opens, which would else get the stream's number."""
    code = (
        "import sys\nfrom lab_utils.common import command\n"
        "def main():\n    with open('made', 'w') as made:\n"
        "        print('to the output'); print('ready', file=sys.stderr)\n"
        "        return made.write('whole') and 0\n"
        "command.run(main)"
    )
    (tmp_path / "code.py").write_text(code)
    line = f"{shlex.quote(sys.executable)} code.py {redirection}"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(
        line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0 and (tmp_path / "made").read_text() == "whole", ran.stderr
    assert ran.stdout == ("" if ">&-" in redirection.split() else "to the output\n")
    assert ran.stderr == ("" if "2>&-" in redirection.split() else "ready\n")


def test_an_output_of_few_characters_has_others_replaced(tmp_path):
    code = "from lab_utils.common import command; command.run(lambda: print('r\\u00fc', '\\udcff'))"
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "r? ?\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_ended_keeps_what_is_done(number, tmp_path):
    """Each command: the signals are heard where `run` begins, and not in some of them."""
    code = (
        "import os, sys, time\nfrom lab_utils.common import command\n"
        "def main():\n    try:\n        os.kill(os.getpid(), int(sys.argv[1])); time.sleep(60)\n"
        "    finally:\n        open('kept', 'w').close()\n"
        "command.run(main)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(int(number))],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(
            number, signal.SIG_DFL
        ),  # nohup, and a shell in the background, have some of them ignored
    )
    assert (ran.returncode, ran.stderr) == (130, "\ninterrupted\n") and (tmp_path / "kept").exists()
