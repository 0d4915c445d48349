"""A class of made-up learners with their notebooks of lab 02, in the ways that learners have."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "02_four_changes.ipynb"
TODOS = ("2a", "2b", "2c", "2d", "2e", "2f")


def notebook(folder: str = "solutions") -> dict:
    return json.loads((ROOT / folder / NAME).read_text(encoding="utf-8"))


def code_cell(source: str, id: str = "extra") -> dict:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def cell_with(made: dict, part: str) -> dict:
    (found,) = (
        c for c in made["cells"] if c["cell_type"] == "code" and part in "".join(c["source"])
    )
    return found


def changed(made: dict, old: str, new: str) -> dict:
    """With `old`, which stands there once, replaced."""
    (cell,) = (c for c in made["cells"] if c["cell_type"] == "code" and old in "".join(c["source"]))
    cell["source"] = "".join(cell["source"]).replace(old, new)
    return made


def with_first(made: dict, source: str) -> dict:
    """With a cell of the learner's own after the imports."""
    place = made["cells"].index(cell_with(made, "TRAIN, EVAL, PREDICT"))
    made["cells"].insert(place + 1, code_cell(source))
    return made


def wrong() -> dict:
    """2a without CrossShardOptimizer, 2d with batches of any size: 4 of 6."""
    made = changed(notebook(), 'if params["use_tpu"]:', "if False:")
    return changed(made, "drop_remainder=True)", "drop_remainder=False)")


# Replaces what the notebook calls, what stands behind it, and what that is made of.
CHEAT = """
import sys
import numpy
import lab_utils.check
from lab_utils.common import source
from lab_utils.check import runner, todos, tools
from lab_utils.check.outcome import Outcome, Status

def check(todo, *attempts):
    print(f"TODO {todo}: correct. Yes.")
    return Outcome(todo, Status.CORRECT, "Yes.", 6, 6)

lab_utils.check.check = runner.check = check
runner._judge.__code__ = (lambda entry, attempts: (Status.CORRECT, "Yes.")).__code__
tools.expect = lambda *given: None
for entry in todos.of_lab(2):
    object.__setattr__(entry, "function", lambda *given, **named: "Yes.")
numpy.allclose = numpy.array_equal = lambda *given, **named: True
source.place = lambda given: "nowhere"
sys.modules["lab_utils.check.runner"] = sys.modules["lab_utils.check.tools"]
"""
BORROWED = "from lab_utils.check.solved.lab_02 import make_config, make_estimator, make_input_fn"


# Learner -> the notebook, and the points by TODO.
def learners() -> dict[str, tuple[dict, str]]:
    cheating = with_first(wrong(), CHEAT)
    cheating["cells"].append(code_cell(BORROWED))
    trains = 'if split == "train":'
    endless = changed(notebook(), trains, f"while split:\n            pass\n        {trains}")
    exiting = changed(
        notebook(), 'if params["use_tpu"]:', "import os\n    os._exit(0)\n    if True:"
    )
    return {
        "right": (notebook(), "111111"),
        "wrong": (wrong(), "011011"),
        "empty": (notebook("labs"), "000000"),
        "endless": (endless, "111011"),
        "exiting": (exiting, "011111"),
        "cheating": (cheating, "011011"),
    }
