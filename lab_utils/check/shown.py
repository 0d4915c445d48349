"""Several results in one cell: a notebook shows the last one alone, so the earlier ones are displayed."""

import sys
from typing import Any, TypeVar

Result = TypeVar("Result")

_waiting: tuple[int, Any] | None = (
    None  # the cell's number, and the result that it has shown to nobody yet
)


def in_turn(result: Result) -> Result:
    """The same result; one that was made before in the same cell is displayed first."""
    global _waiting
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell is None:
        return result
    if _waiting is not None and _waiting[0] == shell.execution_count:
        ipython.display.display(_waiting[1])
    _waiting = (shell.execution_count, result)
    return result
