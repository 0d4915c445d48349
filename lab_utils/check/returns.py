"""A forgotten return: told once, by the engine, whatever a check makes of the None."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef


def forgotten(attempt: Any, name: str, solution: str) -> str:
    """A sentence on a function that comes to its end without a return, though its namesake returns something.

    Goes by the source alone, so it only explains what a check has found to be wrong.

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
    of_solution = [each for each in ast.parse(solution).body if getattr(each, "name", "") == name]
    wanted = {each.name for part in of_solution for each in _functions(part) if _values(each)}
    own = [
        each
        for each in _functions(tree)
        if (name if each is tree.body[0] else each.name) in wanted and not _yields(each)
    ]
    for function in own:
        if not _values(function):
            return f"{function.name} returns None: is a return missing?"
    made = {ast.dump(call.func) for part in of_solution for call in _returned(part)}
    for function in own:
        for each in _own(function):
            match each:
                case ast.Expr(ast.Call(func=func)) if ast.dump(func) in made:
                    text = ast.unparse(func)
                    return f"{function.name} makes a {text} and drops it: is a return missing?"
    for function in own:
        if _ends(function.body):
            return (
                f"{function.name} can come to its end and return None there: is a return missing?"
            )
    return ""


def _functions(tree: ast.AST) -> list[Function]:
    return [each for each in ast.walk(tree) if isinstance(each, Function)]


def _own(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes within."""
    inside = list(function.body)
    while inside:
        each = inside.pop()
        yield each
        if not isinstance(each, Function | ast.ClassDef | ast.Lambda):
            inside += ast.iter_child_nodes(each)


def _values(function: Function) -> bool:
    return any(isinstance(each, ast.Return) and each.value is not None for each in _own(function))


def _returned(part: ast.AST) -> list[ast.Call]:
    """The calls whose results are returned."""
    returns = (each for each in ast.walk(part) if isinstance(each, ast.Return))
    return [each.value for each in returns if isinstance(each.value, ast.Call)]


def _yields(function: Function) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _own(function))


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a block can come to its end; no for what this does not know."""
    last = body[-1] if body else ast.Pass()
    match last:
        case ast.Return():
            return last.value is None
        case ast.If():
            return _ends(last.body) or _ends(last.orelse)
        case ast.With():
            return _ends(last.body)
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Pass() | ast.For():
            return True
        case ast.FunctionDef() | ast.ClassDef() | ast.Delete() | ast.Assert():
            return True
    return False
