"""A kernel that is restarted in the middle of a lab: going on from there is told, from the top all is well.

LABS=each in the environment takes the four labs that write files; 02 alone otherwise.
"""

import json
import os
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.util import run_sync
from test_labs import outcomes

from lab_utils.check import life

ROOT = Path(__file__).parents[1]
LABS = ("02", "05", "07", "13") if os.environ.get("LABS") == "each" else ("02",)

IMPORTS = 3  # cells that a learner runs again before going on from the middle

pytestmark = pytest.mark.slow


class Notebook:
    """A solution whose code cells are run one by one, in a folder of its own."""

    def __init__(self, number: str, folder: Path) -> None:
        (path,) = (ROOT / "solutions").glob(f"{number}_*.ipynb")
        notebook = nbformat.read(path, as_version=4)
        self.cells = [
            (index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"
        ]
        resources = {"metadata": {"path": str(folder)}}
        self.client = NotebookClient(notebook, timeout=600, resources=resources, allow_errors=True)

    def run(self, cells: slice) -> Counter:
        """Runs some of them; returns the errors that they raised, by kind."""
        errors = Counter()
        for index, cell in self.cells[cells]:
            cell.outputs = []
            self.client.execute_cell(cell, index)
            errors.update(each.ename for each in cell.outputs if each.output_type == "error")
        return errors

    def restart(self, killed: bool) -> None:
        """As Jupyter's button does; `killed` as where the system ends the kernel for want of memory."""
        run_sync(self.client.km.restart_kernel)(now=killed)
        run_sync(self.client.kc.wait_for_ready)(timeout=60)

    def said(self, cells: slice = slice(None)) -> dict[str, str]:
        """What the checks said in the cells' last run."""
        return outcomes([cell for _, cell in self.cells[cells]])


@pytest.mark.parametrize("number", LABS)
def test_a_restart_in_the_middle_of_a_lab_loses_nothing_and_takes_nothing_for_done(
    number, tmp_path, monkeypatch
):
    for name in ("state", "tmp", "labs"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv(life.SILENCE, "1")
    notebook = Notebook(number, tmp_path / "labs")
    half = len(notebook.cells) // 2
    first, second, whole = slice(half), slice(half, None), slice(None)

    def done() -> list[str]:
        (file,) = (tmp_path / "state").rglob("progress.json")
        return json.loads(file.read_text())["done"]

    with notebook.client.setup_kernel():
        assert not notebook.run(first)
        solved = sorted(notebook.said(first))
        assert solved and done() == solved
        notebook.restart(killed=True)
        assert not notebook.run(slice(IMPORTS))
        left = list((tmp_path / "tmp").iterdir())
        assert [path.name.split("-")[0] for path in left] == ["lab_utils"]  # the new kernel's own
        errors = notebook.run(second)
        assert set(errors) <= {"NameError"}, errors
        assert set(solved) <= set(done()) and not list((tmp_path / "labs").iterdir())
        notebook.restart(killed=False)
        assert not notebook.run(whole)
        assert set(notebook.said().values()) == {"correct"}
        assert done() == sorted(notebook.said(), key=lambda id: (int(re.sub(r"\D", "", id)), id))
        assert not list((tmp_path / "labs").iterdir())
    assert not list((tmp_path / "tmp").iterdir())
    print(
        f"\nlab {number}: from the middle {sum(errors.values())} cells told a name that is missing"
    )
