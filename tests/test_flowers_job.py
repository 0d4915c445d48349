"""The whole job, photographs to a page of pictures, as `make flowers` runs it."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from frozen import entries, same

from lab_utils import convert, datasets
from lab_utils.estimator import tf
from lab_utils.flowers import page, predict, settings, task

ROOT = Path(__file__).parents[1]
PHOTOGRAPHS = ROOT.parent / "shared" / "flower_photos"


def job(data: Path, output_dir: Path, *flags: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "lab_utils.flowers", "--data", data]
    return subprocess.run(
        [*command, "--output_dir", output_dir, "--eval_steps_between=2", *flags],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
    )


def test_photographs_become_a_page_and_a_second_run_goes_on(tiny_photos, tmp_path):
    data = Path(shutil.copytree(tiny_photos, tmp_path / "my [own] flowers"))
    (data / "LICENSE.txt").write_text("Drawn for this test.")
    photograph = next((data / "roses").glob("*.jpg"))
    (data / "roses" / "a text.jpg").write_text("no photograph")
    (data / "tulips" / "cut.jpg").write_bytes(photograph.read_bytes()[:-300])
    flags = ["--train_batch_size=4", "--image_size=32", "--max_reject_share=0.2"]
    first = job(data, tmp_path / "out", "--train_steps=4", *flags)
    assert first.returncode == 0, first.stderr
    assert re.search(r"At most [\d,]+ MiB", first.stdout)
    assert not re.search("(?i)warning|deprecat|traceback", first.stdout + first.stderr)

    page = Path(re.search(r"Open (.*index\.html)", first.stdout)[1])
    assert (tmp_path / "out") in page.parents
    for name in re.findall(r'src="(.*?)"', page.read_text()):
        assert (page.parent / name).stat().st_size > 5_000
    assert "LICENSE.txt" in page.read_text()
    assert "After 4 steps" in page.read_text()
    assert "without 2 that cannot be opened" in page.read_text()

    records = page.parents[1] / "records"
    before = {file.name: file.stat().st_mtime_ns for file in records.iterdir()}
    second = job(data, tmp_path / "out", "--train_steps=6", *flags)
    assert second.returncode == 0, second.stderr
    assert "is converted already" in second.stdout
    assert "Going on from step 4 of 6" in second.stdout
    assert {file.name: file.stat().st_mtime_ns for file in records.iterdir()} == before
    assert "After 6 steps" in page.read_text()
    exports = list(page.parents[1].glob("run/export/*"))
    third = job(data, tmp_path / "out", "--train_steps=6", *flags)
    assert third.returncode == 0, third.stderr
    assert list(page.parents[1].glob("run/export/*")) == exports  # nothing new


def test_the_bundled_pictures_are_classified_as_ever(tmp_path):
    """A short job with its seed, twice the same on one machine; another adds in another order."""
    photos = datasets.bundled()
    lists = photos.train_csv, photos.eval_csv, photos.labels_file
    records = convert.convert(*lists, tmp_path / "records").folder
    flags = {
        "train_data_path": f"{records}/train-*",
        "eval_data_path": f"{records}/eval-*",
        "output_dir": tmp_path / "run",
        "train_steps": 200,
        "train_batch_size": 16,
        "eval_steps_between": 200,
        "image_size": 64,
    }
    result = task.run(settings.parse([f"--{name}={value}" for name, value in flags.items()]))
    with photos.eval_csv.open(newline="") as file:
        names = [row[0] for row in csv.reader(file)]
    found, _ = predict.predict(result["saved_model"], [photos.eval_csv.parent / n for n in names])
    answer = {
        "images": result["images"],
        "accuracy": round(result["accuracy"], 3),
        "classes": {name: each.class_name for name, each in zip(names, found, strict=True)},
    }
    if machine() not in entries("flowers") and "FREEZE" not in os.environ:
        pytest.skip(f"nothing is frozen for {machine()}")
    same("flowers", machine(), answer)


def machine() -> str:
    """What the order of additions hangs on: TensorFlow, cores and their vectors."""
    cpu = Path("/proc/cpuinfo")
    vectors = cpu.exists() and "avx512f" in cpu.read_text()
    return f"TensorFlow {tf.__version__}, {os.cpu_count()} cores, AVX-512: {vectors}"


def test_photographs_that_cannot_be_read_stop_the_job(tiny_photos, tmp_path):
    data = Path(shutil.copytree(tiny_photos, tmp_path / "photographs"))
    (data / "roses" / "a text.jpg").write_text("no photograph")
    ran = job(data, tmp_path / "out")
    assert ran.returncode == 1
    assert "a text.jpg" in ran.stderr and "--max_reject_share" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("flag", ["--train_steps=none", "--train_stpes=4", "--learning_rate=nan"])
def test_a_mistaken_training_flag_is_told_before_the_work(tmp_path, flag):
    ran = job(tmp_path, tmp_path / "out", flag)
    assert ran.returncode == 2
    assert flag.split("=")[0].strip("-") in ran.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_job_says_that_the_same_command_goes_on(tiny_photos, tmp_path, number):
    command = [sys.executable, "-m", "lab_utils.flowers", "--data", tiny_photos]
    child = subprocess.Popen(
        [*command, "--output_dir", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while "==" not in child.stdout.readline():  # a stage begins
        assert child.poll() is None
    child.send_signal(number)
    said = child.communicate()[1]
    assert child.returncode == 130
    assert "flowers: interrupted; the same command goes on where it was." in said
    assert "Traceback" not in said


@pytest.mark.parametrize("names", [[], ["a.jpg", "b.jpg"]])
def test_a_folder_without_classes_is_one_true_sentence(tiny_photos, tmp_path, names):
    (tmp_path / "empty").mkdir()
    photograph = next(tiny_photos.glob("roses/*.jpg"))
    for name in names:
        shutil.copy(photograph, tmp_path / "empty" / name)
    ran = job(tmp_path / "empty", tmp_path / "out")
    assert ran.returncode == 1
    assert ran.stderr.startswith("flowers: ")
    assert "no photographs" in ran.stderr and "one for each class" in ran.stderr


def test_a_page_is_not_made_of_nothing(finished_run, tmp_path):
    (tmp_path / "absent.csv").write_text("absent.jpg,roses\n")
    with pytest.raises(RuntimeError, match="none of 1 photograph of"):
        page.make(finished_run[0], tmp_path / "absent.csv", tmp_path / "p", {}, "")


@pytest.mark.skipif(not PHOTOGRAPHS.is_dir(), reason=f"no photographs in {PHOTOGRAPHS}")
def test_real_photographs(tmp_path):
    """Two steps on the 900: sizes, colour spaces and JPEG kinds as they come."""
    photos = datasets.from_folder(PHOTOGRAPHS, tmp_path / "csv")
    records = tmp_path / "records"
    convert.convert(photos.train_csv, photos.eval_csv, photos.labels_file, records)
    flags = {"train_data_path": f"{records}/train-*", "eval_data_path": f"{records}/eval-*"}
    flags |= {"output_dir": tmp_path / "run", "train_steps": 2, "image_size": 64}
    result = task.run(settings.parse([f"--{name}={value}" for name, value in flags.items()]))
    assert result["labels"] == ["daisy", "dandelion", "roses", "sunflowers", "tulips"]
    assert result["images"] == 180
    made = page.make(tmp_path / "run", photos.eval_csv, tmp_path / "page", {}, "")
    assert "180 held-out photographs" in made.read_text()
