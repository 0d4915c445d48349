"""The whole job, photographs to a page of pictures, as `make flowers` runs it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils import convert, datasets
from lab_utils.flowers import page, settings, task

PHOTOGRAPHS = Path(__file__).parents[2] / "shared" / "flower_photos"


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
    flags = ["--train_batch_size=4", "--image_size=32"]
    first = job(data, tmp_path / "out", "--train_steps=4", *flags)
    assert first.returncode == 0, first.stderr
    assert re.search(r"at most [\d,]+ MiB resident", first.stdout)
    assert not re.search("(?i)warning|deprecat|traceback", first.stdout + first.stderr)

    page = Path(re.search(r"Open (.*index\.html)", first.stdout)[1])
    assert (tmp_path / "out") in page.parents
    for name in re.findall(r'src="(.*?)"', page.read_text()):
        assert (page.parent / name).stat().st_size > 5_000
    assert "LICENSE.txt" in page.read_text()
    assert "After 4 steps" in page.read_text()
    facts = json.loads((page.parents[1] / "facts.json").read_text())
    assert all("measured here" in fact for fact in facts.values())

    records = page.parents[1] / "records"
    before = {file.name: file.stat().st_mtime_ns for file in records.iterdir()}
    second = job(data, tmp_path / "out", "--train_steps=6", *flags)
    assert second.returncode == 0, second.stderr
    assert "is converted already" in second.stdout
    assert "Going on from step 4 of 6" in second.stdout
    assert {file.name: file.stat().st_mtime_ns for file in records.iterdir()} == before
    assert "After 6 steps" in page.read_text()


def test_a_stage_that_fails_stops_the_job_and_says_which(tiny_photos, tmp_path):
    ran = job(tiny_photos, tmp_path / "out", "--train_steps=none")
    assert ran.returncode != 0
    assert "invalid int value: 'none'" in ran.stderr
    assert "stopped, train, evaluate, export did not succeed" in ran.stderr
    assert "Traceback" not in ran.stderr


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
