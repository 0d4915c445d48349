"""A kernel that is restarted in the middle of a lab: to go on from there says what is missing."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.util import run_sync
from test_labs import outcomes

from lab_utils.check.setup import SILENCE

SOLUTION = Path(__file__).parents[1] / "solutions" / "02_four_changes.ipynb"
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
