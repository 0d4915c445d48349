"""Cells that were merged or split: which of their statements are the lab's own, and which the learner's."""

import ast
import difflib
import re
from collections.abc import Iterator, Sequence

_SIMILAR = 0.8  # of two cells that are one cell in two versions
_MAGIC = re.compile(r"^([ ]*)([%!].*|.*\?)$", re.M)


def tree(source: str) -> ast.Module | None:
    """The syntax of a cell, IPython's own lines left out; None where it has none."""
    for text in (source, _MAGIC.sub(r"\1pass  # \2", source)):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
            continue
    return None


def outer(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements outside of functions and classes, also those within `if`, `try` and loops."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.stmt):
            yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            yield from outer(each)


def segment(source: str, node: ast.stmt) -> str:
    """The lines of a statement, with its decorators."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


class Known:
    """The statements of a lab's own cells."""

    def __init__(self, given: Sequence[str], experiments: Sequence[str]) -> None:
        self._experiments = list(experiments)
        own = [*given, *experiments]
        self._runs = sorted(filter(None, map(_statements, own)), key=len, reverse=True)
        self._single = {statement for run in self._runs for statement in run}

    def similar(self, source: str) -> bool:
        """Whether a cell is an experiment, changed a little, or a part of one."""
        statements = _statements(source)
        if statements and set(statements) <= self._single:
            return True
        return any(_alike(source, other) for other in self._experiments)

    def pieces(self, source: str) -> list[str]:
        """A cell as it is; one that was merged with whole cells of the lab's as parts, with those apart.

        Each part keeps its line numbers.
        """
        parsed = tree(source)
        if parsed is None or len({node.lineno for node in parsed.body}) < max(2, len(parsed.body)):
            return [source]
        statements, cuts = [ast.dump(node) for node in parsed.body], {0, len(parsed.body)}
        for run in self._runs:
            for start in range(len(statements) - len(run) + 1):
                span = range(start, start + len(run))
                if statements[start : start + len(run)] == run and not cuts & {*span[1:]}:
                    cuts |= {start, start + len(run)}
        cuts |= {n for n, node in enumerate(parsed.body) if _is_text(node)}
        lines, ordered = source.splitlines(), sorted(cuts)
        if len(ordered) == 2:
            return [source]
        made = []
        for first, last in zip(ordered, ordered[1:], strict=False):
            nodes = parsed.body[first:last]
            start = 0 if first == 0 else parsed.body[first - 1].end_lineno
            if not all(map(_is_text, nodes)):
                made.append("\n" * start + "\n".join(lines[start : nodes[-1].end_lineno]))
        return made


def _is_text(node: ast.stmt) -> bool:
    """A string that stands alone: a Markdown cell, in Colab's export as Python."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _statements(source: str) -> list[str]:
    parsed = tree(source)
    return [ast.dump(node) for node in parsed.body] if parsed else []


def _alike(source: str, other: str) -> bool:
    matcher = difflib.SequenceMatcher(None, source, other, autojunk=False)
    return (
        matcher.real_quick_ratio() > _SIMILAR
        and matcher.quick_ratio() > _SIMILAR
        and matcher.ratio() > _SIMILAR
    )
