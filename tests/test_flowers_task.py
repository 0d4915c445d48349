"""The training run: to the last step, started again, and over damage."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from lab_utils.common import files
from lab_utils.estimator import tf
from lab_utils.flowers import settings, task


def history(run_dir: Path) -> list[dict]:
    return [json.loads(line) for line in (run_dir / "history.jsonl").open()]


def weights(run_dir: Path, step: int) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(run_dir / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_same_weights(run_dir: Path, other: Path, step: int) -> None:
    """Equal but for the order in which threads add."""
    one, two = weights(run_dir, step), weights(other, step)
    assert set(one) == set(two)
    for name, value in one.items():
        np.testing.assert_allclose(value, two[name], rtol=1e-2, atol=1e-4, err_msg=name)


@pytest.fixture
def copy(finished_run, tmp_path) -> Path:
    """A copy of the finished run, to damage."""
    return Path(shutil.copytree(finished_run[0], tmp_path / "run"))


@pytest.fixture
def again(run_flags):
    """Runs the same run again in another folder, with other flags."""
    return lambda run_dir, *flags: task.run(
        settings.parse([*run_flags, f"--output_dir={run_dir}", *flags])
    )


def test_a_run_evaluates_at_each_checkpoint_and_ends_at_its_last_step(finished_run):
    run_dir, result = finished_run
    assert [record["step"] for record in history(run_dir)] == [4, 8]
    assert all(record["images"] == 12 for record in history(run_dir))
    assert json.loads((run_dir / "result.json").read_text()) == result
    assert result == history(run_dir)[-1] | {
        "labels": ["daisy", "roses", "tulips"],
        "image_size": 32,
        "saved_model": result["saved_model"],
    }
    assert np.sum(result["confusion"]) == 12
    assert result["accuracy"] == pytest.approx(np.trace(result["confusion"]) / 12, abs=1e-6)
    assert not list(run_dir.glob("*.partial"))


def test_a_finished_run_stays_as_it_is(copy, again, finished_run, capsys):
    before = {file.name: file.read_bytes() for file in copy.glob("model.ckpt*")}
    result = again(copy)
    assert result == finished_run[1]
    assert len(list((copy / "export").iterdir())) == 1
    assert {file.name: file.read_bytes() for file in copy.glob("model.ckpt*")} == before
    assert [record["step"] for record in history(copy)] == [4, 8]
    assert "Going on from step 8 of 8" in capsys.readouterr().out
    assert again(copy, "--train_steps=4") == result
    assert not re.search(r"-\S*step/s", capsys.readouterr().err)


def test_a_damaged_last_checkpoint_costs_only_its_steps_and_a_run_can_be_made_longer(
    copy, again, capsys
):
    data = copy / "model.ckpt-8.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-200])
    result = again(copy, "--train_steps=10")
    printed = capsys.readouterr().out
    assert "model.ckpt-8 is damaged" in printed and "Going on from step 4 of 10" in printed
    assert result["step"] == 10
    assert [record["step"] for record in history(copy)] == [4, 8, 10]
    assert Path(result["saved_model"], "saved_model.pb").exists()
    assert copy in Path(result["saved_model"]).parents


def checkpoints(run_dir: Path) -> list[int]:
    found = (re.search(r"ckpt-(\d+)\.index", file.name) for file in run_dir.glob("model.*.index"))
    return sorted(int(match[1]) for match in found)


def test_a_training_on_other_classes_is_refused_before_the_first_step(copy, run_flags, capsys):
    (copy / "labels.txt").write_text("roses\ndaisy\ntulips\n")
    before = {file.name: file.read_bytes() for file in copy.iterdir() if file.is_file()}
    assert task.main([*run_flags, f"--output_dir={copy}", "--train_steps=10"]) == 1
    message = capsys.readouterr().err
    assert (
        "other classes (roses, daisy, tulips, but the records have daisy, roses, tulips)" in message
    )
    assert {file.name: file.read_bytes() for file in copy.iterdir() if file.is_file()} == before


def test_a_learning_rate_too_high_ends_in_a_sentence(run_flags, tmp_path, capsys):
    flags = [*run_flags, f"--output_dir={tmp_path}", "--train_steps=2"]
    assert task.main([*flags, "--learning_rate=1e30"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("task: the loss has become NaN: train with a --learning_rate")
    assert not (tmp_path / "result.json").exists()


def test_two_trainings_of_one_folder_the_second_is_refused(run_flags, tmp_path, capsys):
    with files.locked(tmp_path / ".lock"):
        assert task.main([*run_flags, f"--output_dir={tmp_path}"]) == 1
    assert f"{tmp_path} is in use by" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-7], ["train-00001-of-00003", "manifest", "copy it again"]),
        (lambda data: data[:200] + b"x" + data[201:], ["corrupted record at", "convert again"]),
    ],
)
def test_a_damaged_shard_is_one_sentence(run_flags, tiny_records, tmp_path, capsys, damage, words):
    records = Path(shutil.copytree(tiny_records.folder, tmp_path / "records"))
    shard = next(records.glob("train-00001-*"))
    shard.write_bytes(damage(shard.read_bytes()))
    flags = [*run_flags, f"--train_data_path={records}/train-*", f"--output_dir={tmp_path / 'run'}"]
    assert task.main(flags) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("task: ")
    assert all(word in message for word in words), message


def test_an_error_that_names_no_file_is_left_to_the_command():
    assert not task.problem(FileNotFoundError(2, "No such file or directory"), "run")
    refused = PermissionError(13, "Permission denied", "run/labels.txt")
    assert task.problem(refused, "run").startswith("Permission denied: run/labels.txt. run must be")


@pytest.mark.parametrize("name", ["history.jsonl", "labels.txt", "result.json"])
def test_a_folder_in_the_place_of_a_file_is_one_sentence(copy, run_flags, capsys, name):
    (copy / name).unlink()
    (copy / name).mkdir()
    assert task.main([*run_flags, f"--output_dir={copy}"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"task: {copy / name}; Is a directory: move away what is at this path"


def test_a_file_system_that_tensorflow_does_not_know_is_one_sentence(run_flags, capsys):
    """As a file manager shows the address of a network drive."""
    assert task.main([*run_flags, "--output_dir=smb://nas/run"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert "scheme 'smb' not implemented" in said and said.endswith("local path, or one in gs://")
