"""Several results in one cell: a notebook shows the last one alone, so the earlier ones are displayed."""

import sys
from typing import Any, TypeVar

Result = TypeVar("Result")

_waiting: list[Any] = []  # the result of this cell that only its last line would show


def in_turn(result: Result) -> Result:
    """The same result; one that was made before in the same cell is displayed first."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell is None:
        return result
    shell.events.register("pre_run_cell", _next_cell)  # numbers of cells do not always count up
    for earlier in _waiting:
        ipython.display.display(earlier)
    _waiting[:] = [result]
    return result


def _next_cell(info: Any) -> None:
    _waiting.clear()
