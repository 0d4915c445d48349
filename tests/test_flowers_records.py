"""Which shards a run reads, and what a record that cannot be decoded is called."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from lab_utils.convert import ManifestError
from lab_utils.convert.images import RgbJpeg
from lab_utils.convert.records import encode_example, frame
from lab_utils.estimator import tf
from lab_utils.flowers import settings, task
from lab_utils.flowers.records import Records, undecodable


@pytest.fixture
def copy(tiny_records, tmp_path) -> Path:
    """A copy of the records, to change."""
    return Path(shutil.copytree(tiny_records.folder, tmp_path / "records [1]"))


def change(folder: Path, change) -> None:
    """Changes the manifest by `change(content)`."""
    content = json.loads((folder / "manifest.json").read_text())
    change(content)
    (folder / "manifest.json").write_text(json.dumps(content))


def test_the_manifest_says_what_is_read_and_strangers_are_named(copy, tiny_records):
    for stranger in ("train-00000-of-00009.tfrecord", "train-00000-of-00003 (copy).tfrecord"):
        shutil.copy(copy / "train-00000-of-00003.tfrecord", copy / stranger)
    found = Records.find(f"{copy}/train-*")
    assert [Path(file).name for file in found.files] == [
        Path(file).name for file in tiny_records.paths("train")
    ]
    assert found.examples == 15
    assert len(found.strangers) == 2
    assert not set(found.strangers) & {Path(file).name for file in found.files}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("{}", "is a folder of records: name a split in it, such as"),
        ("{}/", "is a folder of records"),
        ("{}/../*/train-*", "only its last part may hold"),
        ("{}/TRAIN-*", "there are eval-*, train-*"),
    ],
)
def test_another_habit_of_naming_records_is_explained(tiny_records, pattern, words):
    with pytest.raises(ManifestError) as told:
        Records.find(pattern.format(tiny_records.folder))
    assert words in str(told.value)


def test_records_of_training_among_those_of_the_evaluation_are_told(
    tiny_records, run_flags, capsys
):
    flags = [*run_flags, f"--train_data_path={tiny_records.folder}/*", "--output_dir=o"]
    task.inputs(settings.parse(flags))
    said = capsys.readouterr().out
    assert "--train_data_path and --eval_data_path share 2 files" in said
    assert "manifest.json" not in said


def test_a_run_does_not_train_on_strangers_and_says_so(copy, run_flags, tmp_path, capsys):
    shutil.copy(copy / "eval-00000-of-00002.tfrecord", copy / "eval-00000-of-00001.tfrecord")
    flags = [*run_flags, f"--eval_data_path={copy}/eval-*", f"--output_dir={tmp_path / 'run'}"]
    assert task.main([*flags, "--train_steps=1"]) == 0
    said = capsys.readouterr().out
    assert "Not read, since no manifest lists them: eval-00000-of-00001.tfrecord" in said
    assert "on 12 held-out images" in said


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda content: content.update(labels=[]), "labels"),
        (lambda content: content.update(labels="daisy"), "labels"),
        (lambda content: content.update(labels=["a", "a", "b"]), "each class once"),
        (lambda content: content.update(labels=["a", 7, "b"]), "class names"),
        (lambda content: content["splits"]["train"]["shards"][0].update(bytes="many"), "whole"),
        (
            lambda content: [
                shard.update(examples=0) for shard in content["splits"]["train"]["shards"]
            ],
            "do not add up",
        ),
        (lambda content: content["splits"]["train"]["shards"].pop(), "do not add up"),
        (lambda content: content["labels"].append("x"), "classes of train are not those of labels"),
        (lambda content: content["splits"]["train"].update(per_class=None), "is not a manifest of format 1"),
        (lambda content: content["splits"]["train"].update(examples=-1), "not below 0"),
        (lambda content: content["splits"]["train"].update(rejected="0"), "should be whole"),
        (
            lambda content: content["splits"]["train"]["shards"][0].update(file="../x"),
            "should be called train-",
        ),
    ],
)
def test_a_manifest_that_cannot_be_used_is_one_sentence(copy, changed, words):
    change(copy, changed)
    with pytest.raises(ManifestError, match=words):
        Records.find(f"{copy}/train-*")


@pytest.mark.parametrize(
    ("old", "new"),
    [("{", "[" * 100_000), ("}", "")],
)
def test_a_manifest_that_is_damaged_is_one_sentence(copy, old, new):
    text = (copy / "manifest.json").read_text()
    (copy / "manifest.json").write_text(text.replace(old, new, 1))
    with pytest.raises(ManifestError, match="is not a manifest of format 1"):
        Records.find(f"{copy}/train-*")


def test_both_splits_must_have_the_same_classes(copy, run_flags, tmp_path, capsys):
    change(copy, lambda content: content.update(labels=["daisy", "tulips", "roses"]))
    flags = [*run_flags, f"--eval_data_path={copy}/eval-*", f"--output_dir={tmp_path / 'run'}"]
    assert task.main(flags) == 1
    assert "class 2 is 'roses' and 'tulips'" in capsys.readouterr().err


def noisy(jpeg: bytes) -> bytes:
    """Noise inside, which only a full decode finds."""
    middle = len(jpeg) // 2
    return jpeg[:middle] + np.random.default_rng(0).bytes(200) + jpeg[middle + 200 :]


@pytest.mark.parametrize(
    ("spoil", "label", "words"),
    [(noisy, 1, "JPEG"), (lambda jpeg: jpeg[:90], 1, "JPEG"), (bytes, 9, "its class is 9, of 3")],
)
def test_a_record_that_cannot_be_decoded_is_named(
    copy, tiny_photos, run_flags, tmp_path, capsys, spoil, label, words
):
    jpeg = next(tiny_photos.glob("roses/*.jpg")).read_bytes()
    record = frame(encode_example(RgbJpeg(spoil(jpeg), 48, 48), b"roses/noise.jpg", label, "roses"))
    shard = copy / "train-00001-of-00003.tfrecord"
    shard.write_bytes(shard.read_bytes() + record)

    def counted(content):
        train = content["splits"]["train"]
        train["examples"] += 1
        train["per_class"]["roses"] += 1
        listed = train["shards"][1]
        listed["bytes"] += len(record)
        listed["examples"] += 1

    change(copy, counted)
    (line,) = undecodable(Records.find(f"{copy}/train-*"))
    assert line.startswith("roses/noise.jpg (record 5 of ") and words in line
    if label == 1:
        flags = [
            *run_flags,
            f"--train_data_path={copy}/train-*",
            f"--output_dir={tmp_path / 'run'}",
        ]
        assert task.main(flags) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("task: cannot be decoded: roses/noise.jpg (record 5 of")
        assert "convert again" in said


def test_other_invalid_arguments_are_not_blamed_on_a_record(tiny_records, run_flags, tmp_path):
    from lab_utils.flowers.records import naming_bad

    with (
        pytest.raises(tf.errors.InvalidArgumentError),
        naming_bad(Records.find(f"{tiny_records.folder}/train-*")),
    ):
        tf.reshape(tf.zeros([3]), [2])


@pytest.mark.parametrize("below", ["", "/run"])
def test_an_output_folder_that_is_a_file_is_named(run_flags, tmp_path, capsys, below):
    (tmp_path / "thesis").write_text("words")
    assert task.main([*run_flags, f"--output_dir={tmp_path / 'thesis'}{below}"]) == 1
    assert "is a file, or below one: give a new folder" in capsys.readouterr().err
    assert (tmp_path / "thesis").read_text() == "words"
