"""A learner's progress and predictions, in one JSON file of the user's own, and a table of them.

The file is progress.json in $XDG_STATE_HOME/tpu-porting-labs, or ~/.local/state/tpu-porting-labs; copied to
another machine it goes on there. Where it cannot be written, progress lasts as long as the process.
"""

import argparse
import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab_utils.check import sources
from lab_utils.common import files
from lab_utils.common.figures import counted

_WAIT = 5  # seconds for another notebook that records at this moment
_BAR = 12  # characters
_memory: dict[str, Any] | None = None  # used where the file cannot be written


def file() -> Path:
    """The file with the progress.

    Raises:
        OSError: this user has no home folder.
    """
    state = files.user_folder("XDG_STATE_HOME", ".local/state")
    return state / "tpu-porting-labs" / "progress.json"


def todos(kind: str) -> set[str]:
    """The ids of the TODOs that have been correct once ("done"), or whose solution was shown ("shown")."""
    return set(_load()[kind])


def record(kind: str, todo: str) -> None:
    """Notes that a TODO was correct ("done"), or that its solution was shown ("shown")."""
    if todo not in todos(kind):
        _change(lambda state: state[kind].append(todo))


def prediction(name: str) -> float | None:
    """The number predicted under that name, if any."""
    return _load()["predictions"].get(name)


def record_prediction(name: str, value: float) -> None:
    """Stores a prediction; a later one replaces it."""
    _change(lambda state: state["predictions"].update({name: value}))


def _load(set_aside: bool = False) -> dict[str, Any]:
    """The state: "done", "shown", "predictions"; empty where there is no file, or none that can be read.

    With `set_aside` such a file is renamed, since another one will be written in its place.
    """
    if _memory is not None:
        return _memory
    try:
        state = json.loads(file().read_bytes())  # with a mark of byte order, too
        lists = {kind: sorted(map(str, state.get(kind, []))) for kind in ("done", "shown")}
        numbers = {name: float(value) for name, value in state["predictions"].items()}
        return {**lists, "predictions": numbers}
    except OSError:
        pass
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        if set_aside:
            with contextlib.suppress(OSError):  # nothing can be written there
                aside = file().replace(file().with_name("progress.unreadable.json"))
                print(f"The progress file cannot be read, and is now {aside}. A new one begins.")
    return {"done": [], "shown": [], "predictions": {}}


def _change(change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the state and writes it, one notebook at a time."""
    global _memory
    if _memory is not None:
        change(_memory)
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, files.InUseError):  # else without the lock, or not at all
            file().parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(files.locked(file().with_name(".lock"), wait=_WAIT))
        state = _load(set_aside=True)
        change(state)
        try:
            files.write(file(), json.dumps(state, indent=1))
        except OSError:
            _memory = state


def table() -> str:
    """A line a lab: done of all its TODOs, its title, minutes left in proportion to what is open."""
    correct, solutions = todos("done"), todos("shown")
    lines, total = [], 0
    for lab, page in sources.labs().items():
        ids = set(sources.ids(lab))
        right, looks = len(ids & correct), len(ids & solutions)
        minutes = round(page["minutes"] * (1 - right / len(ids)))
        total += minutes
        bar = ("#" * round(_BAR * right / len(ids))).ljust(_BAR, ".")
        remark = f"{minutes} min left" if minutes else "done"
        remark += f", {counted(looks, 'solution')} shown" if looks else ""
        lines.append(f"{lab:02d} {bar} {right} of {len(ids)}  {page['title']}: {remark}")
    hours = f"{total // 60} h {total % 60} min"
    return "\n".join([*lines, f"About {hours} left, by the minutes that each lab states."])


def show(arguments: Sequence[str]) -> int:
    """Runs `python -m lab_utils progress`, which prints the table and where the progress is stored."""
    about = "What is done in each lab, what is open, and how many minutes are left."
    argparse.ArgumentParser("python -m lab_utils progress", description=about).parse_args(arguments)
    print(table())
    with contextlib.suppress(OSError):  # no home, no file
        print(f"Progress and predictions: {file()}; copy it to go on elsewhere.")
    return 0
