"""The code of the rules' pages: each Wrong and Right block as a function of the names that it uses."""

import ast
import linecache
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab_utils.dry_run.rules as pages
from rules.parts import tf, tpu

GLOBALS = {"tf": tf, "tpu": tpu, "TPUEstimator": tpu.TPUEstimator, "np": __import__("numpy")}
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Snippet:
    """A block of code below "## Wrong" or "## Right" of the page `rule`.

    Its lines count from 1, so that the page's prose may change.
    """

    rule: str
    side: str
    number: int
    text: str

    def run(self, given: Mapping[str, Callable[[], Any]]) -> "Made":
        """Executes the block. `given` makes the values of names; only those that the block uses are made."""
        tree = ast.parse(self.text)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        values = {name: make() for name, make in given.items() if name in used}
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Return(last.value), last)
        shell = ast.parse(f"def block({', '.join(values)}):\n    return __made__, locals()")
        shell.body[0].body[:0] = tree.body
        file = f"{self.rule}.md"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        space = GLOBALS | {"__made__": Made}
        exec(compile(ast.fix_missing_locations(shell), file, "exec"), space)
        result = space["block"](**values)
        if isinstance(result, tuple) and result and result[0] is Made:
            return Made(None, result[1], values)
        return Made(result, {}, values)


@dataclass
class Made:
    """What a block made: the `value` that it returned or ended with, or else its variables."""

    value: Any
    variables: dict[str, Any]
    given: dict[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        return self.variables.get(name, default)

    def new_tensors(self, besides: Iterable[str] = ()) -> list[tf.Tensor]:
        """The tensors that the block made, without strings and those that it got."""
        made = [value for name, value in self.variables.items() if name not in besides]
        new = [each for each in made if all(each is not old for old in self.given.values())]
        tensors = [each for each in tf.nest.flatten(new) if isinstance(each, tf.Tensor)]
        return [each for each in tensors if each.dtype != tf.string]


def snippets() -> list[Snippet]:
    """Every block of every page, in order."""
    found = []
    for path in sorted(Path(pages.__file__).parent.glob("TPU*.md")):
        page = path.read_text(encoding="utf-8")
        numbers = {"Wrong": 0, "Right": 0}
        for block in _BLOCK.finditer(page):
            before = page[: block.start()]
            side = re.findall(r"^## (.+)$", before, re.M)[-1]
            found.append(Snippet(path.stem, side, numbers[side], block[1]))
            numbers[side] += 1
    return found
