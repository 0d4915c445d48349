"""`python -m lab_utils progress`: done, open, minutes left; another home, damaged and unwritable files."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils.check import overview, progress

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def learner(tmp_path, monkeypatch):
    """A learner without any progress."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(progress, "_memory", None)


def test_the_labs_and_todos_are_those_of_the_notebooks():
    paths = sorted((ROOT / "labs").glob("*.ipynb"))
    assert [int(path.name[:2]) for path in paths] == list(overview.labs())
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
        assert overview.ids(int(path.name[:2])) == sorted(
            re.findall(r'^check\("(\d+[a-z])"', text, re.M)
        )


def test_minutes_left_follow_from_what_is_open(capsys):
    total = sum(entry["minutes"] for entry in overview.labs().values())
    assert f"About {total // 60} h {total % 60} min left" in overview.table()
    for id in ("2a", "2b", "2c"):
        progress.record(id)
    progress.record_shown("2b")
    assert overview.main([]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("02 "))
    left = round(overview.labs()[2]["minutes"] * 2 / 5)
    told = f"02 #######..... 3 of 5  The four changes: {left} min left, 1 solution shown"
    assert line == told
    for id in overview.ids(2):
        progress.record(id)
    assert "The four changes: done" in overview.table()


def test_progress_moves_to_another_home(tmp_path, monkeypatch, capsys):
    progress.record("2a")
    progress.record_prediction("loss", 2.0)
    kept = tmp_path / "mine.json"
    assert overview.main(["--export", str(kept)]) == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    progress.record("2b")
    progress.record_prediction("loss", 3.0)
    assert overview.main(["--import", str(kept)]) == 0
    assert "1 TODO more done" in capsys.readouterr().out
    assert progress.done() == {"2a", "2b"} and progress.prediction("loss") == 3.0


def test_progress_moves_through_a_pipe(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    progress.record("2a")
    assert overview.main(["--export", "-"]) == 0
    said = capsys.readouterr().out
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
    assert overview.main(["--import", "-"]) == 0
    assert progress.done() == {"2a"} and not Path("-").exists()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1")))
    assert overview.main(["--import", "-"]) == 2
    assert "the standard input is not a progress" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"format": 2}', '{"format": 1, "done": 5}', "[" * 99_999]
)
def test_a_damaged_export_changes_nothing(damage, tmp_path, capsys):
    progress.record("2a")
    (tmp_path / "bad.json").write_text(damage)
    assert overview.main(["--import", str(tmp_path / "bad.json")]) == 2
    assert "is not a progress" in capsys.readouterr().err and progress.done() == {"2a"}
    assert overview.main(["--import", str(tmp_path / "none.json")]) == 2


def test_where_nothing_can_be_written_it_is_told(tmp_path, monkeypatch, capsys):
    kept = tmp_path / "mine.json"
    assert overview.main(["--export", str(kept)]) == 0
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert overview.main([]) == 0
    assert overview.main(["--import", str(kept)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        overview.main(["--export", str(tmp_path / "none" / "a.json")])


def test_the_command_imports_no_framework():
    code = "import sys; from lab_utils.__main__ import main; sys.argv[1:] = ['progress']; main()"
    probe = f"{code}; assert not {{'tensorflow', 'jax'}} & sys.modules.keys()"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


@pytest.mark.parametrize("text", ["", '{"done": ["1a"', '{"done": 3}', "[]", "\0\0", "[" * 9000])
def test_a_progress_that_cannot_be_read_is_kept_aside(text, capsys):
    path = progress.file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert progress.done() == set() and path.read_text() == text
    progress.record("2a")
    assert progress.done() == {"2a"}
    (aside,) = path.parent.glob("*.unreadable.json")
    assert aside.read_text() == text and str(aside) in capsys.readouterr().out
    progress.record("2b")
    assert progress.done() == {"2a", "2b"} and not capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_progress_that_an_editor_has_saved_is_read(encoding, tmp_path):
    progress.record("2a")
    path = progress.file()
    path.write_text(path.read_text(encoding="utf-8"), encoding=encoding)
    assert progress.done() == {"2a"}
    exported = tmp_path / "exported.json"
    assert overview.main(["--export", str(exported)]) == 0
    exported.write_text(exported.read_text(encoding="utf-8"), encoding=encoding)
    assert overview.take(exported) == 0
