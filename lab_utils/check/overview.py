"""`python -m lab_utils progress`: what is done in each lab, what is open, and how many minutes are left."""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from lab_utils.check import progress, todos
from lab_utils.common import command, files
from lab_utils.common.figures import counted

_FORMAT = 1
_BAR = 12  # characters


@cache
def labs() -> dict[int, dict]:
    """The labs by number: {"title": ..., "minutes": ...}, as `python -m lab_utils.build` noted them."""
    kept = json.loads(resources.files("lab_utils.check").joinpath("labs.json").read_text("utf-8"))
    return {int(number): entry for number, entry in kept.items()}


def ids(lab: int) -> list[str]:
    """The TODOs of a lab, without importing its checks, which takes TensorFlow."""
    return sorted(set(re.findall(r"^ *# TODO (\d+[a-z]): ", todos.source(lab), re.M)))


def table() -> str:
    """A line a lab: done of all its TODOs, its title, minutes left in proportion to what is open."""
    done, shown = progress.done(), progress.shown()
    lines, left = [], 0
    for lab, entry in labs().items():
        own = ids(lab)
        right = sum(id in done for id in own)
        minutes = round(entry["minutes"] * (1 - right / len(own)))
        left += minutes
        filled = round(_BAR * right / len(own))
        seen = sum(id in shown for id in own)
        told = f"{minutes} min left" if minutes else "done"
        told += f", {counted(seen, 'solution')} shown" if seen else ""
        bar = "#" * filled + "." * (_BAR - filled)
        lines.append(f"{lab:02d} {bar} {right} of {len(own)}  {entry['title']}: {told}")
    hours = f"{left // 60} h {left % 60} min"
    return "\n".join([*lines, f"About {hours} left, by the minutes that each lab states."])


def export(path: Path | None) -> None:
    """Writes the progress and predictions to a file that `take` reads on another machine; None prints them.

    Raises:
        OSError: it cannot be written.
    """
    state = {"format": _FORMAT, "done": sorted(progress.done()), "shown": sorted(progress.shown())}
    state["predictions"] = progress.predictions()
    text = json.dumps(state, indent=1) + "\n"
    if path is None:
        print(text, end="")
    else:
        files.write(path, text)


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
        given = progress.cleaned(state)
    except (KeyError, TypeError, ValueError, RecursionError):
        given = path or "the standard input"
        raise ValueError(
            f"{given} is not a progress that `progress --export` has written"
        ) from None
    before = progress.done()
    progress.add(given)
    return len(progress.done() - before)


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns 2 where a file cannot be read or written."""
    parser = argparse.ArgumentParser(prog="python -m lab_utils progress", description=__doc__)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--export",
        type=lambda text: text if text == "-" else files.output(files.JSON)(text),
        metavar="FILE",
        help="keep it in a file; - prints it",
    )
    where.add_argument(
        "--import",
        dest="take",
        type=lambda text: text if text == "-" else files.path_argument(text),
        metavar="FILE",
        help="add an exported one; - reads the standard input",
    )
    options = parser.parse_args(arguments)
    try:
        if options.export == "-":
            export(None)
        elif options.export:
            export(options.export)
            print(f"progress written to {options.export}")
        elif options.take:
            taken = take(None if options.take == "-" else options.take)
            print(f"{counted(taken, 'TODO')} more done")
        else:
            print(table())
    except BrokenPipeError:
        raise
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.filename else error
        print(f"progress: {told}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"progress: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    command.run(lambda: main(sys.argv[1:]))
