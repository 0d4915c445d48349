"""The whole job, photographs to a page of pictures, as `make flowers` runs it."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from frozen import entries, same

from lab_utils import convert, datasets
from lab_utils.common import interrupts
from lab_utils.estimator import tf
from lab_utils.flowers import __main__ as command
from lab_utils.flowers import port, predict, settings, task

COMMAND = [sys.executable, "-m", "lab_utils.flowers"]


@pytest.fixture
def job(monkeypatch, capsys):
    """Runs the job in this process; returns its status and what it printed and complained of."""
    monkeypatch.setattr(interrupts, "as_ctrl_c", lambda: None)
    monkeypatch.setattr(task, "prepare", lambda: None)

    def run(data: Path, output_dir: Path, *flags: str) -> tuple[int, str, str]:
        arguments = ["flowers", f"--data={data}", f"--output_dir={output_dir}", *flags]
        monkeypatch.setattr("sys.argv", arguments)
        try:
            return command.main(), *capsys.readouterr()
        except SystemExit as end:
            return end.code, *capsys.readouterr()

    return run


def test_photographs_become_a_page_and_a_second_run_goes_on(
    tiny_photos, tmp_path, job, monkeypatch
):
    data = Path(shutil.copytree(tiny_photos, tmp_path / "my [own] flowers"))
    (data / "LICENSE.txt").write_text("Drawn for this test.")
    photograph = next((data / "roses").glob("*.jpg"))
    (data / "roses" / "a text.jpg").write_text("no photograph")
    (data / "tulips" / "cut.jpg").write_bytes(photograph.read_bytes()[:-300])
    flags = ["--train_batch_size=4", "--image_size=32", "--max_reject_share=0.2"]
    flags += ["--train_steps=2"]
    paths = ["--data", data, "--output_dir", tmp_path / "out"]
    first = subprocess.run(
        [*COMMAND, *paths, *flags],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
    )
    assert first.returncode == 0, first.stderr
    assert "Ready for v2:2x2" in first.stdout
    assert not re.search("(?i)warning|deprecat|traceback", first.stdout + first.stderr)

    page = Path(re.search(r"Open (.*index\.html)", first.stdout)[1])
    assert (tmp_path / "out") in page.parents
    text = page.read_text()
    for name in re.findall(r'src="(.*?)"', text):
        assert (page.parent / name).stat().st_size > 5_000
    for part in ("LICENSE.txt", "After 2 steps", "2 of all photographs cannot be opened"):
        assert part in text

    def there() -> dict[str, int]:
        folders = (page.parents[1] / "records", page.parents[1] / "run" / "export")
        return {path.name: path.stat().st_mtime_ns for f in folders for path in f.iterdir()}

    before = there()
    ready = SimpleNamespace(verdict_sentence="", write_html=Path.touch)
    monkeypatch.setattr(port, "report", lambda *_: ready)  # it was above
    status, printed, _ = job(data, tmp_path / "out", *flags)
    assert status == 0
    assert "is converted already" in printed and "Going on from step 2 of 2" in printed
    assert there() == before  # no record and no export is new

    (data / "roses" / "new.jpg").write_bytes(photograph.read_bytes() + b"new")
    status, _, complaint = job(data, tmp_path / "out", *flags)
    assert status == 1 and "has different contents" in complaint
    shutil.rmtree(page.parents[1] / "csv")
    status, _, complaint = job(data, tmp_path / "out", *flags)
    assert status == 1 and "results from other photographs" in complaint


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


@pytest.mark.parametrize("flag", ["--train_steps=none", "--train_stpes=4"])
def test_a_mistaken_training_flag_is_refused_before_the_work(tmp_path, job, flag):
    status, _, complaint = job(tmp_path, tmp_path / "out", flag)
    assert status == 2 and flag.split("=")[0].strip("-") in complaint
    assert not (tmp_path / "out").exists()


def test_photographs_that_cannot_be_used_stop_the_job(tiny_photos, tmp_path, job):
    data = Path(shutil.copytree(tiny_photos, tmp_path / "photographs"))
    (data / "roses" / "a text.jpg").write_text("no photograph")
    status, _, complaint = job(data, tmp_path / "out")
    assert status == 1 and "a text.jpg" in complaint and "--max_reject_share" in complaint
    status, _, complaint = job(data / "roses", tmp_path / "out")
    assert status == 1 and complaint.startswith("flowers: ") and "no photographs" in complaint


def test_an_interrupted_job_says_that_the_same_command_goes_on(tiny_photos, tmp_path):
    child = subprocess.Popen(
        [*COMMAND, "--data", tiny_photos, "--output_dir", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "==" not in child.stdout.readline():  # a stage begins
        assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    said = child.communicate()[1]
    assert child.returncode == 130
    assert "flowers: interrupted; the same command goes on where it was." in said
    assert "Traceback" not in said
