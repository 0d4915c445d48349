"""A learner's progress and predictions, in one JSON file of the user's own.

The file is progress.json in $XDG_STATE_HOME/tpu-porting-labs, or ~/.local/state/tpu-porting-labs.
Where it cannot be written, progress lasts as long as the process.
"""

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab_utils.common import files

_WAIT = 5  # seconds for another notebook that records at this moment
_UNREADABLE = (ValueError, KeyError, TypeError, RecursionError)
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
    return set(_load()["done"])


def record(todo: str) -> None:
    """Keeps that a TODO was correct."""
    if todo not in done():
        with _changing() as state:
            state["done"] = sorted({*state["done"], todo})


def shown() -> set[str]:
    """The ids of the TODOs whose solution was shown."""
    return set(_load()["shown"])


def record_shown(todo: str) -> None:
    """Keeps that the solution of a TODO was shown."""
    if todo not in shown():
        with _changing() as state:
            state["shown"] = sorted({*state["shown"], todo})


def prediction(name: str) -> float | None:
    """The number predicted under that name, if any."""
    return _load()["predictions"].get(name)


def record_prediction(name: str, value: float) -> None:
    """Keeps a prediction; a later one replaces it."""
    with _changing() as state:
        state["predictions"][name] = value


def predictions() -> dict[str, float]:
    """All predictions by name."""
    return dict(_load()["predictions"])


def add(given: dict[str, Any]) -> None:
    """Adds what `cleaned` has returned; where both have a prediction, the one that is here stays.

    Raises:
        OSError: it cannot be kept beyond this process.
    """
    with _changing() as state:
        for name in ("done", "shown"):
            state[name] = sorted({*state[name], *given[name]})
        state["predictions"] = given["predictions"] | state["predictions"]
    if _memory is not None:
        raise OSError(f"{_place()} cannot be written")


def _place() -> str:
    try:
        return str(file())
    except OSError as error:
        return f"the progress file ({error.strerror})"


@contextlib.contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """Context manager: the state, to be changed and kept; one notebook at a time."""
    global _memory
    if _memory is not None:
        yield _memory
        return
    with contextlib.ExitStack() as stack:
        try:
            file().parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(files.locked(file().with_name(".lock"), wait=_WAIT))
        except (OSError, files.InUseError):
            pass  # written without the lock, or not at all
        state = _load()
        yield state
        try:
            _keep_unreadable()
            files.write(file(), json.dumps(state, indent=1))
        except OSError:
            _memory = state


def _load() -> dict[str, Any]:
    """The state; an empty one where there is no file, or one that this version cannot read."""
    if _memory is not None:
        return _memory
    try:
        return cleaned(json.loads(file().read_bytes()))  # with a mark of byte order, too
    except (OSError, *_UNREADABLE):
        return {"done": [], "shown": [], "predictions": {}}


def _keep_unreadable() -> None:
    """Moves a file that this version cannot read aside, before another one is written in its place."""
    try:
        cleaned(json.loads(file().read_bytes()))
    except FileNotFoundError:
        return
    except _UNREADABLE:
        aside = file().with_name("progress.unreadable.json")
        file().replace(aside)
        print(f"The progress kept so far cannot be read. It is in {aside}; a new one begins.")


def cleaned(state: Any) -> dict[str, Any]:
    """A state as a file holds it, without what does not belong there.

    Raises:
        KeyError, TypeError, ValueError: it has another shape.
    """
    done, predictions = list(state["done"]), dict(state["predictions"])
    shown = list(state.get("shown", []))  # older files have none
    return {
        "done": [todo for todo in done if isinstance(todo, str)],
        "shown": [todo for todo in shown if isinstance(todo, str)],
        "predictions": {
            name: value
            for name, value in predictions.items()
            if type(value) in (int, float) and _finite(value)
        },
    }


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float holds
        return False
