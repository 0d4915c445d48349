"""Tells whether a graph is the same as one that was traced before, perhaps by another process."""

import glob
import hashlib
import os
import re
from collections.abc import Iterator
from typing import Any

from lab_utils.dry_run.graphs import all_nodes, called_names

# They hold counters of the process: names of functions, and of datasets.
_COUNTED = ("_gradient_op_type", "forward_function_name", "backward_function_name", "metadata")
_MOST_STRINGS = 20_000
_ELSEWHERE = re.compile(r"(?!grpc:)[a-z0-9]+://")


def of_graph(graph_def: Any) -> str:
    """A digest of what a GraphDef computes: 64 hexadecimal digits.

    Names that count the functions of this process are renumbered, so that the same code, traced
    again, gives the same digest.
    """
    own = type(graph_def)()
    own.CopyFrom(graph_def)
    functions = {function.signature.name: function for function in own.library.function}
    numbers: dict[str, str] = {}
    waiting = list(own.node)
    for node in waiting:  # grows by the body of each function when it is met first
        node.ClearField("experimental_debug_info")
        for name in _COUNTED:
            node.attr.pop(name, None)
        for name in called_names(node):
            if name in functions and name not in numbers:
                number = f"function {len(numbers)}"
                # Its arguments may bear its name: in small letters, and from before it was rewritten.
                for alias in (name, name.lower(), name.split("_rewritten")[0]):
                    numbers.setdefault(alias, number)
                waiting += functions[name].node_def
    met = [functions[name] for name in numbers if name in functions]
    for function in met:
        for name in _COUNTED:
            function.attr.pop(name, None)
    own.library.Clear()
    text = "\n".join(str(part) for part in (own, *met))
    if numbers:
        longest_first = sorted(numbers, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest_first)))
        text = pattern.sub(lambda found: numbers[found[0]], text)
    return hashlib.sha256(text.encode()).hexdigest()


def of_pipeline(graph_def: Any) -> str | None:
    """A digest of an input pipeline: its graph, and size and time of the files that it names.

    None where that does not tell all: Python code runs in it, too many strings are held, or it reads from
    a bucket or another place that has no file's size and time.
    """
    if any("PyFunc" in node.op for node in all_nodes(graph_def)):
        return None
    strings = {text for node in all_nodes(graph_def) for text in _strings(node)}
    if len(strings) > _MOST_STRINGS or any(map(_ELSEWHERE.match, strings)):
        return None
    states = [f"{file} {_state(file)}" for text in sorted(strings) for file in _files(text)]
    text = "\n".join([of_graph(graph_def), *states])
    return hashlib.sha256(os.fsencode(text)).hexdigest()  # a string may be no UTF-8


def _strings(node: Any) -> Iterator[str]:
    if node.op == "Const":
        for value in node.attr["value"].tensor.string_val:
            if len(value) < 4096 and b"\0" not in value:
                yield os.fsdecode(value)


def _files(text: str) -> list[str]:
    # A checkpoint is named by the beginning of its files' names.
    return sorted(glob.glob(text)) if re.search(r"[*?[]", text) else [text, f"{text}.index"]


def _state(file: str) -> str:
    try:
        found = os.stat(file)
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"
