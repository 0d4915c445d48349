"""The output folder: refused, replaced, or resumed after a run that died, on disk and in a bucket."""

import io
import itertools
import shutil

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem
from PIL import Image

from lab_utils.common import leases
from lab_utils.convert import (
    ConversionError,
    ManifestError,
    convert,
    read_manifest,
    storage,
)
from lab_utils.convert.manifest import Manifest, Shard, Split
from lab_utils.convert.publishing import (
    abandoned,
    check_output,
    publish,
    remove_dead,
    staging,
)


class MemoryFileSystem(FileSystem):
    """A bucket in this process's memory: like Google's, it has no folders, and deletes when it renames."""

    blobs: dict[str, bytes] = {}

    @classmethod
    def scheme(cls):
        return "memory"

    def join(self, basepath, *paths):
        return "/".join((basepath.rstrip("/"), *paths))

    def split(self, path):
        return tuple(path.rsplit("/", 1))

    def mkdirs(self, path):
        raise NotImplementedError("buckets have no folders")

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        for path, blob in sorted(self.blobs.items()):
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(blob))

    def create(self, path, mime_type="", compression_type=None):
        class Blob(io.BytesIO):
            def close(blob):
                self.blobs[path] = blob.getvalue()
                super().close()

        return Blob()

    def open(self, path, mime_type="", compression_type=None):
        if path not in self.blobs:
            raise BeamIOError("not found", {path: "404"})
        return io.BytesIO(self.blobs[path])

    def copy(self, source_file_names, destination_file_names):
        raise NotImplementedError

    def rename(self, source_file_names, destination_file_names):
        for old, new in zip(source_file_names, destination_file_names, strict=True):
            self.blobs[new] = self.blobs.pop(old)

    def exists(self, path):
        return path in self.blobs

    def size(self, path):
        return len(self.open(path).read())

    def last_updated(self, path):
        raise NotImplementedError

    def checksum(self, path):
        raise NotImplementedError

    def metadata(self, path):
        return FileMetadata(path, self.size(path))

    def delete(self, paths):
        for match in self.match(paths):
            for entry in match.metadata_list:
                del self.blobs[entry.path]


@pytest.fixture(params=["disk", "bucket"])
def base(request, tmp_path, monkeypatch) -> str:
    """A place for input and output: a folder, or a bucket."""
    monkeypatch.setattr(MemoryFileSystem, "blobs", {})
    return str(tmp_path) if request.param == "disk" else "memory://bucket/flowers"


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
    assert abandoned(f"{base}/out") == []
    for name, split in manifest.splits.items():
        for shard, path in zip(split.shards, manifest.paths(name), strict=True):
            assert storage.size(path) == shard.bytes


def test_missing_images_are_set_aside(base):
    run(base)
    write(f"{base}/more.csv", b"0.jpg,roses\nabsent.jpg,roses\n")
    lists = (f"{base}/more.csv", f"{base}/rows.csv", f"{base}/labels.txt")
    manifest = convert(*lists, f"{base}/out2", max_reject_share=0.5)
    assert manifest.splits["train"].rejected == 1
    assert b"file not found" in read(f"{base}/out2/rejects.csv")


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
    assert abandoned(f"{base}/out") == []


def test_a_run_that_fails_leaves_the_earlier_result(base):
    manifest = run(base)
    write(f"{base}/bad.csv", b"absent.jpg,roses\n")
    lists = (f"{base}/bad.csv", f"{base}/rows.csv", f"{base}/labels.txt")
    with pytest.raises(ConversionError, match="none of 1 row of"):
        convert(*lists, f"{base}/out", overwrite=True)
    assert read_manifest(f"{base}/out") == manifest
    assert shown(base) == RESULT | {"rejects_of_failed_run.csv"}
    assert abandoned(f"{base}/out") == []


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
        with pytest.raises(ManifestError, match="did not finish"):
            read_manifest(f"{base}/out")

    publish_result(base, 3, overwrite)  # the same command again
    assert read_manifest(f"{base}/out").splits["train"].examples == 3
    assert shown(base) == RESULT
    assert {read(f"{base}/out/{name}") for name in RESULT - {"manifest.json"}} == {b"3"}


def test_of_two_runs_into_one_folder_the_second_to_finish_is_refused(base, monkeypatch):
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
    (kept,) = abandoned(f"{base}/out")
    assert read_manifest(kept).splits["train"].examples == 8


def hide_locks(monkeypatch):
    """As on a network file system that has none: markers stand in."""

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("lab_utils.common.leases.fcntl.flock", refuse)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("locks", [True, False])
@pytest.mark.parametrize("names", [RESULT, RESULT | {"train-00000-of-00001.tfrecord"}])
def test_of_two_runs_that_publish_at_once_one_loses_before_it_moves_anything(
    base, monkeypatch, overwrite, locks, names
):
    """The second comes between the first one's moves."""
    if not locks:
        hide_locks(monkeypatch)
    if overwrite:
        publish_result(base, 1, overwrite=False)
    move = storage.move
    refused = []

    def move_with_another_in_between(source, target, files):
        for name in sorted(files):
            move(source, target, [name])
            if not refused:
                refused.append(None)
                with pytest.raises(ConversionError, match="another conversion is publishing") as e:
                    publish_result(base, 3, overwrite, names)
                refused[0] = str(e.value)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "move", move_with_another_in_between)
        publish_result(base, 2, overwrite)
    assert read_manifest(f"{base}/out").splits["train"].examples == 2
    assert shown(base) == RESULT
    assert {read(f"{base}/out/{name}") for name in RESULT - {"manifest.json"}} == {b"2"}
    (kept,) = abandoned(f"{base}/out")
    assert f"The result of this run is in {kept}" in refused[0]
    assert read_manifest(kept).splits["train"].examples == 3


def test_a_marker_of_a_dead_run_is_named(base, monkeypatch):
    hide_locks(monkeypatch)
    storage.make_folder(f"{base}/out")
    write(f"{base}/out/.publishing", b"a run that died")
    with pytest.raises(ConversionError, match=r"from a run that died.*remove \S+/out/.publishing"):
        publish_result(base, 1, overwrite=False)


def test_more_than_99999_shards_are_published_too(base):
    names = {"train-00000-of-100000.tfrecord", "train-99999-of-100000.tfrecord", "manifest.json"}
    publish_result(base, 1, False, names)
    assert shown(base) == names
    publish_result(base, 2, True, RESULT)
    assert shown(base) == RESULT


def test_a_whole_result_of_a_dead_run_stays_and_half_of_one_goes(tmp_path):
    base = str(tmp_path)
    publish_result(base, 1, overwrite=False)
    whole, half = (tmp_path / "out" / f".in-progress-{name}" for name in ("whole", "half"))
    for folder in (whole, half):
        shutil.copytree(tmp_path / "out", folder)
        with leases.owned(str(folder)):
            pass
    (half / "train-00000-of-00002.tfrecord").unlink()
    assert remove_dead(f"{base}/out") == [str(half)]
    assert abandoned(f"{base}/out") == [str(whole)]


def test_an_interrupt_while_publishing_does_not_stand_in_the_way_of_the_next_run(base, monkeypatch):
    move = storage.move

    def interrupted(source, target, names):
        move(source, target, names)
        if target.endswith("/out"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "move", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(base)
    assert shown(base) == RESULT - {"manifest.json"}
    assert run(base).splits["train"].examples == 8
    assert shown(base) == RESULT


def test_names_with_pattern_letters_are_taken_as_they_are(tmp_path):
    folder = tmp_path / "run [1] *"
    folder.mkdir()
    run(str(folder))
    assert shown(str(folder)) == RESULT


def test_a_full_disk_is_told(base, monkeypatch, capfd):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lab_utils.convert.records.frame", full)
    with pytest.raises(ConversionError, match=r"No space left on device; .* Free are .* MB in"):
        run(base)
    assert storage.list_names(f"{base}/out") == set()
    assert "Traceback" not in capfd.readouterr().err
