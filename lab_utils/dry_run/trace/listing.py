"""Places that no traceback holds, from the learner's source: a constructor's argument."""

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
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    file = code.co_filename if code else ""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a notebook's cell with magics
        return NOWHERE
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
