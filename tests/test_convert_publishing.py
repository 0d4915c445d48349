"""The output folder: refused, replaced, or resumed after a run that died, on disk and in a bucket."""

import io
import itertools
from collections.abc import Iterator

import pytest
from PIL import Image

from lab_utils.convert import (
    ConversionError,
    convert,
    read_manifest,
    storage,
)
from lab_utils.convert.__main__ import main
from lab_utils.convert.manifest import Manifest, Shard, Split
from lab_utils.convert.publishing import check_output, publish, staging, unfinished


# A bucket takes the same paths, twenty times as slowly.
@pytest.fixture(params=["disk", pytest.param("bucket", marks=pytest.mark.rotating(4))])
def base(request, tmp_path, monkeypatch) -> Iterator[str]:
    """A place for input and output: a folder, or a bucket."""
    if request.param == "disk":
        yield str(tmp_path)
        return
    pytest.importorskip("google.cloud.storage", reason="the client of gs:// is not installed")
    pytest.importorskip("gcp_storage_emulator", reason="the emulator of gs:// is not installed")
    from bucket_server import use_bucket

    with use_bucket(monkeypatch):
        yield "gs://bucket/flowers"


def write(path: str, content: bytes) -> None:
    with storage.open_to_write(path) as file:
        file.write(content)


def read(path: str) -> bytes:
    with storage.open_to_read(path) as file:
        return file.read()


def run(base: str, rows: int = 8, **options):
    """Convert the first rows of a small set, in two shards."""
    jpeg = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(jpeg, "JPEG")
    for number in range(rows):
        write(f"{base}/{number}.jpg", jpeg.getvalue())
    write(f"{base}/rows.csv", b"".join(b"%d.jpg,roses\n" % number for number in range(rows)))
    write(f"{base}/labels.txt", b"roses\n")
    lists = (f"{base}/rows.csv", f"{base}/rows.csv", f"{base}/labels.txt")
    return convert(*lists, f"{base}/out", train_shards=2, **options)


def shown(base: str) -> set[str]:
    return {name for name in storage.list_names(f"{base}/out") if not name.startswith(".")}


RESULT = {
    "train-00000-of-00002.tfrecord",
    "train-00001-of-00002.tfrecord",
    "eval-00000-of-00001.tfrecord",
    "rejects.csv",
    "manifest.json",
}


def test_a_result_is_published_whole(base):
    manifest = run(base)
    assert shown(base) == RESULT
    assert read_manifest(f"{base}/out") == manifest
    assert unfinished(f"{base}/out") == []
    for name, split in manifest.splits.items():
        for shard, path in zip(split.shards, manifest.paths(name), strict=True):
            assert storage.size(path) == shard.bytes


def test_a_folder_in_use_is_refused_and_left_as_it_was(base):
    storage.make_folder(f"{base}/out")
    write(f"{base}/out/thesis.txt", b"precious")
    with pytest.raises(ConversionError, match=r"is not empty \(it holds thesis.txt\).*--overwrite"):
        run(base)
    assert storage.list_names(f"{base}/out") == {"thesis.txt"}


def test_overwriting_replaces_an_earlier_result_and_nothing_else(base):
    run(base)
    write(f"{base}/out/thesis.txt", b"precious")
    write(f"{base}/out/train-00000-of-00009.tfrecord", b"of a run before that")
    with pytest.raises(ConversionError, match="is not empty"):
        run(base)
    manifest = run(base, rows=6, overwrite=True)
    assert manifest.splits["train"].examples == 6
    assert read_manifest(f"{base}/out") == manifest
    assert shown(base) == RESULT | {"thesis.txt"}
    assert read(f"{base}/out/thesis.txt") == b"precious"
    assert unfinished(f"{base}/out") == []


def test_a_run_that_fails_leaves_the_earlier_result(base):
    manifest = run(base)
    write(f"{base}/bad.csv", b"absent.jpg,roses\n")
    lists = (f"{base}/bad.csv", f"{base}/rows.csv", f"{base}/labels.txt")
    with pytest.raises(ConversionError, match="1 of 1 row of"):
        convert(*lists, f"{base}/out", overwrite=True)
    assert read_manifest(f"{base}/out") == manifest
    assert shown(base) == RESULT | {"rejects_of_failed_run.csv"}
    assert unfinished(f"{base}/out") == []


class Death(BaseException):
    """Stands for kill -9: nothing may clean up after it."""


def publish_result(base: str, examples: int, overwrite: bool, names: set[str] = RESULT) -> None:
    """Do as a conversion does once its pipeline has run; the files hold the number of examples."""
    out = f"{base}/out"
    check_output(out, overwrite=overwrite)
    with staging(out) as folder:
        shards = [Shard(name, examples, 1) for name in sorted(names) if name.endswith(".tfrecord")]
        for name in names - {"manifest.json"}:
            write(f"{folder}/{name}", b"%d" % examples)
        manifest = Manifest(out, ["roses"], {"train": Split(examples, {}, shards, 0)}, {})
        write(f"{folder}/manifest.json", manifest.to_json().encode())
        publish(folder, out, overwrite=overwrite)


@pytest.mark.parametrize(
    ("overwrite", "step"), [*((False, n) for n in range(5)), *((True, n) for n in range(10))]
)
def test_dying_while_publishing_never_looks_finished_and_a_rerun_completes(
    base, monkeypatch, overwrite, step
):
    """The run dies before it moves its first file, its second, and so on."""
    if overwrite:
        publish_result(base, 1, overwrite=False)
    move = storage.move
    steps = itertools.count()

    def move_one_by_one(source, target, names):
        for name in sorted(names):
            if next(steps) == step:
                raise Death
            move(source, target, [name])

    with monkeypatch.context() as patch:
        patch.setattr(storage, "move", move_one_by_one)
        with pytest.raises(Death):
            publish_result(base, 2, overwrite)
    if overwrite and step == 0:
        assert read_manifest(f"{base}/out").splits["train"].examples == 1  # still whole
        assert read(f"{base}/out/rejects.csv") == b"1"
    else:
        with pytest.raises(ConversionError, match="did not finish"):
            read_manifest(f"{base}/out")

    publish_result(base, 3, overwrite)  # the same command again
    assert read_manifest(f"{base}/out").splits["train"].examples == 3
    assert shown(base) == RESULT
    assert {read(f"{base}/out/{name}") for name in RESULT - {"manifest.json"}} == {b"3"}


def test_an_interrupt_says_whether_the_result_was_published_before_it(
    tmp_path, monkeypatch, capsys
):
    run(str(tmp_path))
    flags = [f"--{name}_csv={tmp_path}/rows.csv" for name in ("train", "eval")]
    flags += [f"--labels_file={tmp_path}/labels.txt", f"--output_dir={tmp_path}/out", "--overwrite"]

    def interrupted(*arguments):
        raise KeyboardInterrupt

    for name, says in (
        ("open_to_read", "interrupted; no new result was published\n"),
        ("remove_folder", "interrupted; the new result is complete\n"),  # what clears up at the end
    ):
        with monkeypatch.context() as patch:
            patch.setattr(storage, name, interrupted)
            assert main(flags) == 130
        assert capsys.readouterr().err.endswith(says)
    assert read_manifest(f"{tmp_path}/out").splits["train"].examples == 8


def test_of_two_runs_into_one_folder_the_second_to_finish_is_refused(base, monkeypatch):
    """As in a bucket, where nothing is locked."""
    from lab_utils.convert import job

    account = job.account

    def other_run_finishes_meanwhile(*arguments):
        manifest = account(*arguments)
        write(f"{base}/out/manifest.json", b"of the other")
        return manifest

    monkeypatch.setattr(job, "account", other_run_finishes_meanwhile)
    with pytest.raises(ConversionError, match="is not empty.*The result of this run is in"):
        run(base)
    assert shown(base) == {"manifest.json"}
    assert read(f"{base}/out/manifest.json") == b"of the other"
    (unpublished,) = unfinished(f"{base}/out")
    assert read_manifest(unpublished).splits["train"].examples == 8


def test_names_with_pattern_letters_are_taken_as_they_are(tmp_path):
    folder = tmp_path / "run [1] *"
    folder.mkdir()
    run(str(folder))
    assert shown(str(folder)) == RESULT
