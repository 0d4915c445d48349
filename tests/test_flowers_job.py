"""The whole job, photographs to a page of pictures, as `make flowers` runs it."""

import csv
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from frozen import entries, same

from lab_utils import convert, datasets
from lab_utils.common import files
from lab_utils.estimator import tf
from lab_utils.flowers import __main__ as flowers_main
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
    assert re.search(r"At most [\d,]+ MiB resident", first.stdout)
    assert not re.search("(?i)warning|deprecat|traceback", first.stdout + first.stderr)

    page = Path(re.search(r"Open (.*index\.html)", first.stdout)[1])
    assert (tmp_path / "out") in page.parents
    for name in re.findall(r'src="(.*?)"', page.read_text()):
        assert (page.parent / name).stat().st_size > 5_000
    assert "LICENSE.txt" in page.read_text()
    assert "After 4 steps" in page.read_text()
    facts = json.loads((page.parents[1] / "facts.json").read_text())
    assert all("measured here" in fact for fact in facts.values())
    assert any("without 2 that cannot be opened" in fact for fact in facts.values())

    records = page.parents[1] / "records"
    before = {file.name: file.stat().st_mtime_ns for file in records.iterdir()}
    second = job(data, tmp_path / "out", "--train_steps=6", *flags)
    assert second.returncode == 0, second.stderr
    assert "is converted already" in second.stdout
    assert "Going on from step 4 of 6" in second.stdout
    assert {file.name: file.stat().st_mtime_ns for file in records.iterdir()} == before
    assert "After 6 steps" in page.read_text()


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


def test_a_stage_that_fails_stops_the_job_and_says_which(tiny_photos, tmp_path):
    data = Path(shutil.copytree(tiny_photos, tmp_path / "photographs"))
    (data / "roses" / "a text.jpg").write_text("no photograph")
    ran = job(data, tmp_path / "out")
    assert ran.returncode == 1
    assert "a text.jpg" in ran.stderr and "--max_reject_share" in ran.stderr
    assert "stopped, photographs to tfrecords did not succeed" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("flag", ["--train_steps=none", "--train_stpes=4", "--learning_rate=nan"])
def test_a_mistaken_training_flag_is_told_before_the_work(tmp_path, flag):
    ran = job(tmp_path, tmp_path / "out", flag)
    assert ran.returncode == 2
    assert flag.split("=")[0].strip("-") in ran.stderr
    assert not (tmp_path / "out").exists()


STAGE = """
import os, signal, subprocess, sys, time
from lab_utils.common import files
from lab_utils.flowers import stage
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that nohup started inherit that it is ignored
with files.locked(sys.argv[1] + "/.lock") as lock:
    stage.run("slow_module", sys.argv[1], lock=lock)
"""
SLOW = """
import os, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
try:
    (folder / "pid").write_text(str(os.getpid()))
    time.sleep(600)
except KeyboardInterrupt:
    (folder / "cleaned up").write_text("")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_stage_ends_with_the_job_and_holds_its_lock_until_then(tmp_path, number):
    (tmp_path / "slow_module.py").write_text(SLOW)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", STAGE, tmp_path], env=environment)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert parent.poll() is None
        time.sleep(0.05)
    with pytest.raises(files.InUseError):
        files.locked(tmp_path / ".lock").__enter__()
    parent.send_signal(number)
    parent.wait(timeout=60)
    with files.locked(tmp_path / ".lock", wait=60):  # free once the stage has ended
        assert (tmp_path / "cleaned up").exists()


def test_the_job_hears_sigterm_and_says_that_the_same_command_goes_on(tiny_photos, tmp_path):
    command = [sys.executable, "-m", "lab_utils.flowers", "--data", tiny_photos]
    child = subprocess.Popen(
        [*command, "--output_dir", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "==" not in child.stdout.readline():  # a stage begins
        assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    said = child.communicate()[1]
    assert child.returncode == 1
    assert "flowers: interrupted; the same command goes on where it was." in said
    assert "Traceback" not in said


def test_a_folder_without_photographs_is_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    ran = job(tmp_path / "empty", tmp_path / "out")
    assert ran.returncode == 1
    assert ran.stderr.startswith("flowers: ")
    assert "no photographs" in ran.stderr


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


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(monkeypatch, capsys):
    def refused(*arguments):
        raise OSError(errno.EROFS, "Read-only file system", "out")

    monkeypatch.setattr(sys, "argv", ["flowers"])
    monkeypatch.setattr(flowers_main, "_carry_out", refused)
    with pytest.raises(SystemExit, match="Read-only file system: out; name a folder elsewhere"):
        flowers_main.main()


def test_a_stage_whose_job_has_ended_before_it_begins_says_nothing(tmp_path):
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(60)\nprint('slept')")
    for _ in range(5):  # a new process each: where the end reaches it differs
        stage = subprocess.run(
            [sys.executable, "-m", "lab_utils.flowers.stage", "sleeps"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert (stage.returncode, stage.stdout + stage.stderr) == (130, "")


def test_two_signals_at_once_end_a_stage_without_a_word(tmp_path):
    """As Ctrl-C, and the job that ends because of it."""
    both = "import os, signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2, 15])\n"
    both += "for each in (2, 15):\n    os.kill(os.getpid(), each)\n"
    (tmp_path / "both.py").write_text(
        both + "signal.pthread_sigmask(signal.SIG_UNBLOCK, [2, 15])\ntime.sleep(60)"
    )
    stage = subprocess.Popen(
        [sys.executable, "-m", "lab_utils.flowers.stage", "both"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))},
        stdin=subprocess.PIPE,  # held open, as the job does
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (stage.communicate()[1], stage.returncode) == ("", 130)


SWALLOWS = """
import os, signal, sys, time
from lab_utils.common import command
class Collected:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))  # Python hears the signal here, and swallows what is raised
def main():
    Collected()
    time.sleep(60)
    print("went on")
"""


@pytest.mark.parametrize(
    ("end", "says"), [("main()", ""), ("command.run(main)", "\ninterrupted\n")]
)
def test_a_signal_that_comes_while_garbage_is_collected_ends_a_stage(end, says, tmp_path):
    (tmp_path / "swallows.py").write_text(SWALLOWS + end)
    stage = subprocess.Popen(
        [sys.executable, "-m", "lab_utils.flowers.stage", "swallows"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))},
        stdin=subprocess.PIPE,  # held open, as the job does
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = stage.stdout.read() + stage.stderr.read()
    assert (stage.wait(timeout=60), said) == (130, says)
