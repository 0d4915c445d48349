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
    namesakes = [each for each in ast.parse(solution).body if getattr(each, "name", "") == name]
    returning = {each.name for part in namesakes for each in _functions(part) if _returns(each)}
    returned = {
        ast.dump(each.value.func)
        for part in namesakes
        for each in ast.walk(part)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Call)
    }
    found: list[str] = []  # the surest first
    for function in _functions(tree):
        if (name if function is tree.body[0] else function.name) not in returning:
            continue
        inner = list(_inner(function))
        if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in inner):
            continue
        if not _returns(function):
            found.insert(0, f"{function.name} returns None")
        for each in inner:
            match each:
                case ast.Expr(ast.Call(func=func)) if ast.dump(func) in returned:
                    found.append(f"{function.name} makes a {ast.unparse(func)} and drops it")
        if _ends(function.body):
            found.append(f"{function.name} can come to its end and return None there")
    return f"{found[0]}: is a return missing?" if found else ""


def _functions(tree: ast.AST) -> list[Function]:
    return [each for each in ast.walk(tree) if isinstance(each, Function)]


def _inner(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes within."""
    inside = list(function.body)
    while inside:
        each = inside.pop()
        yield each
        if not isinstance(each, Function | ast.ClassDef | ast.Lambda):
            inside += ast.iter_child_nodes(each)


def _returns(function: Function) -> bool:
    """Whether it returns a value somewhere."""
    return any(isinstance(each, ast.Return) and each.value for each in _inner(function))


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a block can come to its end; no for loops and what else this does not know."""
    match body[-1] if body else ast.Pass():
        case ast.Return(value=value):
            return value is None
        case ast.If(body=then, orelse=otherwise):
            return _ends(then) or _ends(otherwise)
        case ast.With(body=within):
            return _ends(within)
        case last:
            return not isinstance(last, ast.Raise | ast.Try | ast.Match | ast.While | ast.AsyncFor)
