"""A class of made-up learners with their notebooks of one lab, in the ways that learners have.

It depends on no TODO of that lab: what is right is our solution, what is wrong stands in tests/wrong_answers.
"""

import ast
import json
import zlib
from pathlib import Path

import wrong_answers
from wrong_answers import Wrong

from lab_utils.check import sources

ROOT = Path(__file__).parents[1]
LAB = 2
NAME = sources.paths()[LAB].name
TODOS = tuple(sources.ids(LAB))


def notebook(folder: str = "solutions", name: str = NAME) -> dict:
    return json.loads((ROOT / folder / name).read_text(encoding="utf-8"))


def code_cell(source: str) -> dict:
    id = f"extra-{zlib.crc32(source.encode()):08x}"
    made = {"cell_type": "code", "id": id, "source": source}
    return made | {"execution_count": None, "metadata": {}, "outputs": []}


def source(cell: dict) -> str:
    return "".join(cell["source"])


def with_first(made: dict, code: str) -> dict:
    """With a cell of the learner's own before all others."""
    made["cells"].insert(0, code_cell(code))
    return made


def with_answer(made: dict, todo: str, code: str) -> dict:
    """With an answer in a cell of its own, above the check of the TODO."""
    check = next(c for c in made["cells"] if source(c).startswith(f'check("{todo}"'))
    made["cells"].insert(made["cells"].index(check), code_cell(code))
    return made


def marks(*wrong: str) -> str:
    """The points by TODO: 0 for these."""
    return "".join("0" if todo in wrong else "1" for todo in TODOS)


def lonely_function() -> tuple[str, str]:
    """A TODO that asks for one function, which the answers to other TODOs do not use; and that function."""
    for todo in TODOS:
        others = "".join(
            source(c) for c in notebook()["cells"] if f"# TODO {todo}" not in source(c)
        )
        for region in sources.regions(LAB)[todo]:
            whole = sources.text(LAB)
            inside = [n for n in ast.parse(whole).body if isinstance(n, ast.FunctionDef)]
            for function in inside:
                text = ast.get_source_segment(whole, function)
                if region.strip() in text and f"{function.name}(" not in others:
                    return todo, function.name
    raise AssertionError("every function is used by others")


def wrong_answer() -> tuple[str, str]:
    """A TODO, and the first wrong answer to it that is a cell as somebody else would write it."""
    for todo in TODOS:
        for answer in wrong_answers.of_lab(LAB)[todo]:
            if isinstance(answer, Wrong):
                return todo, answer.cell
    raise AssertionError("no wrong answers")


def name_of_an_experiment() -> tuple[str, str]:
    """A TODO, and a name that a cell of the lab's own, which no answer needs, defines above it."""
    names: list[str] = []
    for cell in notebook("labs")["cells"]:
        metadata = cell["metadata"]
        given = (
            "given" in metadata.get("tags", []) or "nbgrader" in metadata or cell["id"] == "setup"
        )
        if cell["cell_type"] == "code" and not given:
            nodes = ast.parse(source(cell)).body
            names += [
                n.targets[0].id
                for n in nodes
                if isinstance(n, ast.Assign) and hasattr(n.targets[0], "id")
            ]
        for todo in TODOS:
            if names and source(cell).startswith(f'check("{todo}"'):
                return todo, names[-1]
    raise AssertionError("no experiment stands above a check")


# Replaces what the notebook calls, what stands behind it, and what the checks are made of.
CHEAT = f"""
import sys
import lab_utils.check
from lab_utils.check import runner, todos

lab_utils.check.check = runner.check = lambda todo, *attempts: print(f"TODO {{todo}}: correct.")
for entry in todos.of_lab({LAB}):
    object.__setattr__(entry, "function", lambda *given, **named: "Yes.")
sys.modules["lab_utils.check.runner"] = sys.modules["lab_utils.check.todos"]
"""


def merged() -> dict:
    """All code in one cell."""
    cells = [source(cell) for cell in notebook()["cells"] if cell["cell_type"] == "code"]
    return {"cells": [code_cell("\n\n".join(cells))]}


def shown() -> dict:
    """Our solution, which the learner has looked at and which `working` gives; no answer is written."""
    todo, name = lonely_function()
    return with_answer(
        notebook("labs"), todo, f'solution("{todo}")\n{name} = working({name}, "{todo}")'
    )


def learners() -> dict[str, tuple[dict, str]]:
    """Learner -> the notebook, and the points by TODO."""
    todo, name = lonely_function()
    function = f"def {name}(*given, **named):\n"
    endless = with_answer(notebook(), todo, f"{function}    while True:\n        pass")
    exiting = with_answer(notebook(), todo, f"import os\n{function}    os._exit(0)")
    bad, code = wrong_answer()
    above, experiment = name_of_an_experiment()
    curious = with_answer(notebook(), above, f"assert {experiment} is not None")
    nothing = marks(*TODOS)
    return {
        "right": (notebook(), marks()),
        "wrong": (with_answer(notebook(), bad, code), marks(bad)),
        "empty": (notebook("labs"), nothing),
        "shown": (shown(), marks(*{*TODOS} - {todo})),
        "endless": (endless, marks(todo)),
        "exiting": (exiting, marks(todo)),
        "merged": (merged(), marks()),
        "curious": (curious, marks()),
        "cheating": (with_first(with_answer(notebook(), bad, code), CHEAT), marks(bad)),
    }
