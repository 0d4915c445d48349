"""`python -m lab_utils progress`: what is done in each lab, what is open, and how many minutes are left."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lab_utils.check import progress
from lab_utils.check.sources import ids, labs
from lab_utils.common import command, files
from lab_utils.common.figures import counted

_FORMAT = 1
_BAR = 12  # characters


def table() -> str:
    """A line a lab: done of all its TODOs, its title, minutes left in proportion to what is open."""
    done, shown = progress.done(), progress.shown()
    lines, left = [], 0
    for lab, stated in labs().items():
        todos = set(ids(lab))
        right, seen = len(todos & done), len(todos & shown)
        minutes = round(stated["minutes"] * (1 - right / len(todos)))
        left += minutes
        bar = ("#" * round(_BAR * right / len(todos))).ljust(_BAR, ".")
        remark = f"{minutes} min left" if minutes else "done"
        remark += f", {counted(seen, 'solution')} shown" if seen else ""
        lines.append(f"{lab:02d} {bar} {right} of {len(todos)}  {stated['title']}: {remark}")
    hours = f"{left // 60} h {left % 60} min"
    return "\n".join([*lines, f"About {hours} left, by the minutes that each lab states."])


def exported() -> str:
    """Progress and predictions as text that `take` reads on another machine."""
    return json.dumps({"format": _FORMAT, **progress.load()}, indent=1) + "\n"


def take(path: Path | None) -> int:
    """Adds an exported progress to this user's; where both have a prediction, this user's stays.

    Args:
        path: of the file; None reads the standard input.

    Returns:
        How many TODOs are done now that were open before.

    Raises:
        OSError: the file cannot be read, or the progress cannot be written.
        ValueError: it is not an exported progress.
    """
    try:
        state = json.loads(path.read_bytes() if path else sys.stdin.buffer.read())
        if state["format"] != _FORMAT:
            raise ValueError
        other = progress.cleaned(state)
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
        name = path or "the standard input"
        message = f"{name} is not a progress that `progress --export` has written"
        raise ValueError(message) from None
    before = progress.done()
    progress.add(other)
    return len(progress.done() - before)


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns 2 where a file cannot be read or written."""
    parser = argparse.ArgumentParser(prog="python -m lab_utils progress", description=__doc__)
    where = parser.add_mutually_exclusive_group()
    help = "keep it in a file; - prints it"
    where.add_argument("--export", type=_path(files.output(files.JSON)), metavar="FILE", help=help)
    help = "add an exported one; - reads the standard input"
    where.add_argument(
        "--import", dest="take", type=_path(files.path_argument), metavar="FILE", help=help
    )
    options = parser.parse_args(arguments)
    try:
        if options.export == "-":
            print(exported(), end="")
        elif options.export:
            files.write(options.export, exported())
            print(f"progress written to {options.export}")
        elif options.take:
            taken = take(None if options.take == "-" else options.take)
            print(f"{counted(taken, 'TODO')} more done")
        else:
            print(table())
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        print(f"progress: {error}", file=sys.stderr)
        return 2
    return 0


def _path(kind):
    return lambda text: text if text == "-" else kind(text)


if __name__ == "__main__":
    command.run(lambda: main(sys.argv[1:]))
