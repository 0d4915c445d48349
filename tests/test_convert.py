"""The converter as a whole: what goes in, what comes out, and what a person is told."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter

import pytest
from convert_data import LABELS, Data, contents, features, jpeg, records, rejects
from frozen import same

from lab_utils import datasets
from lab_utils.convert import ConversionError, convert, read_manifest
from lab_utils.convert import records as encoding
from lab_utils.convert.__main__ import main
from lab_utils.convert.pipeline import WriteShard


@pytest.fixture
def data(tmp_path) -> Data:
    return Data(tmp_path)


def test_images_are_scaled_down_where_that_is_asked_for(data):
    manifest = data.convert(shorter_side=6)
    sizes = {
        (f["image/width"], f["image/height"])
        for path in manifest.paths("train")
        for f in map(features, records(path))
    }
    assert sizes == {(8, 6)}
    assert read_manifest(str(data.out)).shorter_side == 6
    with pytest.raises(ConversionError, match="--shorter_side must be 1 or more"):
        data.convert(shorter_side=0, overwrite=True)


def test_every_row_becomes_one_record_with_the_features_of_the_tpu_readers(data):
    manifest = data.convert(train_shards=4)
    found = [features(record) for path in manifest.paths("train") for record in records(path)]
    assert len(found) == 90
    assert {f["image/filename"] for f in found} == {f"{n}.jpg".encode() for n in range(90)}
    for f in found:
        number = int(f.pop("image/filename").removesuffix(b".jpg"))
        assert f == {
            "image/encoded": (data.folder / f"{number}.jpg").read_bytes(),
            "image/format": b"JPEG",
            "image/colorspace": b"RGB",
            "image/width": 16,
            "image/height": 12,
            "image/channels": 3,
            "image/class/label": number // 30 + 1,
            "image/class/text": LABELS[number // 30].encode(),
        }


def test_the_manifest_tells_what_is_there(data):
    manifest = data.convert(train_shards=4)
    assert read_manifest(str(data.out)) == manifest
    assert manifest.labels == LABELS
    assert set(manifest.versions) == {"python", "apache_beam", "pillow", "lab_utils"}
    train, evaluation = manifest.splits["train"], manifest.splits["eval"]
    assert (train.examples, evaluation.examples) == (90, 10)
    assert train.per_class == {label: 30 for label in LABELS}
    assert sum(evaluation.per_class.values()) == 10
    shards = {shard.file: shard.examples for shard in train.shards + evaluation.shards}
    assert {name: len(records(data.out / name)) for name in contents(data.out)} == shards


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"format": 1', b'"format": 2', "format 2"),
        (b'"bytes": ', b'"bytes": 0.', "shard 0 of train should have .* two whole numbers"),
        (
            b'"examples": 90,\n          "bytes"',
            b'"examples": "x",\n          "bytes"',
            "whole numbers",
        ),
        (b'"file": "', b'"file": null, "was": "', "unexpected keyword"),
        (b'"file": "train-00000-of-00001.tfrecord"', b'"file": null', "a file's name"),
        (b"{", b"\xff" * 10_000 + b"{", "'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_damaged_manifest_is_one_sentence(data, old, new, says):
    data.convert(train_shards=1)
    path = data.out / "manifest.json"
    assert old in (content := path.read_bytes())
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(ConversionError, match=rf"\(.*{says}.*\): convert the .* again") as error:
        read_manifest(str(data.out))
    assert len(str(error.value)) < 250 + len(str(path)), "and no bytes of a binary file"


def test_classes_are_mixed_in_and_among_shards(data):
    manifest = data.convert(train_shards=3)
    for path in manifest.paths("train"):
        labels = [features(record)["image/class/label"] for record in records(path)]
        assert Counter(labels) == {1: 10, 2: 10, 3: 10}
        runs = 1 + sum(a != b for a, b in zip(labels, labels[1:], strict=False))
        assert runs >= 12  # 3 where classes stand together, 21 expected of a good mixture


def test_the_bundled_pictures_give_the_same_bytes_as_ever(tmp_path):
    photos = datasets.bundled()
    lists = photos.train_csv, photos.eval_csv, photos.labels_file
    manifest = convert(*lists, tmp_path / "one")
    for split in ("train", "eval"):
        found = sorted(record for path in manifest.paths(split) for record in records(path))
        same("records", f"records of {split}, sorted", sha256(b"".join(found)))
    convert(*lists, tmp_path / "several", train_shards=4, eval_shards=2)
    for name, content in (contents(tmp_path / "one") | contents(tmp_path / "several")).items():
        same("records", name, sha256(content))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_every_kind_of_bad_row_is_set_aside_with_its_number_and_reason(data):
    folder = data.folder
    (folder / "text.jpg").write_text("no image")
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "cut.jpg").write_bytes(jpeg(0)[:-50])
    os.mkfifo(folder / "pipe.jpg")
    bad = {
        b"absent.jpg,roses": "file not found: ",
        b"text.jpg,roses": "not an image",
        b"empty.jpg,roses": "empty file",
        b"cut.jpg,roses": "cannot be decoded",
        b"pipe.jpg,roses": "not a file",
        b"a" * 5000 + b".jpg,roses": "cannot be read (File name too long)",
        b"a\0b.jpg,roses": "there is a carriage return or a zero byte",
        b"1.jpg,nettles": "unknown label 'nettles'",
        b"1.jpg": "1 column ",
        b'"1.jpg,roses': "not a row of a list",
        b"fl\xf6te.jpg,roses": "not text in UTF-8",
    }
    good = [f"{n}.jpg,roses".encode() for n in range(90)]
    data.write(
        "train", [line for pair in zip(bad, good, strict=False) for line in pair] + good[len(bad) :]
    )
    manifest = data.convert(max_reject_share=0.2)
    assert manifest.splits["train"].examples == 90
    assert manifest.splits["train"].rejected == len(bad)
    for place, ((line, reason), reject) in enumerate(
        zip(bad.items(), rejects(data.out), strict=True)
    ):
        assert reject[:2] == ["train", str(2 * place + 1)]
        assert reject[2] == line.decode(errors="backslashreplace")
        assert reject[3].startswith(reason), reject


def test_too_many_rejects_fail_the_run_and_leave_their_list(data):
    data.write("eval", [b"90.jpg,roses"] * 49 + [b"absent.jpg,roses"])
    with pytest.raises(ConversionError, match=r"1 of 50 rows of .*eval.csv .* row 50 .*not found"):
        data.convert()
    assert [path.name for path in data.out.iterdir()] == ["rejects_of_failed_run.csv"]
    (reject,) = rejects(data.out, "rejects_of_failed_run.csv")
    assert reject[:3] == ["eval", "50", "absent.jpg,roses"]
    data.convert(max_reject_share=0.02)  # the list left by the failed run is not in the way
    assert not (data.out / "rejects_of_failed_run.csv").exists()
    assert len(rejects(data.out)) == 1


def test_the_command_tells_what_it_did_and_needs_no_tensorflow(data):
    code = (
        "import sys; from lab_utils.convert.__main__ import main; status = main(sys.argv[1:]);"
        "assert not {'tensorflow', 'jax'} & set(sys.modules); sys.exit(status)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *data.flags, "--train_shards=2"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert "train: 90 examples in 2 shards" in result.stdout
    assert "roses: 30" in result.stdout
    assert "s (measured here)" in result.stdout
    bars = [line for line in result.stderr.replace("\r", "\n").splitlines() if line]
    assert all(line.startswith("converting: ") for line in bars), result.stderr
    assert "100/100" in bars[-1]


def test_a_notebook_gets_no_bar_line_by_line(data, monkeypatch, capfd):
    monkeypatch.setattr("lab_utils.convert.engines.in_notebook", lambda: True)
    assert data.convert().splits["train"].examples == 90
    assert "converting" not in capfd.readouterr().err


def test_another_runner_is_passed_through(data, capfd):
    assert main([*data.flags, "--runner=BundleBasedDirectRunner"]) == 0
    assert read_manifest(str(data.out)).splits["train"].examples == 90
    assert "100/100" in capfd.readouterr().err  # of finished shards: its workers may be anywhere


def test_importing_the_package_does_not_wait_for_beam():
    code = "import sys, lab_utils.convert; assert 'apache_beam' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_in_a_notebook_beam_does_as_in_a_script(monkeypatch):
    from lab_utils.convert.plain_beam import beam

    notebooks = "apache_beam.runners.interactive.interactive_environment"
    monkeypatch.delitem(sys.modules, notebooks, raising=False)
    monkeypatch.setattr("IPython.get_ipython", lambda: True)
    step = beam.Pipeline() | beam.Create([1])
    assert step.producer.full_label.startswith("Create")
    assert notebooks not in sys.modules


@pytest.fixture
def expected(data) -> dict[str, bytes]:
    data.convert(train_shards=4)
    found = contents(data.out)
    data.out = data.folder / "again"
    return found


def test_two_attempts_on_each_shard_at_once_give_each_once(data, expected, monkeypatch):
    process = WriteShard.process

    def twice(self, shard):
        attempts = [threading.Thread(target=process, args=(self, shard)) for _ in range(2)]
        for attempt in attempts:
            attempt.start()
        for attempt in attempts:
            attempt.join()

    monkeypatch.setattr(WriteShard, "process", twice)
    data.convert(train_shards=4, workers=3)
    assert contents(data.out) == expected  # whatever the number of workers


def test_a_shard_that_fails_once_is_tried_again(data, expected, monkeypatch):
    encode = encoding.encode_example
    failures = ["once"]

    def flaky(*arguments):
        if failures:
            failures.pop()
            raise OSError("stale file handle")
        return encode(*arguments)

    monkeypatch.setattr(encoding, "encode_example", flaky)
    data.convert(train_shards=4)
    assert contents(data.out) == expected
    assert not [path for path in data.out.iterdir() if path.name.startswith(".")]


def test_a_shard_that_did_not_arrive_whole_is_told(data, monkeypatch):
    monkeypatch.setattr("lab_utils.convert.manifest.storage.size", lambda path: 17)
    with pytest.raises(ConversionError, match="has 17 bytes, not the .* that its worker wrote"):
        data.convert(train_shards=4)
    assert list(data.out.iterdir()) == []


def test_a_manifest_that_lost_a_class_is_refused(data):
    """By hand, say: training would end in TensorFlow's traceback about labels out of bound."""
    data.convert()
    path = data.out / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"labels": content["labels"][:-1]}))
    with pytest.raises(ConversionError, match="train counts classes that are not in labels"):
        read_manifest(str(data.out))
