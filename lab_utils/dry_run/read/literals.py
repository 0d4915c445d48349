"""Whether a number is written into the code that made an op."""

import ast
import linecache
from typing import Any

from lab_utils.common.source import called_frames, is_installed

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def written(op: Any, number: int) -> bool:
    """Whether `number` stands as a literal in one of the user's functions on the way to `op`.

    It does not where the number comes from a flag, an attribute or a name of the module. Code that cannot be
    read counts as one that holds it.
    """
    own = [frame for frame in called_frames(op.traceback) if not is_installed(frame.filename)]
    return any(_holds(frame.filename, frame.lineno, number) for frame in own)


def _holds(file: str, line: int, number: int) -> bool:
    """Whether the innermost function around a line has the literal."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a notebook's cell with magics
        return True
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    function = max(around, key=lambda node: node.lineno, default=tree)
    return not tree.body or any(
        isinstance(node, ast.Constant) and type(node.value) is int and node.value == number
        for node in ast.walk(function)
    )
