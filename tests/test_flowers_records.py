"""Which shards a run reads, and what it says where they are not those of the manifest."""

import json
import shutil
from pathlib import Path

import pytest

from lab_utils.convert import ConversionError
from lab_utils.flowers import task
from lab_utils.flowers.records import Records


@pytest.fixture
def copy(tiny_records, tmp_path) -> Path:
    """A copy of the records, to change."""
    return Path(shutil.copytree(tiny_records.folder, tmp_path / "records [1]"))


def test_the_manifest_says_what_is_read(copy, tiny_records):
    shutil.copy(copy / "train-00000-of-00003.tfrecord", copy / "train-00000-of-00009.tfrecord")
    found = Records.find(f"{copy}/train-*")
    assert [Path(file).name for file in found.files] == [
        Path(file).name for file in tiny_records.paths("train")
    ]
    assert found.examples == 15


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("{}", "is a folder of records: name a split in it, such as"),
        ("{}/", "is a folder of records"),
        ("{}/TRAIN-*", "its folder, which has eval-*, train-*"),
        ("{}/none/train-*", "lab_utils.convert"),
    ],
)
def test_another_habit_of_naming_records_is_explained(tiny_records, pattern, words):
    with pytest.raises(ConversionError) as error:
        Records.find(pattern.format(tiny_records.folder))
    assert words in str(error.value)


def test_both_splits_must_have_the_same_classes(copy, run_flags, tmp_path, capsys):
    content = json.loads((copy / "manifest.json").read_text())
    content["labels"] = ["daisy", "tulips", "roses"]
    (copy / "manifest.json").write_text(json.dumps(content))
    flags = [*run_flags, f"--eval_data_path={copy}/eval-*", f"--output_dir={tmp_path / 'run'}"]
    assert task.main(flags) == 1
    assert "daisy, roses, tulips and daisy, tulips, roses" in capsys.readouterr().err
