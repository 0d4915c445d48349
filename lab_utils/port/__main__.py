"""python -m lab_utils.port FILE.py: the mechanical part of a port as a diff, and what is left."""

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab_utils.common import command, files, interrupts
from lab_utils.port.port import ported
from lab_utils.port.program import NotPython

_EPILOG = """\
examples:
    python -m lab_utils.port train.py > train.diff && patch -p1 < train.diff
    python -m lab_utils.port train.py --write -- --data_dir=data

The diff goes to stdout, what is left to do and the dry runs (trace and read) to stderr. Flags after
-- are the program's own, for its dry run.

exit status: 0 ported (or nothing to port), 2 the file cannot be read or written
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.port",
        description="Ports a program of tf.contrib or of the plain Estimator to TPUEstimator, as far "
        "as that is mechanical.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.py", type=files.path_argument)
    parser.add_argument("--write", action="store_true", help="change the file")
    parser.add_argument("--no-dry-run", action="store_true", help="no dry run before and after")
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    flags, program_flags = parser.parse_args(words[:end]), words[end + 1 :]
    path = flags.file
    if path.suffix == ".ipynb":
        parser.error(f"{path} is a notebook: jupyter nbconvert --to script makes a program of it")
    try:
        old = path.read_bytes()
        new, todo = ported(old)
    except OSError as error:
        parser.error(f"{path}: {error.strerror}")
    except NotPython as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(diff(old, new, path))
    sys.stdout.flush()
    _say(f"{len(todo)} left to do by hand:" if todo else "Nothing is left that this can see.")
    for item in todo:
        _say(f"  {path}: {item}")
    try:
        if not flags.no_dry_run:
            interrupts.as_ctrl_c()  # the port, which stands beside the file meanwhile, goes then, too
            _dry_run("before", path, ["--contrib"], program_flags)
            if new != old:
                _dry_run_of_new(path, new, program_flags)
        if flags.write and new != old:
            files.write(path, new)
            _say(f"{path} is written.")
    except OSError as error:  # the folder is read-only, the disk is full
        print(f"{error.filename or path.parent}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def diff(old: bytes, new: bytes, path: Path) -> bytes:
    """A unified diff that `patch -p1` and `git apply` take; b"" where nothing changes."""
    name = path.as_posix().lstrip("/").encode()
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        b"a/" + name,
        b"b/" + name,
    )
    ended = (
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        for line in lines
    )
    return b"".join(ended)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _dry_run_of_new(path: Path, new: bytes, program_flags: Sequence[str]) -> None:
    """The port stands beside the file while it is judged, as its neighbours are imported by it."""
    with tempfile.NamedTemporaryFile(
        dir=path.absolute().parent, prefix="ported_", suffix=".py"
    ) as file:
        file.write(new)
        file.flush()
        _dry_run("after", Path(file.name), [], program_flags)


def _dry_run(when: str, path: Path, more: Sequence[str], program_flags: Sequence[str]) -> None:
    command_line = [sys.executable, "-m", "lab_utils.dry_run", "--main", str(path), *more]
    command_line += ["--stages", "trace,read", "--", *program_flags]
    ran = subprocess.run(command_line, capture_output=True, text=True)
    output = ran.stdout if ran.returncode < 2 else ran.stderr or ran.stdout
    verdict = re.compile(r"Ready|Not ready|No verdict|.*(ERROR|WARNING) TPU")
    lines = [line for line in output.splitlines() if verdict.match(line)]
    _say(f"dry run {when}: " + "\n  ".join(lines or output.splitlines()[-2:] or ["no report"]))


if __name__ == "__main__":
    command.run(main)
