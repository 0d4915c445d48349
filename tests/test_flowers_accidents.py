"""As real processes: the whole job killed in each stage, full disks, read-only folders, two trainings."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

ENVIRONMENT = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "1"}
TASK = [sys.executable, "-m", "lab_utils.flowers.task"]
MOUNTS = shutil.which("unshare") and not subprocess.run(["unshare", "-rm", "true"]).returncode
needs_mounts = pytest.mark.skipif(not MOUNTS, reason="no mounts for this user here")


def run(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        list(map(str, command)), env=ENVIRONMENT, capture_output=True, text=True, **options
    )


def last_line(ran: subprocess.CompletedProcess) -> str:
    return ran.stderr.strip().splitlines()[-1]


STAGES = (
    "Photographs to TFRecords",
    "Train, evaluate, export",
    "The same port, through the TPU compiler",
    "Predictions and a page of pictures",
)


def test_the_whole_job_killed_in_each_stage_and_called_again_at_once(tiny_photos, tmp_path):
    chance = random.Random(int(os.environ.get("SEED", "0")))
    command = [sys.executable, "-m", "lab_utils.flowers", "--data", tiny_photos]
    command += ["--output_dir", tmp_path / "out", "--train_steps=8", "--eval_steps_between=2"]
    command += ["--train_batch_size=4", "--image_size=32"]
    struck = []
    for stage in STAGES:
        child = subprocess.Popen(
            list(map(str, command)),
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in child.stdout:
            if line.startswith(f"== {stage}"):
                break
        time.sleep(chance.uniform(0, 6 if stage != STAGES[2] else 20))
        if child.poll() is None:
            child.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]))
            struck.append(stage)
            print(f"killed in: {stage}", flush=True)
        child.communicate()
    ended = run(command)
    assert ended.returncode == 0, ended.stderr
    assert "converted already" in ended.stdout and "Going on from step" in ended.stdout
    (job,) = (tmp_path / "out").glob("*/*/")
    result = json.loads((job / "run" / "result.json").read_text())
    assert result["step"] == 8 and result["images"] == 6
    assert (job / "page" / "index.html").exists() and (job / "page" / "dry_run.html").exists()
    left = [each.name for each in job.rglob("*") if re.search(r"partial|in-progress", each.name)]
    print(f"\nkilled in {len(struck)} of {len(STAGES)} stages; left behind: {left or 'nothing'}")


IN_A_SMALL_DISK = """
mount -t tmpfs -o size={size} none {disk} && "$0" "$@"; echo "status $?"
mount -o remount,size=200m {disk} && "$0" "$@"; echo "status $?"
cp -r {disk}/run {kept}
"""


@needs_mounts
@pytest.mark.parametrize("size", ["0.1m", "2m", "6m", "13m", "22m"])
def test_a_full_disk_is_a_sentence_and_with_room_the_same_command_goes_on(
    run_flags, finished_run, tmp_path, size
):
    size = f"{int(float(size[:-1]) * 1024)}k"
    (tmp_path / "disk").mkdir()
    script = IN_A_SMALL_DISK.format(size=size, disk=tmp_path / "disk", kept=tmp_path / "kept")
    flags = [*run_flags, f"--output_dir={tmp_path / 'disk' / 'run'}"]
    ran = run(["unshare", "-rm", "sh", "-c", script, *TASK, *flags])
    assert re.findall(r"status (\d+)", ran.stdout) == ["1", "0"], ran.stdout + ran.stderr
    assert "No space left on device" in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
    result = json.loads((tmp_path / "kept" / "result.json").read_text())
    assert result["confusion"] == finished_run[1]["confusion"]
    print(f"\n{size}: {re.findall('(Going on from step.*)', ran.stdout) or 'from the beginning'}")


@needs_mounts
def test_read_only_folders_are_a_sentence(run_flags, tiny_photos, tmp_path):
    script = f'mount -t tmpfs -o ro none {tmp_path} && "$0" "$@"'
    below = ["unshare", "-rm", "sh", "-c", script]
    trained = run([*below, *TASK, *run_flags, f"--output_dir={tmp_path / 'run'}"])
    job = [sys.executable, "-m", "lab_utils.flowers", "--data", tiny_photos]
    whole = run([*below, *job, "--output_dir", tmp_path / "out"])
    for ran in (trained, whole):
        assert ran.returncode == 1 and "Read-only file system" in last_line(ran), ran.stderr
        assert "Traceback" not in ran.stderr


def test_of_two_trainings_at_once_one_is_refused(run_flags, finished_run, tmp_path):
    command = [*TASK, *run_flags, f"--output_dir={tmp_path / 'run'}"]
    both = [
        subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [each.communicate()[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 1], said
    refused = said[[each.returncode for each in both].index(1)].strip().splitlines()[-1]
    assert "is in use by process" in refused
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["confusion"] == finished_run[1]["confusion"]
