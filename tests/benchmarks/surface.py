"""How large lab_utils is, as numbers that nobody has to keep: tokens of code, rules, flags, exceptions.

    python tests/benchmarks/surface.py [FOLDER of another checkout]

Tokens are those of Python's own tokenizer, without comments, docstrings, line ends and indents: a denser line
has no fewer of them. `make check` prints the sums.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def tokens(source: str) -> int:
    """The number of tokens of code in a module."""
    docstrings = set(_docstrings(ast.parse(source)))
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(each.type not in _LAYOUT and each.start not in docstrings for each in found)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Where the docstrings of a module begin: (line, column)."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].col_offset


def flags(tree: ast.AST) -> int:
    """The number of flags that a module defines for a command."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(_is_flag(call) for call in calls)


def _is_flag(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    first = getattr(call.args[0], "value", "") if call.args else ""
    return name in _FLAGS or (name == "add" and str(first).startswith("-"))


_FLAGS = {"add_argument", "flag"}  # argparse's, and a name that commands give it; `add` is another


def exceptions(tree: ast.AST) -> Iterator[str]:
    """The names of the exception classes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).split(".")[-1] for base in node.bases]
            if any(base.endswith(("Error", "Exception")) for base in bases):
                yield node.name


def main(root: Path) -> None:
    """Prints the sums, and the tokens of each room."""
    rooms: Counter[str] = Counter()
    flag_count, classes = 0, []
    package = root / "lab_utils"
    for path in sorted(package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        parts = path.relative_to(package).parts
        rooms[parts[0] if len(parts) > 1 else "top"] += tokens(source)
        flag_count += flags(ast.parse(source))
        classes += exceptions(ast.parse(source))
    rules = len(list((package / "dry_run" / "rules").glob("TPU*.md")))
    print(
        f"lab_utils: {rooms.total():,} tokens of code, {rules} rules, {flag_count} flags, "
        f"{len(classes)} exception classes"
    )
    print(", ".join(f"{room} {count:,}" for room, count in rooms.most_common()))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[2])
