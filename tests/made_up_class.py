"""A class of made-up learners with their notebooks of lab 02, in the ways that learners have."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "02_four_changes.ipynb"
TODOS = ("2a", "2b", "2c", "2d", "2e")


def notebook(folder: str = "solutions", name: str = NAME) -> dict:
    return json.loads((ROOT / folder / name).read_text(encoding="utf-8"))


def code_cell(source: str, id: str = "extra") -> dict:
    made = {"cell_type": "code", "id": id, "source": source}
    return made | {"execution_count": None, "metadata": {}, "outputs": []}


def changed(made: dict, old: str, new: str) -> dict:
    """With `old`, which stands in one cell, replaced."""
    (cell,) = (c for c in made["cells"] if c["cell_type"] == "code" and old in "".join(c["source"]))
    cell["source"] = "".join(cell["source"]).replace(old, new)
    return made


def with_first(made: dict, source: str) -> dict:
    """With a cell of the learner's own before all others."""
    made["cells"].insert(0, code_cell(source))
    return made


def wrong() -> dict:
    """2a without CrossShardOptimizer, 2c with the batch of one core: 3 of 5."""
    made = changed(notebook(), 'if params["use_tpu"]:', "if False:")
    return changed(made, '"train_batch_size": 1024', '"train_batch_size": 128')


# Replaces what the notebook calls, what stands behind it, and what the checks are made of.
CHEAT = """
import sys
import lab_utils.check
from lab_utils.check import runner, todos

lab_utils.check.check = runner.check = lambda todo, *attempts: print(f"TODO {todo}: correct.")
for entry in todos.of_lab(2):
    object.__setattr__(entry, "function", lambda *given, **named: "Yes.")
sys.modules["lab_utils.check.runner"] = sys.modules["lab_utils.check.todos"]
"""


def merged() -> dict:
    """All code in one cell."""
    cells = [cell for cell in notebook()["cells"] if cell["cell_type"] == "code"]
    return {"cells": [code_cell("\n\n".join("".join(cell["source"]) for cell in cells))]}


# Learner -> the notebook, and the points by TODO.
def learners() -> dict[str, tuple[dict, str]]:
    logits = "logits = inference(features)\n    if mode == PREDICT:"
    endless = changed(notebook(), logits, f"while mode:\n        pass\n    {logits}")
    use_tpu = 'if params["use_tpu"]:'
    exiting = changed(notebook(), use_tpu, "import os\n    os._exit(0)\n    if True:")
    return {
        "right": (notebook(), "11111"),
        "wrong": (wrong(), "01011"),
        "empty": (notebook("labs"), "00000"),
        "endless": (endless, "10111"),
        "exiting": (exiting, "01111"),
        "merged": (merged(), "11111"),
        "cheating": (with_first(wrong(), CHEAT), "01011"),
    }
