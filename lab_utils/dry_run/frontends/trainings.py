"""Other calls in a program's text that train, beside the one at which its run was ended."""

import ast
from pathlib import Path

from lab_utils.common.source import Place, place_of_line
from lab_utils.dry_run.frontends import cells

_OF_KERAS = ("fit_generator", "train_on_batch")
_OF_STRATEGIES = ("run", "experimental_run_v2")


def others(path: Path, judged: Place) -> list[str]:
    """The calls of fit, train_on_batch and strategy.run in the program's text but for the one at `judged`.

    Scalers and tokenizers have a fit, too: one counts that has epochs, or the judged one's object.
    """
    calls = [
        (place_of_line(name, node.lineno), node)
        for name, text in cells.texts(path)
        for node in _calls(text, name)
    ]
    here = [node for place, node in calls if _is_at(place, node, judged)]
    subjects = {ast.unparse(node.func.value) for node in here}
    return [
        f"{node.func.attr} at {place.position}"
        for place, node in calls
        if node not in here and _trains(node, subjects)
    ]


def _calls(text: str, name: str) -> list[ast.Call]:
    """The calls of methods in the text of a file or a cell; none where it is not Python."""
    try:
        nodes = ast.walk(ast.parse(cells.as_python(text, name)))
    except SyntaxError:
        return []
    found = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return sorted(found, key=lambda node: node.lineno)


def _is_at(place: Place, node: ast.Call, judged: Place) -> bool:
    if place.file != judged.file or judged.line is None:
        return False
    return node.lineno <= judged.line <= (node.end_lineno or node.lineno)


def _trains(node: ast.Call, subjects: set[str]) -> bool:
    name, subject = node.func.attr, ast.unparse(node.func.value)
    if name == "fit":
        return subject in subjects or any(word.arg == "epochs" for word in node.keywords)
    return name in _OF_KERAS or (name in _OF_STRATEGIES and subject.endswith("strategy"))
