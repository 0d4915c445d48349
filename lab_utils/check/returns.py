"""A forgotten return: the engine explains it, whatever a check makes of the None."""

import ast
import inspect
import textwrap
from typing import Any


def missing_return(attempt: Any, name: str, solution: str) -> str:
    """A sentence on a function that does not return what it computes, though its namesake of ours does.

    Goes by the source only, so it explains what a check has called wrong, and decides nothing.

    Args:
        attempt: the learner's function or class.
        name: what the solution calls it.
        solution: the source of the solution's module.

    Returns:
        The sentence, or "" where no return is missing.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(attempt)))
    except (OSError, TypeError, SyntaxError):  # an object, a builtin, a lambda within a call
        return ""
    tree.body[0].name = name
    ours = [node for node in ast.parse(solution).body if getattr(node, "name", "") == name]
    results = {function.name: _results(function) for part in ours for function in _functions(part)}
    calls = {_callee(value) for values in results.values() for value in values} - {""}
    for function in reversed(_functions(tree)):  # inner ones first
        nodes = ast.walk(function)
        drops = any(isinstance(node, ast.Expr) and _callee(node.value) in calls for node in nodes)
        if results.get(function.name) and (drops or _ends(function.body)):
            return f"{function.name} does not always return its result: is a return missing?"
    return ""


def _functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _results(function: ast.FunctionDef) -> list[ast.expr]:
    """The expressions that it returns, or that a function within it does."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return [node.value for node in returns if node.value]


def _callee(value: ast.expr) -> str:
    """What a call calls; "" for another expression."""
    return ast.dump(value.func) if isinstance(value, ast.Call) else ""


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a block can come to its end without a return or an error."""
    last = body[-1]
    if isinstance(last, ast.If):
        return not last.orelse or _ends(last.body) or _ends(last.orelse)
    if isinstance(last, ast.With):
        return _ends(last.body)
    return not isinstance(last, ast.Return | ast.Raise | ast.Try | ast.Match | ast.While)
