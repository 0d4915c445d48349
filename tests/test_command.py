"""Commands whose output is closed, full or not read, and Ctrl-C where nothing expects it."""

import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from lab_utils.common import command
from lab_utils.dry_run import arguments

HELP = [sys.executable, "-m", "lab_utils", "progress"]
OWN = [sys.executable, "-c"]


def test_a_reader_that_has_gone_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(HELP, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_a_dry_run_whose_reader_has_gone_is_not_ready():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "lab_utils.dry_run", "--rules"]
    ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_a_dry_run_of_a_user_without_a_home_tells_its_help(monkeypatch):
    """As containers have that run with any user id."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(homeless))
    assert "kept in no place" in arguments.parser().format_help()


def homeless(_):
    raise RuntimeError("Could not determine home directory.")


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
        "import sys; sys.modules['libcst'] = None  # as if it were not installed\n"
        "from lab_utils.common import command\nfrom lab_utils.port.__main__ import main\n"
        "command.run(lambda: main(['train.py']))"
    )
    ran = subprocess.run([*OWN, code], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"libcst is not installed\. .* pip install '\.\[dry-run\]'\n", ran.stderr)


@pytest.mark.parametrize("module", ["build", "teach.instructor", "teach.site"])
def test_what_makes_the_course_says_what_it_needs(module, tmp_path):
    """None of them is reached where the import at its top ends in a traceback."""
    code = (
        "import runpy, sys; sys.modules['nbformat'] = None\n"
        f"sys.argv[1:] = ['--source', {str(tmp_path)!r}] if {module!r}.endswith('site') else []\n"
        f"runpy.run_module('lab_utils.{module}', run_name='__main__', alter_sys=True)"
    )
    ran = subprocess.run([*OWN, code], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"nbformat is not installed\. .* pip install '\.\[author\]'\n", ran.stderr)


def test_each_extra_that_is_named_brings_its_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for extra in set(command._EXTRAS.values()):
        assert extra in project["optional-dependencies"]
    own = ModuleNotFoundError("No module named 'mine'", name="mine")
    assert command.missing(own) == str(own)


@pytest.mark.parametrize("status", [1, 2])
def test_without_room_a_sentence_names_the_place(status, capsys):
    """A dry run without room has found nothing: its status is that of one that could not run."""

    def full():
        raise OSError(28, "No space left on device", "/here/file")

    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    def unforeseen():
        raise FileNotFoundError(2, "No such file", "/here/file")

    def limited():  # by `ulimit -f`
        raise OSError(27, "File too large", "/here/file")

    def crowded():  # by `ulimit -u` or `ulimit -v`
        raise RuntimeError("can't start new thread")

    assert {command.status_of(each, status) for each in (full, limited, nowhere)} == {status}
    for each in (crowded, lambda: bytearray(2**62)):
        assert command.status_of(each, status) == status
    first, large, second, *refused = capsys.readouterr().err.splitlines()
    assert first.startswith("/here/file: No space left on device. Make room there")
    assert large.startswith("/here/file: File too large. ")
    assert second.endswith("found in ['/tmp']: set TMPDIR to a folder that can be written")
    assert refused == 2 * [refused[0]] and refused[0].startswith("The system refused memory")
    with pytest.raises(FileNotFoundError):
        command.status_of(unforeseen, status)


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_what_native_code_prints_does_not_reach_a_file_where_a_stream_is_closed(stream, tmp_path):
    """The file would get the closed stream's number."""
    code = (
        "import os; from lab_utils.common import command\n"
        "def main():\n"
        "    with open('checkpoint', 'w') as file:\n"
        "        for number in (1, 2): os.write(number, b'a warning')\n"
        "        file.write('whole')\n"
        "        print('said')\n"
        "command.run(main)"
    )
    ran = subprocess.run(["sh", "-c", f'exec "$@" {stream}>&-', "sh", *OWN, code], cwd=tmp_path)
    assert ran.returncode == 0
    assert (tmp_path / "checkpoint").read_text() == "whole"


def test_an_interrupt_where_nothing_expects_it_is_one_word():
    code = "import os; from lab_utils.common import command; command.run(lambda: os.kill(os.getpid(), 2))"
    heard = functools.partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # also in the background
    ran = subprocess.run([*OWN, code], stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGINT, "\ninterrupted\n")


def test_ctrl_c_that_a_destructor_swallows_comes_again():
    """As JAX's callback of the garbage collector does while it compiles."""
    code = """
import os, signal, time
from lab_utils.common import command
class Collected:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1000))
def main():
    Collected()
    time.sleep(60)
command.run(main)
"""
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    ran = subprocess.run([*OWN, code], capture_output=True, text=True, preexec_fn=heard)
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + signal.SIGINT, "", "\ninterrupted\n")


OWN_CHILDREN = {
    "convert/worker.py",
    "dry_run/private/child.py",
    "grade/worker.py",
    "verify/least_time.py",
}


def test_each_command_lets_ctrl_c_come():
    """It is held from the import of the package on; the children of a command end with it."""
    package = Path(command.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if '__name__ == "__main__"' in text and str(path.relative_to(package)) not in OWN_CHILDREN:
            assert re.search(r"command\.(run|status_of)\(|interrupts\.let_come\(", text), path


def test_ctrl_c_while_a_command_is_still_imported_is_one_word(tmp_path):
    """It comes during the import of a package that this command needs."""
    (tmp_path / "yaml.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    ran = subprocess.run(
        [sys.executable, "-m", "lab_utils.flowers.task", "--help"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        preexec_fn=heard,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + signal.SIGINT, "", "\ninterrupted\n")


def test_a_package_of_others_hears_ctrl_c_though_it_imports_this_one(tmp_path):
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").write_text("import lab_utils")
    (tmp_path / "trainer" / "task.py").write_text(
        "import signal\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )
    command = [sys.executable, "-m", "trainer.task"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "set()\n", ran.stderr
