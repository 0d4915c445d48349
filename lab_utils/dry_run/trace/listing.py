"""Places that no traceback holds, from the learner's source: a constructor's argument, a listed tensor."""

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator
from typing import Any

from lab_utils.common.source import NOWHERE, Place, place_of_line


def argument(function: Callable, constructor: str, keyword: str) -> Place:
    """Where the file of `function` calls `constructor`: the line of `keyword=`, else of the call.

    With `keyword` "" it is the call that matters. NOWHERE where it is called in no place or in several,
    or where the call does not give that argument.
    """
    file, tree = _source(function)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == constructor
    ]
    if len(calls) != 1:
        return NOWHERE
    call = calls[0]
    for word in call.keywords:
        if word.arg == keyword:
            return place_of_line(file, word.value.lineno)
    elsewhere = keyword and not call.args and all(word.arg for word in call.keywords)
    return NOWHERE if elsewhere else place_of_line(file, call.lineno)


def listed(host_function: Callable, number: int, key: str | None, spec: Place) -> Place:
    """Where the tensor `number` (or `key`, of a dict) that goes with a host function is listed, or NOWHERE.

    That is an element of the list beside the function, or the line that gives it another name. Where
    several functions of that name are listed it is the list nearest to the `spec` that was made.
    """
    while isinstance(host_function, functools.partial):
        host_function = host_function.func
    if not hasattr(host_function, "__code__"):
        return NOWHERE
    file, tree = _source(host_function)
    line = host_function.__code__.co_firstlineno
    names = _aliases(tree, getattr(host_function, "__name__", ""), line)
    pairs = [
        node
        for node in ast.walk(_around(tree, line))
        if isinstance(node, ast.Tuple)
        and len(node.elts) == 2
        and (_called(node.elts[0]) in names or _is_lambda(node.elts[0], line))
    ]
    for pair in sorted(pairs, key=lambda node: abs(node.lineno - (spec.line or 0))):
        node = _value(tree, pair.elts[1], pair.lineno)
        if isinstance(node, ast.Dict):
            keys = [getattr(each, "value", None) for each in node.keys]
            if key not in keys:
                if isinstance(pair.elts[1], ast.Name) and (put := _put(tree, pair.elts[1].id, key)):
                    return place_of_line(file, put.lineno)
                continue
            element = node.values[keys.index(key)]
        elif isinstance(node, ast.List | ast.Tuple) and number < len(node.elts):
            element = node.elts[number]
        else:
            return place_of_line(file, pair.lineno)
        renamed = _assignment(tree, element, pair.lineno)
        if renamed is not None and isinstance(renamed.value, ast.Name | ast.Attribute):
            return place_of_line(file, renamed.lineno)
        return place_of_line(file, element.lineno)
    return NOWHERE


def _source(function: Callable) -> tuple[str, ast.AST]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    file = code.co_filename if code else ""
    try:
        return file, ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a notebook's cell with magics
        return file, ast.Module([], [])


def _around(tree: ast.AST, line: int) -> ast.AST:
    """The innermost function around the one that is defined at `line`; the whole file where there is none."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if node.lineno < line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno, default=tree)


def _called(node: ast.AST) -> str:
    """The name of the function that `node` is: a name, a method, or functools.partial of either; or ""."""
    if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("partial"):
        node = node.args[0]
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _is_lambda(node: ast.AST, line: int) -> bool:
    return isinstance(node, ast.Lambda) and node.lineno == line


def _aliases(tree: ast.AST, name: str, line: int) -> set[str]:
    """`name`, and the names given to functools.partial of it, or to the lambda of that line."""

    def stands_for(value: ast.AST) -> bool:
        if isinstance(value, ast.Call) and value.args:
            return ast.unparse(value.args[0]).split(".")[-1] == name
        return _is_lambda(value, line)

    given = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and stands_for(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {name} | given


def _value(tree: ast.AST, node: ast.AST, before: int) -> ast.AST:
    """`node`, or what was last assigned to its name before line `before`."""
    found = _assignment(tree, node, before)
    return node if found is None else found.value


def _assignment(tree: ast.AST, node: ast.AST, before: int) -> Any | None:
    if not isinstance(node, ast.Name):
        return None
    earlier = [each for each in _assignments(tree, node.id) if each.lineno <= before]
    return max(earlier, key=lambda each: each.lineno, default=None)


def _put(tree: ast.AST, name: str, key: str | None) -> ast.Assign | None:
    """The assignment to `name[key]`; else the only one whose key the source does not tell."""
    computed = []
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") == name:
                if not isinstance(target.slice, ast.Constant):
                    computed.append(node)
                elif target.slice.value == key:
                    return node
    return computed[0] if len(computed) == 1 else None


def _assignments(tree: ast.AST, name: str) -> Iterator[ast.Assign]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            yield node
