"""Which checkpoint a run goes on from, when some are damaged."""

import json
from pathlib import Path

import pytest

from lab_utils.estimator import tf, v1
from lab_utils.flowers.checkpoints import read_history, read_result, resume_point


def save(folder: Path, *steps: int, scale: float = 1.0) -> None:
    """Checkpoints as an Estimator writes them."""
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.get_or_create_global_step()
        v1.get_variable("kernel", initializer=scale * tf.random.normal([64, 64], seed=1))
        saver = v1.train.Saver()
        session.run(v1.global_variables_initializer())
        for number in steps:
            session.run(step.assign(number))
            saver.save(session, str(folder / "model.ckpt"), global_step=number)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Those of steps 0, 2, 9 and 10; 9 and 10 sort otherwise as text."""
    folder = tmp_path / "a run"
    folder.mkdir()
    save(folder, 0, 2, 9, 10)
    return folder


def data(folder: Path, step: int) -> Path:
    return folder / f"model.ckpt-{step}.data-00000-of-00001"


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def test_goes_on_from_the_newest(folder, capsys):
    assert resume_point(str(folder)) == 10
    assert not capsys.readouterr().out
    assert tf.train.latest_checkpoint(str(folder)) == str(folder / "model.ckpt-10")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: flip_a_byte(data(folder, 10)),
        lambda folder: cut_short(data(folder, 10)),
        lambda folder: data(folder, 10).unlink(),
        lambda folder: cut_short(folder / "model.ckpt-10.index"),
        lambda folder: save(folder, 10, scale=float("nan")),
    ],
    ids=["flipped", "cut", "no data", "cut index", "diverged"],
)
def test_a_damaged_last_checkpoint_is_passed_over(folder, damage, capsys):
    damage(folder)
    before = {file.name: file.read_bytes() for file in folder.glob("model.*")}
    assert resume_point(str(folder)) == 9
    assert capsys.readouterr().out.count("model.ckpt-10 is damaged") == 1
    assert tf.train.latest_checkpoint(str(folder)) == str(folder / "model.ckpt-9")
    # It stays; and an Estimator that goes on does not count it among those it may delete.
    assert {file.name: file.read_bytes() for file in folder.glob("model.*")} == before
    state = tf.train.get_checkpoint_state(str(folder))
    assert [path.rpartition("-")[2] for path in state.all_model_checkpoint_paths] == ["0", "2", "9"]


def test_all_damaged_is_an_error_that_says_what_to_do(folder):
    for step in (0, 2, 9, 10):
        flip_a_byte(data(folder, step))
    with pytest.raises(
        RuntimeError, match=r"No checkpoint in .*a run can be read.*move the folder"
    ):
        resume_point(str(folder))


@pytest.mark.parametrize("torn", [b"", b'model_checkpoint_path: "model.ck', b"\xff\x00"])
def test_the_files_decide_when_the_checkpoint_file_is_torn(folder, torn):
    """The index comes last: data without it is what a crash leaves."""
    (folder / "checkpoint").write_bytes(torn)
    (folder / "model.ckpt-12.data-00000-of-00001").write_bytes(b"half")
    assert resume_point(str(folder)) == 10
    assert tf.train.latest_checkpoint(str(folder)) == str(folder / "model.ckpt-10")
    assert resume_point(str(folder / "none")) == 0


EVALUATION = (
    """{"step": 10, "accuracy": 0.5, "cross_entropy": 1.0, "images": 2, "confusion": [[1]]}"""
)


@pytest.mark.parametrize(
    "damage",
    [
        *('{"step": 20, "acc', "[1, 2]", "\x00\ufffd", "[" * 100_000, '{"step": "3"}'),
        '{"step": 20, "accuracy": 0.5}',
        EVALUATION.replace("0.5", '"high"'),
    ],
)
def test_a_damaged_line_of_the_history_is_left_out_and_said(damage, tmp_path, capsys):
    (tmp_path / "history.jsonl").write_text(f"{EVALUATION}\n{damage}\n")
    assert read_history(str(tmp_path)) == [json.loads(EVALUATION)]
    assert "history.jsonl, line 2: damaged" in capsys.readouterr().out
    path = tmp_path / "result.json"
    path.write_text("[]" if damage.startswith("{") else damage)
    assert read_result(str(path)) == {} and "damaged" in capsys.readouterr().out
    assert read_result(str(tmp_path / "none.json")) == {} and not capsys.readouterr().out
