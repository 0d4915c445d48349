"""The line where a program makes each layer of a Keras model: it is then named for what the layer computes.

The layers that Keras brings are called from Keras alone: no line of the program is on the stack. A layer that
was made before the dry run, as in a notebook, is named in place of its line.
"""

import contextlib
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from lab_utils.common import source
from lab_utils.common.source import NOWHERE, START, Place
from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.frontends.stand_ins import StandIn, patched

Line = tuple[str, int]  # a file, and the number of a line
_made: "weakref.WeakKeyDictionary[Any, Line]" = weakref.WeakKeyDictionary()
# By the id of a LayoutMap, which has no hash: itself, so that the id stays its own, and lines by keys.
_patterns: dict[int, tuple[Any, dict[str, Place]]] = {}


def stand_ins(keras: types.ModuleType) -> Iterator[StandIn]:
    """What notes where the program makes what Keras computes with."""
    kind = _computing(keras)[-1]
    new = kind.__new__  # Keras reads the signature of __init__

    def noted(kind: type, *arguments: Any, **options: Any) -> Any:
        made = new(kind, *arguments, **options)
        frame = sys._getframe(1)
        while frame is not None and source.is_installed(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None:
            _made[made] = frame.f_code.co_filename, frame.f_lineno
        return made

    yield kind, "__new__", staticmethod(noted)
    if not hasattr(keras, "distribution"):
        return
    set_layout = keras.distribution.LayoutMap.__setitem__

    def noted_layout(self: Any, key: str, layout: Any) -> None:
        set_layout(self, key, layout)
        _patterns.setdefault(id(self), (self, {}))[1][key] = caller()

    yield keras.distribution.LayoutMap, "__setitem__", noted_layout


def _computing(keras: types.ModuleType) -> tuple[type, ...]:
    """The classes of what Keras calls to compute, the most general last: in Keras 2 layers only."""
    return (keras.Layer, keras.Operation) if hasattr(keras, "Operation") else (keras.layers.Layer,)


def of_patterns(layout_map: Any) -> dict[str, Place]:
    """The keys of a LayoutMap, each with the line that sets it; NOWHERE where that was not noted."""
    lines = _patterns.get(id(layout_map), (None, {}))[1]
    return {key: lines.get(key, NOWHERE) for key in layout_map}


def of(made: Any) -> Place:
    """Where the program made a layer; NOWHERE where that was not noted."""
    return source.place_of_line(*_made.get(made, ("", 0)))


def shown(keras: types.ModuleType) -> contextlib.AbstractContextManager[None]:
    """Context manager: what a layer computes stands at the line that made it."""
    owners = _computing(keras)
    return patched((owner, "__call__", _at_its_line(owner.__call__)) for owner in owners)


def at(place: Place, function: Callable[[], Any]) -> Any:
    """What `function` gives, with a line of the program on the stack."""
    if not place.file or place.line is None:
        return function()
    return _call_at(str(START / place.file), place.line, function)


def _at_its_line(call: Callable) -> Callable:
    @functools.wraps(call)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        function = functools.partial(call, self, *arguments, **options)
        file, line = _made.get(self, (f"{source.LAYER}{self.name}", 1))
        return _call_at(file, line, function)

    return called


def _call_at(file: str, line: int, function: Callable[[], Any]) -> Any:
    names: dict[str, Any] = {"function": function}
    exec(_code(file, line), names)
    return names["result"]


@functools.cache
def _code(file: str, line: int) -> CodeType:
    return compile("\n" * (line - 1) + "result = function()", file, "exec")
