"""A learner's progress and predictions, in one JSON file of the user's own.

The file is progress.json in $XDG_STATE_HOME/tpu-porting-labs, or ~/.local/state/tpu-porting-labs.
Where it cannot be written, progress lasts as long as the process.
"""

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab_utils.common import files

_WAIT = 5  # seconds for another notebook that records at this moment
_UNREADABLE = (ValueError, KeyError, TypeError, RecursionError, OverflowError)
_memory: dict[str, Any] | None = None  # used where the file cannot be written


def file() -> Path:
    """Where progress is kept.

    Raises:
        OSError: this user has no home folder.
    """
    state = files.user_folder("XDG_STATE_HOME", ".local/state")
    return state / "tpu-porting-labs" / "progress.json"


def done() -> set[str]:
    """The ids of the TODOs that have been correct once."""
    return set(load()["done"])


def shown() -> set[str]:
    """The ids of the TODOs whose solution was shown."""
    return set(load()["shown"])


def prediction(name: str) -> float | None:
    """The number predicted under that name, if any."""
    return load()["predictions"].get(name)


def record(todo: str) -> None:
    """Notes that a TODO was correct."""
    if todo not in done():
        _change(lambda state: state["done"].append(todo))


def record_shown(todo: str) -> None:
    """Notes that the solution of a TODO was shown."""
    if todo not in shown():
        _change(lambda state: state["shown"].append(todo))


def record_prediction(name: str, value: float) -> None:
    """Keeps a prediction; a later one replaces it."""
    _change(lambda state: state["predictions"].update({name: value}))


def add(other: dict[str, Any]) -> None:
    """Adds what `cleaned` has returned; where both have a prediction, the one that is here stays.

    Raises:
        OSError: it cannot be kept beyond this process.
    """

    def join(state: dict[str, Any]) -> None:
        for kind in ("done", "shown"):
            state[kind] += other[kind]
        state["predictions"] = other["predictions"] | state["predictions"]

    _change(join)
    if _memory is not None:
        raise OSError("the progress file cannot be written")


def load() -> dict[str, Any]:
    """The state: "done", "shown", "predictions"; empty where there is no file, or none that can be read."""
    if _memory is not None:
        return _memory
    try:
        return cleaned(json.loads(file().read_bytes()))  # with a mark of byte order, too
    except (OSError, *_UNREADABLE):
        return {"done": [], "shown": [], "predictions": {}}


def cleaned(state: Any) -> dict[str, Any]:
    """A state as a file holds it, without what does not belong there.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: it has another shape.
    """
    lists = {"done": state["done"], "shown": state.get("shown", [])}  # older files have none
    numbers = {
        name: value
        for name, value in dict(state["predictions"]).items()
        if type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)
    }
    todos = {
        kind: sorted({todo for todo in list(ids) if isinstance(todo, str)})
        for kind, ids in lists.items()
    }
    return {**todos, "predictions": numbers}


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
        state = load()
        change(state)
        state = cleaned(state)
        try:
            _set_aside_unreadable()
            files.write(file(), json.dumps(state, indent=1))
        except OSError:
            _memory = state


def _set_aside_unreadable() -> None:
    """Renames a file that this version cannot read, before another one is written in its place."""
    try:
        cleaned(json.loads(file().read_bytes()))
    except FileNotFoundError:
        return
    except _UNREADABLE:
        aside = file().with_name("progress.unreadable.json")
        file().replace(aside)
        print(f"The progress kept so far cannot be read. It is in {aside}; a new one begins.")
