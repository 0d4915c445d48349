"""A program's text with its syntax tree: what its imported names stand for, and edits of the text."""

import ast
import re
from collections.abc import Iterator
from itertools import accumulate

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NotPython(Exception):
    """The file cannot be read as Python 3; the message says where, and what to do."""


class Program:
    """The text of a file and edits of it, whose places are counted in bytes of UTF-8.

    Attributes:
        nodes: the syntax tree, from the outside in, without what stands inside of f-strings.
        parents: each node's parent.
        origins: what the names stand for that imports bind, and assignments of these, in dots.
        todo: what is left to a person: its line in the old file, and what to do.
    """

    def __init__(self, text: str) -> None:
        """Parses it.

        Raises:
            NotPython: it is not Python 3.
        """
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise NotPython(
                f"this is not Python 3: {str(error) or 'nested too deeply'} (`2to3` of Python 3.12 or "
                "older, or `futurize`, makes it of Python 2)"
            ) from None
        self.text, self._data = text, text.encode()
        self.todo: set[tuple[int, str]] = set()
        lines = self._data.splitlines(keepends=True)
        self._starts = list(accumulate(map(len, lines), initial=0))
        self._edits: list[tuple[int, int, str]] = []
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = [self.tree]
        for node in self.nodes:
            if not isinstance(node, ast.JoinedStr):
                children = list(ast.iter_child_nodes(node))
                self.parents |= dict.fromkeys(children, node)
                self.nodes += children
        self.origins = {
            alias.asname or alias.name.partition(".")[0]: _origin(node, alias)
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self._local = {
            node: _local_names(node) for node in self.nodes if isinstance(node, _FUNCTIONS)
        }
        for node in self.tree.body:  # tf1 = tf.compat.v1
            if isinstance(node, ast.Assign) and (origin := self.qualified(node.value)):
                self.origins |= {last_name(target): origin for target in node.targets}

    def leave(self, node: ast.AST, message: str, lab: str = "") -> None:
        """Leaves something to a person; `lab` is the number of the lab on it."""
        self.todo.add((node.lineno, f"{message} (lab {lab})" if lab else message))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends."""
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def code(self, node: ast.AST) -> str:
        """A node's text, with the edits so far."""
        return self._edited(*self.span(node))

    def functions_around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The functions and lambdas that a node stands in, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, _FUNCTIONS):
                yield node

    def qualified(self, node: ast.AST) -> str:
        """What an imported name, or an attribute of one, stands for: "tensorflow.train.X"; "" for others."""
        attributes = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.origins:
            return ""
        if any(node.id in self._local[function] for function in self.functions_around(node)):
            return ""
        return ".".join([self.origins[node.id], *attributes])

    def tf_path(self, node: ast.AST) -> str:
        """As `qualified`, below tensorflow or its compat.v1: "estimator.Estimator"; "" for others."""
        head, _, path = self.qualified(node).partition(".")
        path = re.sub(r"^compat\.v[12](\.|$)", "", path)
        path = re.sub(r"^python\.estimator\..*\b(\w+)$", r"estimator.\1", path)
        return path if head == "tensorflow" else ""

    def chains(self) -> Iterator[ast.Attribute | ast.Name]:
        """Names with all of their attributes, as a.b.c."""
        for node in self.nodes:
            is_whole = not isinstance(self.parents.get(node), ast.Attribute)
            if is_whole and isinstance(node, ast.Attribute | ast.Name):
                yield node

    def replace(self, start: int, end: int, text: str) -> None:
        """Puts `text` between two places; `result` makes all edits at once."""
        self._edits.append((start, end, text))

    def replace_node(self, node: ast.AST, text: str) -> None:
        """Puts `text` in a node's place."""
        self.replace(*self.span(node), text)

    def surround(self, node: ast.AST, before: str, after: str) -> None:
        """Puts texts before and behind a node."""
        start, end = self.span(node)
        self.replace(start, start, before)
        self.replace(end, end, after)

    def insert_arguments(self, call: ast.Call, *arguments: str) -> None:
        """Adds arguments to a call, behind its last one."""
        text = ", ".join(arguments)
        end = self.span(call)[1] - 1
        if present := [*call.args, *call.keywords]:
            last = max(self.span(argument)[1] for argument in present)
            end = self.find(rb"(\s*\))*", last, end)  # f((x)): the parenthesis of the argument
            text = f", {text}"
        self.replace(end, end, text)

    def find(self, pattern: bytes, start: int, end: int | None = None) -> int:
        """Where the first match of a pattern ends."""
        return re.compile(pattern).search(self._data[:end], start).end()

    def adds(self, text: str) -> bool:
        """Whether an edit so far puts in `text`."""
        return any(text in new for _, _, new in self._edits)

    def result(self) -> str:
        """The text with the edits; one within the place of another is left out."""
        return self._edited(0, len(self._data))

    def _edited(self, at: int, end: int) -> str:
        parts = []
        for start, stop, text in sorted(self._edits, key=lambda edit: edit[:2]):
            if at <= start and stop <= end:
                parts += [self._data[at:start], text.encode()]
                at = stop
        return b"".join([*parts, self._data[at:end]]).decode()


def argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """The argument `name` of a call, or the one at `position`."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    values = call.args[: position + 1]
    is_there = len(values) > position and not any(isinstance(v, ast.Starred) for v in values)
    return values[position] if is_there else None


def last_name(node: ast.AST) -> str:
    """`c` of a.b.c, `a` of a; "" for others."""
    return getattr(node, "attr", getattr(node, "id", ""))


def parameters(function: ast.AST) -> list[str]:
    """The names of a function's parameters but for *x and **x."""
    arguments = function.args
    return [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _origin(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """What an import binds to its name, in dots."""
    if isinstance(node, ast.ImportFrom):
        return f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _local_names(function: ast.AST) -> set[str]:
    """The names that a function binds, but for its imports."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)} | {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
