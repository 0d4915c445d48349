"""python -m lab_utils.port FILE.py: the mechanical part of a port as a diff, and what is left."""

import argparse
import difflib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab_utils.common import command, files, interrupts

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
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    flags, program = parser.parse_args(given[:end]), given[end + 1 :]
    from lab_utils.port.port import ported
    from lab_utils.port.program import NotPython

    if flags.file.exists() and not flags.file.is_file():
        parser.error(f"{flags.file} is not a file")
    if flags.file.suffix == ".ipynb":
        parser.error(
            f"{flags.file} is a notebook: jupyter nbconvert --to script makes a program of it"
        )
    try:
        old = flags.file.read_bytes()
        new, left = ported(old)
    except OSError as error:
        parser.error(f"{flags.file}: {error.strerror}")
    except NotPython as error:
        print(f"{flags.file}: {error}", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(diff(old, new, flags.file))
    sys.stdout.flush()
    _say(
        f"{len(left)} left to do by hand:"
        if left
        else "Nothing is left to do by hand that this can see."
    )
    for each in left:
        _say(f"  {flags.file}: {each}")
    try:
        if not flags.no_dry_run:
            interrupts.as_ctrl_c()  # the port, which stands beside the file meanwhile, goes then, too
            _dry_run("before", flags.file, ["--contrib"], program)
            if new != old:
                _dry_run_of_new(flags.file, new, program)
        if flags.write and new != old:
            files.write(flags.file, new)
            _say(f"{flags.file} is written.")
    except BrokenPipeError:
        raise
    except OSError as error:  # the folder is read-only, the disk is full
        print(f"{error.filename or flags.file.parent}: {error.strerror}", file=sys.stderr)
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


def _dry_run_of_new(path: Path, new: bytes, program: Sequence[str]) -> None:
    """The port stands beside the file while it is judged, as its neighbours are imported by it."""
    with tempfile.NamedTemporaryFile(
        dir=path.absolute().parent, prefix="ported_", suffix=".py"
    ) as file:
        file.write(new)
        file.flush()
        _dry_run("after", Path(file.name), [], program)


def _dry_run(when: str, path: Path, more: Sequence[str], program: Sequence[str]) -> None:
    ran = subprocess.run(
        [
            sys.executable, "-m", "lab_utils.dry_run", "--main", str(path), *more,
            "--stages", "trace,read", "--", *program,
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    told = ran.stdout if ran.returncode < 2 else ran.stderr or ran.stdout
    lines = [
        line
        for line in told.splitlines()
        if line.startswith(("Ready", "Not ready", "No verdict"))
        or "ERROR TPU" in line
        or "WARNING TPU" in line
    ]
    _say(
        f"dry run {when}: " + "\n  ".join(lines or told.strip().splitlines()[-2:] or ["no report"])
    )


if __name__ == "__main__":
    command.run(main)
