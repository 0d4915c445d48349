"""What is shown while a dry run is at work in a notebook."""

import time

import dry_run_reports as made

from lab_utils.dry_run import api, progress
from lab_utils.dry_run.records import Stage, StageResult, Status
from lab_utils.dry_run.session import Session


class Cell:
    """The output of a cell: what was written to it, one text after the other."""

    texts: list[str] = []

    def write(self, text: str) -> None:
        self.texts.append(text)


def test_in_a_notebook_a_finding_is_shown_while_later_stages_work(monkeypatch):
    cell = Cell()
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "CellLine", lambda: cell)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    session = Session(None, "v2:2x2", 8)
    with progress.progress("read", lambda: api._so_far(session)) as say:
        while not cell.texts:
            time.sleep(0.005)
        assert "TPU101" not in cell.texts[-1]
        done = StageResult(Stage.TRACE, Status.DONE, "train", 0.8, [made.finding()])
        session.results += [done, StageResult(Stage.READ, Status.SKIPPED)]
        say("compile")
        seen = len(cell.texts)
        while len(cell.texts) < seen + 2:
            time.sleep(0.005)
        first, stage, second = cell.texts[-1].splitlines()
        assert stage == "✗ trace (800 ms): 1 finding; train"
        assert first.startswith("Dry run: compile (")
        assert second.startswith("error TPU101 at trainer/model.py:41, in input_fn")
    assert cell.texts[-1] == ""
