"""Photographs: the split, a folder of one's own, the bundled set, the download, a slow bucket."""

import csv
import errno
import hashlib
import io
import os
import random
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from lab_utils import datasets
from lab_utils.common import command
from lab_utils.datasets import DatasetError, download, photos
from lab_utils.datasets.__main__ import main
from lab_utils.datasets.slow_bucket import SlowBucket


def rows(csv_file: Path) -> list[tuple[str, str]]:
    with csv_file.open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file)]


def fill(folder: Path, contents: dict[str, list[bytes]], seed: int = 0) -> Path:
    """Class folders whose files have names, and were made in an order, that depend on the seed."""
    shuffler = random.Random(seed)
    jobs = [(label, content) for label, files in contents.items() for content in files]
    shuffler.shuffle(jobs)
    for number, (label, content) in enumerate(jobs):
        (folder / label).mkdir(parents=True, exist_ok=True)
        (folder / label / f"{shuffler.randrange(10**6)}_{number}.jpg").write_bytes(content)
    return folder


def some(label: str, count: int) -> list[bytes]:
    return [f"{label} {number}".encode() for number in range(count)]


def sides(photographs: datasets.Photos) -> tuple[list[bytes], list[bytes]]:
    """The bytes of the photographs on each side, in the order of the rows."""
    files = (photographs.train_csv, photographs.eval_csv)
    return tuple([(file.parent / path).read_bytes() for path, _ in rows(file)] for file in files)


class TestSplit:
    def test_depends_on_bytes_alone(self, tmp_path):
        contents = {"b": some("b", 30), "a": some("a", 17)}
        one = datasets.from_folder(fill(tmp_path / "one", contents, seed=1), tmp_path / "out1")
        two = datasets.from_folder(
            fill(tmp_path / "elsewhere/two", contents, seed=2), tmp_path / "out2"
        )
        assert sides(one) == sides(two)

    def test_counts_are_exact_for_each_class(self, tmp_path):
        contents = {"a": some("a", 180), "b": some("b", 50), "c": some("c", 2)}
        split = datasets.from_folder(fill(tmp_path / "in", contents), tmp_path / "out")
        train, evaluation = (
            [label for _, label in rows(f)] for f in (split.train_csv, split.eval_csv)
        )
        assert [train.count(c) for c in "abc"] == [144, 40, 1]
        assert [evaluation.count(c) for c in "abc"] == [36, 10, 1]
        assert split.labels_file.read_text() == "a\nb\nc\n"
        assert train[:40] != sorted(train[:40])  # the classes are mixed

    def test_a_new_photograph_moves_few_others(self, tmp_path):
        contents = {"a": some("a", 100), "b": some("b", 100)}
        before = datasets.from_folder(fill(tmp_path / "in", contents), tmp_path / "before")
        contents["a"].append(b"another")
        after = datasets.from_folder(fill(tmp_path / "in2", contents), tmp_path / "after")
        moved = set(sides(before)[1]) ^ set(sides(after)[1])
        assert len(moved) <= 2

    @pytest.mark.parametrize("trial", range(2))
    def test_copies_are_never_on_both_sides(self, tmp_path, trial, capsys):
        rng = random.Random(trial)
        contents = {label: rng.choices(some("x", 60), k=25) + some(label, 25) for label in "abc"}
        split = datasets.from_folder(fill(tmp_path / "in", contents, trial), tmp_path / "out")
        train, evaluation = sides(split)
        assert not set(train) & set(evaluation)
        assert len(train) + len(evaluation) == 150  # and none is lost
        assert [label for _, label in rows(split.eval_csv)].count("a") == 10
        text = capsys.readouterr().out
        across = {x for x in contents["a"] if x in contents["b"] or x in contents["c"]}
        across |= set(contents["b"]) & set(contents["c"])
        assert text.count("the same photograph is in more than one class") == len(across) > 0
        assert not across & set(evaluation)


class TestFolder:
    def test_what_is_left_out_is_named(self, tmp_path, capsys):
        folder = fill(tmp_path / "in", {"a": some("a", 5), "b": some("b", 5)})
        others = [
            "a/notes.txt",
            "a/.hidden.jpg",
            "a/deeper/x.jpg",
            "c/notes.txt",
            "b/line\nbreak.jpg",
        ]
        photographs = [
            "b/UPPER.JPEG",
            "b/browser.jfif",
            "b/browser.webp",
            "b/narrow\u202fspace.jpg",
        ]
        for name in [*others, *photographs, ".git/x.jpg", "loose.jpg"]:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(name.encode())
        (folder / "b" / "empty.JPG").touch()
        (folder / "a" / "dangling.jpg").symlink_to("nowhere.jpg")
        os.mkfifo(folder / "b" / "pipe.jpg")
        before = sorted(folder.rglob("*"))
        split = datasets.from_folder(folder, tmp_path / "out")
        assert len(rows(split.train_csv) + rows(split.eval_csv)) == 14
        text = capsys.readouterr().out
        assert (
            "left out 8 files" in text and "'a/.hidden.jpg', 'a/dangling.jpg', 'a/deeper'" in text
        )
        assert sorted(folder.rglob("*")) == before

    @pytest.mark.parametrize("name", [b"line\nbreak", b"not \xff utf-8"])
    def test_a_path_that_no_row_can_hold_is_refused(self, tmp_path, name):
        folder = fill(tmp_path / "in", {"a": some("a", 5), "b": some("b", 5)})
        moved = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        folder.rename(moved)
        with pytest.raises(DatasetError, match="cannot be written into a CSV row"):
            datasets.from_folder(moved, tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_names_with_commas_quotes_and_umlauts(self, tmp_path):
        folder = fill(tmp_path / "in", {'Löwenzahn, "gelb"': some("a", 5), "b": some("b", 5)})
        split = datasets.from_folder(folder, tmp_path / "out")
        assert {label for _, label in rows(split.train_csv)} == {'Löwenzahn, "gelb"', "b"}
        assert all(Path(path).is_file() for path, _ in rows(split.train_csv))

    @pytest.mark.parametrize(
        ("contents", "message"),
        [
            (None, "is not a folder"),
            ({}, "holds no photographs in class folders"),
            ({"a": some("a", 5)}, r"only one class \(a\)"),
            ({"a": some("a", 5), " b": some("b", 5)}, "rename it in UTF-8"),
            ({"train/a": some("a", 5), "train/b": some("b", 5)}, "no photographs in class folders"),
            ({"a": some("a", 5), "b": some("a", 5)}, "leaves nothing to evaluate with"),
            ({"a": some("a", 5), "lone": some("l", 1)}, "'lone' leaves nothing to train on"),
        ],
    )
    def test_not_class_folders(self, tmp_path, contents, message):
        if contents is not None:
            (tmp_path / "in").mkdir()
        with pytest.raises(DatasetError, match=message):
            datasets.from_folder(fill(tmp_path / "in", contents or {}), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_class_in_both_forms_of_unicode_is_one(self, tmp_path):
        contents = {"u\u0308": some("a", 5), "\u00fc": some("b", 5), "c": some("c", 5)}
        datasets.from_folder(fill(tmp_path / "in", contents), tmp_path / "out")
        assert (tmp_path / "out" / "labels.txt").read_text() == "c\n\u00fc\n"

    def test_output_within_the_photographs_is_refused(self, tmp_path):
        folder = fill(tmp_path / "in", {"a": some("a", 5), "b": some("b", 5)})
        for inside in (folder, folder / "out"):
            with pytest.raises(DatasetError, match="must not change"):
                datasets.from_folder(folder, inside)

    def test_other_csv_files_are_not_overwritten(self, tmp_path):
        folder = fill(tmp_path / "in", {"a": some("a", 9), "b": some("b", 9)})
        split = datasets.from_folder(folder, tmp_path / "out")
        assert datasets.from_folder(folder, tmp_path / "out") == split  # the same again is welcome
        before = split.eval_csv.read_bytes()
        with pytest.raises(DatasetError, match="Nothing was overwritten"):
            datasets.from_folder(fill(folder, {"c": some("c", 9)}), tmp_path / "out")
        assert split.eval_csv.read_bytes() == before
        assert sorted(os.listdir(tmp_path / "out")) == ["eval.csv", "labels.txt", "train.csv"]


class TestBundled:
    @pytest.mark.parametrize("name", ["flowers", "shakespeare"])
    def test_checksums_hold_and_cover_every_file(self, name):
        folder = photos.files_folder() / name
        lines = (folder / "SHA256SUMS").read_text().splitlines()
        sums = {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*")
            if path.is_file() and "make" not in path.parts and path.name != "SHA256SUMS"
        }
        assert sums == dict(line.split("  ")[::-1] for line in lines)

    def test_split_is_that_of_the_bytes(self):
        bundled = datasets.bundled()
        train, evaluation = photos.split(photos.scan(bundled.folder))
        for side, file in ((train, bundled.train_csv), (evaluation, bundled.eval_csv)):
            expected = [(f"{photo.label}/{photo.path.name}", photo.label) for photo in side]
            assert rows(file) == expected
        assert (len(train), len(evaluation)) == (240, 60)
        assert bundled.labels_file.read_text().split() == sorted({photo.label for photo in train})

    def test_colour_alone_does_not_solve_it_and_what_cannot_be_opened_counts_nowhere(
        self, tmp_path
    ):
        """Measured: 0.40; guessing gives 0.2, and a small convolutional network 0.80."""
        bundled = datasets.bundled()
        huge = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0\0\x75\x30" * 2 + b"\x08\2" + bytes(9)
        cut = next((bundled.folder / "roses").glob("*.jpg")).read_bytes()[:1500]
        bad = {"cut.jpg": cut, "text.jpg": b"no photograph", "30000_by_30000.png": huge}
        shutil.copytree(bundled.folder, tmp_path, dirs_exist_ok=True)
        for name, content in bad.items():
            (tmp_path / name).write_bytes(content)
        with (tmp_path / "train.csv").open("a") as file:
            file.writelines(f"{name},roses\n" for name in [*bad, "missing.jpg"])
        baseline = datasets.histogram_baseline(tmp_path / "train.csv", tmp_path / "eval.csv")
        assert 0.25 < baseline.accuracy < 0.5 and baseline.left_out == 4

    def test_a_baseline_of_nothing_is_an_error(self, tmp_path):
        (tmp_path / "train.csv").write_text("a.jpg,a\nb.jpg,b\n")
        with pytest.raises(DatasetError, match="too few photographs can be opened"):
            datasets.histogram_baseline(tmp_path / "train.csv", tmp_path / "train.csv")

    def test_of_the_wheel_or_absent(self, monkeypatch, tmp_path):
        monkeypatch.setattr(photos, "IN_WHEEL", photos.IN_CHECKOUT)
        monkeypatch.setattr(photos, "IN_CHECKOUT", tmp_path)
        assert datasets.bundled().folder == photos.IN_WHEEL / "flowers"
        play = datasets.play()
        assert len(play) == 125_179 and play.endswith("[Exeunt]\n")
        monkeypatch.setattr(photos, "IN_WHEEL", tmp_path)
        for find in (datasets.bundled, datasets.play):
            with pytest.raises(DatasetError, match="install the package again"):
                find()


class TestDownload:
    @pytest.fixture
    def archive(self, tmp_path, monkeypatch) -> Path:
        """An archive like that of flower_photos, at an address of this machine."""
        photographs = fill(
            tmp_path / "flower_photos", {c: some(c, 10) for c in ("daisy", "tulips")}
        )
        (photographs / "LICENSE.txt").write_text("CC-BY by Ann")
        path = tmp_path / "archive.tgz"
        with tarfile.open(path, "w:gz") as tar:
            tar.add(photographs, "flower_photos")
        monkeypatch.setattr(download, "URL", path.as_uri())
        monkeypatch.setattr(download, "SHA256", photos.file_sha256(path))
        return path

    def test_what_was_cut_off_is_downloaded_again_and_what_is_there_is_not(
        self, archive, tmp_path, capsys
    ):
        (tmp_path / "to").mkdir()
        (tmp_path / "to" / "flower_photos.tgz").write_bytes(archive.read_bytes()[:500])
        first = datasets.download_flower_photos(tmp_path / "to")
        archive.unlink()
        assert datasets.download_flower_photos(tmp_path / "to") == first
        assert (len(rows(first.train_csv)), len(rows(first.eval_csv))) == (16, 4)
        assert all((first.train_csv.parent / path).is_file() for path, _ in rows(first.train_csv))
        licence = re.search("Their names are in (.*)", capsys.readouterr().out)[1]
        assert Path(licence).read_text() == "CC-BY by Ann"

    def test_another_archive_or_none_is_one_sentence(self, archive, tmp_path):
        archive.write_bytes(b"a login page")
        with pytest.raises(DatasetError, match=r"file hash does not match .*[^.]\. Call again"):
            datasets.download_flower_photos(tmp_path / "to")
        archive.unlink()
        with pytest.raises(DatasetError, match=r"No such file .*[^.]\. Call again"):
            datasets.download_flower_photos(tmp_path / "to")
        assert not (tmp_path / "to" / "train.csv").exists()


class TestCommandLine:
    def test_folder(self, tmp_path, capsys):
        folder = fill(tmp_path / "in", {"a": some("a", 5), "b": some("b", 5)})
        assert main(["folder", str(folder), "--output_dir", str(tmp_path / "out")]) == 0
        assert str(tmp_path / "out" / "train.csv") in capsys.readouterr().out
        assert len(rows(tmp_path / "out" / "eval.csv")) == 2

    @pytest.mark.parametrize(
        "flags", ["absent --output_dir=out", "in --output_dir=a_file", "in --output_dir=loop"]
    )
    def test_an_error_is_one_line(self, tmp_path, monkeypatch, capsys, flags):
        monkeypatch.chdir(tmp_path)
        fill(Path("in"), {"a": some("a", 5), "b": some("b", 5)})
        Path("a_file").touch()
        Path("loop").symlink_to("loop")
        assert command.status_of(lambda: main(["folder", *flags.split()])) == 1
        said = capsys.readouterr().err
        place = tmp_path / flags.partition("=")[2]
        assert said.startswith("error: " if flags.startswith("absent") else f"{place}: ")
        assert said.count("\n") == 1 and "Errno" not in said

    def test_an_output_without_a_reader_is_left_to_the_command(self, tmp_path, monkeypatch):
        folder = fill(tmp_path / "in", {"a": some("a", 5), "b": some("b", 5)})

        class Closed(io.StringIO):
            def write(self, text):
                raise BrokenPipeError(errno.EPIPE, "Broken pipe")

        monkeypatch.setattr(sys, "stdout", Closed())
        with pytest.raises(BrokenPipeError):
            main(["folder", str(folder), "--output_dir", str(tmp_path / "out")])


def test_each_request_waits_and_streams_wait_together(tmp_path):
    for name in "abcd":
        (tmp_path / name).write_bytes(bytes(range(200)))
    bucket = SlowBucket(tmp_path, latency=0.02)
    assert bucket.read("a", 195, 50) == bytes(range(195, 200))
    assert bucket.read_all("abcd", 100) >= 8 * 0.02
    assert bucket.read_all("abcd", 200, streams=4) < bucket.read_all("abcd", 200)
