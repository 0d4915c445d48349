"""A learner's progress and predictions, in one JSON file of the user's own, and a table of them.

The file also has the times, in seconds since 1970, at which each TODO was first tried and first right, and
at which the notebook was opened before that: the reading before the first check takes time, too.
Nothing sends them: --hand_in writes them into another file, which a learner may hand in with a notebook.

The file is progress.json in $XDG_STATE_HOME/tpu-porting-labs, or ~/.local/state/tpu-porting-labs; copied to
another machine it goes on there. Where it cannot be written, progress lasts as long as the process.
"""

import argparse
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab_utils.check import sources
from lab_utils.common import files
from lab_utils.common.figures import counted

_WAIT = 5  # seconds for another notebook that records at this moment
_BAR = 12  # characters
_BREAK = 30  # minutes between two tries, from which on a learner was doing something else
_memory: dict[str, Any] | None = None  # used where the file cannot be written
_opened: int | None = None  # when this notebook was opened, until a try notes it


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


def note_opening() -> None:
    """Notes the time at which a notebook was opened, for the next try that `record_try` notes."""
    global _opened
    if _opened is None:
        _opened = round(time.time())


def record_try(todo: str, right: bool) -> None:
    """Notes when a TODO was first tried, and that it was right, with the time of the first time.

    The first such try after the notebook was opened also notes that time: as "opened", or as "reopened"
    where the TODO had been tried before.
    """
    global _opened
    known = _load()["times"].get(todo, {})
    if "first" in known and ("solved" in known or not right):
        return
    opened, _opened = _opened, None

    def change(state: dict[str, Any]) -> None:
        now = round(time.time())
        times = state["times"].setdefault(todo, {})
        if opened is not None:
            times.setdefault("reopened" if "first" in times else "opened", opened)
        times.setdefault("first", now)
        if right:
            times.setdefault("solved", now)
            state["done"] = sorted({*state["done"], todo})

    _change(change)


def times() -> dict[str, dict[str, int]]:
    """When each TODO was first tried ("first") and first right ("solved"), in seconds since 1970.

    "opened" and "reopened" are when its notebook was opened before that, if that was its first try since.
    """
    return _load()["times"]


def minutes(ids: Collection[str], of: Mapping[str, Mapping[str, int]]) -> float:
    """Minutes from opening the notebook of these TODOs to the last one solved, longer breaks left out.

    Where no opening was noted, as in files of earlier editions, they begin with the first try.

    Args:
        ids: of the TODOs.
        of: what `times` gave to a learner.
    """
    moments = sorted(moment for id in ids for moment in of.get(id, {}).values())
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    return sum(gap for gap in gaps if gap <= 60 * _BREAK) / 60


def prediction(name: str) -> float | None:
    """The number predicted under that name, if any."""
    return _load()["predictions"].get(name)


def record_prediction(name: str, value: float) -> None:
    """Stores a prediction; a later one replaces it."""
    _change(lambda state: state["predictions"].update({name: value}))


def _load(set_aside: bool = False) -> dict[str, Any]:
    """The state: "done", "shown", "predictions", "times"; empty where no file can be read.

    With `set_aside` such a file is renamed, since another one will be written in its place.
    """
    if _memory is not None:
        return _memory
    try:
        state = json.loads(file().read_bytes())  # with a mark of byte order, too
        lists = {kind: sorted(map(str, state.get(kind, []))) for kind in ("done", "shown")}
        numbers = {name: float(value) for name, value in state["predictions"].items()}
        times = {
            id: {kind: int(seconds) for kind, seconds in each.items()}
            for id, each in state.get("times", {}).items()
        }
        return {**lists, "predictions": numbers, "times": times}
    except OSError:
        pass
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        if set_aside:
            with contextlib.suppress(OSError):  # nothing can be written there
                aside = file().replace(file().with_name("progress.unreadable.json"))
                print(
                    f"The progress file could not be read. It is now {aside}, and a new one begins."
                )
    return {"done": [], "shown": [], "predictions": {}, "times": {}}


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
        left = round(page["minutes"] * (1 - right / len(ids)))
        total += left
        bar = ("#" * round(_BAR * right / len(ids))).ljust(_BAR, ".")
        remark = f"{left} min left" if left else "done"
        own = minutes(ids, times())
        remark += f", you took {own:.0f} min" if own >= 1 else ""
        remark += f", {counted(looks, 'solution')} shown" if looks else ""
        lines.append(f"{lab:02d} {bar} {right} of {len(ids)}  {page['title']}: {remark}")
    hours = f"{total // 60} h {total % 60} min"
    lines.append(f"About {hours} left, by the minutes that each lab states.")
    if times():
        span = "Your minutes count from opening a lab to its last solution"
        lines.append(f"{span}, without breaks of over {_BREAK} minutes.")
    return "\n".join(lines)


def show(arguments: Sequence[str]) -> int:
    """Runs `python -m lab_utils progress`, which prints the table and where the progress is stored."""
    about = "What is done in each lab, what is open, and how many minutes are left."
    parser = argparse.ArgumentParser("python -m lab_utils progress", description=about)
    parser.add_argument(
        "--hand_in",
        type=files.path_argument,
        metavar="progress.json",
        help="write when you opened the labs, first tried each TODO and solved it, to hand it in",
    )
    options = parser.parse_args(arguments)
    try:
        print(table())
    except sources.NoSolutionsError as error:
        print(error)
        return 1
    if options.hand_in:
        files.write(options.hand_in, json.dumps(times(), indent=1) + "\n")
        print(
            f"Wrote {options.hand_in}: the times of {counted(len(times()), 'TODO')}, and nothing else."
        )
    with contextlib.suppress(OSError):  # no home, no file
        print(f"Your progress and predictions are in {file()}; copy it to continue elsewhere.")
    return 0
