"""Places that no traceback holds, from the learner's source: a constructor's argument, a listed tensor."""

import ast
import functools
import inspect
import linecache
from collections.abc import Callable

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
    pairs = [
        node
        for node in ast.walk(_around(tree, line))
        if isinstance(node, ast.Tuple)
        and len(node.elts) == 2
        and _is_function(tree, node.elts[0], host_function.__name__, line)
    ]
    for pair in sorted(pairs, key=lambda node: abs(node.lineno - (spec.line or 0))):
        tensors, element = pair.elts[1], pair
        if isinstance(tensors, ast.Name) and (named := _assignment(tree, tensors.id, pair.lineno)):
            tensors = named.value
        if isinstance(tensors, ast.Dict):
            names = [getattr(name, "value", None) for name in tensors.keys]
            values = dict(zip(names, tensors.values, strict=True))
            added = _assignment_of_item(tree, getattr(pair.elts[1], "id", ""), key)
            if (element := values.get(key, added)) is None:
                continue
        elif isinstance(tensors, ast.List | ast.Tuple) and number < len(tensors.elts):
            element = tensors.elts[number]
        if isinstance(element, ast.Name):
            renamed = _assignment(tree, element.id, pair.lineno)
            if renamed is not None and isinstance(renamed.value, ast.Name | ast.Attribute):
                element = renamed
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


def _is_function(tree: ast.AST, node: ast.AST, name: str, line: int) -> bool:
    """Whether `node` is the function `name`, or the lambda of that line: as such, as a method, by another
    name, or within functools.partial.
    """
    others = _assignments(tree, node.id) if isinstance(node, ast.Name) else []
    for value in (node, *(each.value for each in others)):
        if isinstance(value, ast.Call) and value.args:
            value = value.args[0]
        if isinstance(value, ast.Lambda) and value.lineno == line:
            return True
        named = isinstance(value, ast.Name | ast.Attribute)
        if named and ast.unparse(value).split(".")[-1] == name:
            return True
    return False


def _assignment(tree: ast.AST, name: str, line: int) -> ast.Assign | None:
    earlier = [node for node in _assignments(tree, name) if node.lineno <= line]
    return max(earlier, key=lambda node: node.lineno, default=None)


def _assignments(tree: ast.AST, name: str) -> list[ast.Assign]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]


def _assignment_of_item(tree: ast.AST, name: str, key: str | None) -> ast.Assign | None:
    """The assignment to `name[key]`; else the only one whose key the source does not tell."""
    computed = []
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Subscript) and getattr(target.value, "id", None) == name:
                if not isinstance(target.slice, ast.Constant):
                    computed.append(node)
                elif target.slice.value == key:
                    return node
    return computed[0] if len(computed) == 1 else None
