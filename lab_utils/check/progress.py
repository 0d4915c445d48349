"""A learner's progress and predictions, in one JSON file of the user's own.

The file is progress.json in $XDG_STATE_HOME/tpu-porting-labs, or ~/.local/state/tpu-porting-labs.
Where it cannot be written, progress lasts as long as the process.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

_memory: dict[str, Any] | None = None  # used where the file cannot be written


def file() -> Path:
    """Where progress is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tpu-porting-labs" / "progress.json"


def done() -> set[str]:
    """The ids of the TODOs that have been correct once."""
    return set(_load()["done"])


def record(todo: str) -> None:
    """Keeps that a TODO was correct."""
    state = _load()
    if todo not in state["done"]:
        state["done"] = sorted([*state["done"], todo])
        _save(state)


def shown() -> set[str]:
    """The ids of the TODOs whose solution was shown."""
    return set(_load()["shown"])


def record_shown(todo: str) -> None:
    """Keeps that the solution of a TODO was shown."""
    state = _load()
    if todo not in state["shown"]:
        state["shown"] = sorted([*state["shown"], todo])
        _save(state)


def prediction(name: str) -> float | None:
    """The number predicted under that name, if any."""
    return _load()["predictions"].get(name)


def record_prediction(name: str, value: float) -> None:
    """Keeps a prediction; a later one replaces it."""
    state = _load()
    state["predictions"][name] = value
    _save(state)


def _load() -> dict[str, Any]:
    """The state; an empty one where there is no file, or one that this version cannot read."""
    if _memory is not None:
        return _memory
    try:
        state = json.loads(file().read_text(encoding="utf-8"))
        return {
            "done": list(state["done"]),
            "shown": list(state.get("shown", [])),  # older files have none
            "predictions": dict(state["predictions"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {"done": [], "shown": [], "predictions": {}}


def _save(state: dict[str, Any]) -> None:
    """Replaces the file in one step: two notebooks at once never leave half a file."""
    global _memory
    try:
        file().parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file().parent, suffix=".part")
        try:
            with open(handle, "w", encoding="utf-8") as written:
                json.dump(state, written, indent=1)
            os.replace(name, file())
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError:
        _memory = state
