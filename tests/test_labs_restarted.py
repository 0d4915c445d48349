"""Kernels that are restarted in the middle of a lab, and cells that are run again."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.util import run_sync
from test_labs import outcomes

from lab_utils.check.setup import SILENCE
from lab_utils.teach.marks import CHECK

SOLUTION = Path(__file__).parents[1] / "solutions" / "02_four_changes.ipynb"
# The day's labs, and the clinic, whose cells write the same files again.
AGAIN = sorted([*SOLUTION.parent.glob("0[1-7]_*.ipynb"), *SOLUTION.parent.glob("16_*.ipynb")])
IMPORTS = 3  # cells that a learner runs again before going on from the middle


@pytest.mark.slow
def test_a_restart_in_the_middle_of_a_lab_loses_nothing_and_takes_nothing_for_done(
    tmp_path, monkeypatch
):
    for name in ("state", "tmp", "labs"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv(SILENCE, "1")
    notebook = nbformat.read(SOLUTION, as_version=4)
    resources = {"metadata": {"path": str(tmp_path / "labs")}}
    client = NotebookClient(notebook, timeout=600, resources=resources, allow_errors=True)
    cells = [each for each in enumerate(notebook.cells) if each[1].cell_type == "code"]
    first, second = cells[: len(cells) // 2], cells[len(cells) // 2 :]

    def run(some: list) -> list[str]:
        """The kinds of the errors that these cells raise."""
        for index, cell in some:
            cell.outputs = []
            client.execute_cell(cell, index)
        outputs = [output for _, cell in some for output in cell.outputs]
        return [each.ename for each in outputs if each.output_type == "error"]

    def restart(killed: bool) -> None:
        """As Jupyter's button does; `killed` as where the system ends the kernel for want of memory."""
        run_sync(client.km.restart_kernel)(now=killed)
        run_sync(client.kc.wait_for_ready)(timeout=60)

    def done() -> list[str]:
        (file,) = (tmp_path / "state").rglob("progress.json")
        return json.loads(file.read_text())["done"]

    with client.setup_kernel():
        assert not run(first)
        solved = sorted(outcomes([cell for _, cell in first]))
        assert solved and done() == solved
        restart(killed=True)
        assert not run(cells[:IMPORTS])
        assert {path.name.split("-")[0] for path in (tmp_path / "tmp").iterdir()} == {"lab_utils"}
        assert set(run(second)) <= {"NameError"}
        assert set(solved) <= set(done()) and not list((tmp_path / "labs").iterdir())
        restart(killed=False)
        assert not run(cells)
        said = outcomes([cell for _, cell in cells])
        assert set(said.values()) == {"correct"} and done() == sorted(said)
        assert not list((tmp_path / "labs").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("path", AGAIN, ids=[path.stem for path in AGAIN])
def test_cells_can_be_run_again(path, tmp_path, monkeypatch):
    """Each cell but the checks: twice in a row, then once more, as after a TODO that was solved late."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv(SILENCE, "1")
    notebook = nbformat.read(path, as_version=4)
    cells = [each for each in enumerate(notebook.cells) if each[1].cell_type == "code"]
    cells = [each for each in cells if not CHECK.search(each[1].source)]
    client = NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}, allow_errors=True
    )
    failed = []
    with client.setup_kernel():
        for index, cell in [*(cell for cell in cells for _ in range(2)), *cells]:
            cell.outputs = []
            client.execute_cell(cell, index)
            failed += [
                f"cell {index}: {o.evalue}" for o in cell.outputs if o.output_type == "error"
            ]
    assert not failed
