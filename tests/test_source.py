"""The learner's own line: the cell of a notebook, as terminals and kernels run it."""

import subprocess
import sys

import pytest

from lab_utils.common.source import shortened

# The two give the code of a cell different file names. IPython 7, as in Colab: test_places.py.
CELLS = """\
import sys
from IPython.core.interactiveshell import InteractiveShell
if sys.argv[1] == "kernel":
    from ipykernel.compiler import XCachingCompiler
    InteractiveShell.compiler_class = XCachingCompiler
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
for code in (
    "from lab_utils.common.source import place",
    "def model_fn():\\n    raise ValueError",
    "%alias_magic -q now time",
    "def model_fn():\\n    raise ValueError",
    "\\nanonymous = lambda: 0\\n\\n",
    "print(place(model_fn), place(anonymous), sep='\\\\n')",
    "try:\\n    model_fn()\\nexcept ValueError as error:\\n    print(place(error))",
):
    shell.run_cell(code, store_history=True)
shell.run_cell("def silent(): pass\\nprint(place(silent))", store_history=False)
"""


@pytest.mark.parametrize("where", ["terminal", "kernel"])
def test_a_place_in_a_cell_bears_the_number_of_its_last_run(where):
    command = [sys.executable, "-c", CELLS, where]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[:3] == [
        "cell In [4], line 1, in model_fn: `def model_fn():`",
        "cell In [5], line 1, in <lambda>: `anonymous = lambda: 0`",
        "cell In [4], line 2, in model_fn: `raise ValueError`",
    ]
    assert "cell In [" not in said[3] and said[3].endswith("in silent: `def silent(): pass`")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("short,\n and whole", "short, and whole"),
        ("word " * 2_000_000, "word word word word word [...]"),
        ("Bad " + "x" * 10_000_000, "Bad xxxxxxxxxxxxxxxxxxxx [...]"),
    ],
)
def test_a_long_message_keeps_its_beginning(text, says):
    assert shortened(text, 30) == says
