"""Tells whether a graph is the same as one that was traced before, perhaps by another process."""

import hashlib
import re
from typing import Any

from lab_utils.dry_run.graphs import called_names

# They hold counters of the process: names of functions, and of datasets.
_COUNTED = ("_gradient_op_type", "forward_function_name", "backward_function_name", "metadata")


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
