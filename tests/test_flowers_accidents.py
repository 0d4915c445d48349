"""As real processes: the whole job killed at random moments, full disks.

KILLS=50 in the environment makes a long series of kills, SEED another one.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from test_flowers_task import assert_same_weights

pytestmark = pytest.mark.slow

ENVIRONMENT = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "1"}
TASK = [sys.executable, "-m", "lab_utils.flowers.task"]
MOUNTS = shutil.which("unshare") and not subprocess.run(["unshare", "-rm", "true"]).returncode
needs_mounts = pytest.mark.skipif(not MOUNTS, reason="no mounts for this user here")


def run(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        list(map(str, command)), env=ENVIRONMENT, capture_output=True, text=True, **options
    )


STEPS, BETWEEN = 24, 6
JOB = ["--train_steps=24", "--eval_steps_between=6", "--train_batch_size=4", "--image_size=32"]
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGKILL: -9}
MOMENTS = {"Photographs to TFRecords": 1, "Train, evaluate, export": 6, "The same port": 8}


def test_the_whole_job_killed_at_random_moments_goes_on_and_ends_whole(tiny_photos, tmp_path):
    """Most kills fall between two checkpoints; the end is that of an undisturbed job."""
    chance, kills = random.Random(int(os.environ.get("SEED", "0"))), Counter()
    command = [sys.executable, "-m", "lab_utils.flowers", f"--data={tiny_photos}", *JOB]
    for _ in range(int(os.environ.get("KILLS", "7"))):
        moment, number = chance.choice(list(MOMENTS)), chance.choice(list(SIGNALS))
        if list(tmp_path.glob("out/*/*/page/index.html")):
            shutil.rmtree(tmp_path / "out")
        log = tmp_path / "log"
        with log.open("w") as file:
            job = subprocess.Popen(
                [*command, f"--output_dir={tmp_path / 'out'}"],
                env=ENVIRONMENT,
                stdout=file,
                stderr=file,
            )
            while moment not in log.read_text() and job.poll() is None:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, MOMENTS[moment]))
            if job.poll() is None:
                kills[moment, number.name] += 1
                job.send_signal(number)
        said = log.read_text()
        assert job.wait(60) in (0, SIGNALS[number]) and "Traceback" not in said, said
    for name in ("out", "undisturbed"):
        whole = run([*command, f"--output_dir={tmp_path / name}"])
        assert whole.returncode == 0, whole.stderr
    disturbed, undisturbed = (
        next(tmp_path.glob(f"{name}/*/*/run")) for name in ("out", "undisturbed")
    )
    lines = [json.loads(line)["step"] for line in (disturbed / "history.jsonl").open()]
    assert lines == list(range(BETWEEN, STEPS + 1, BETWEEN))
    assert_same_weights(disturbed, undisturbed, STEPS)
    print(f"\n{sum(kills.values())} kills ({dict(kills)}): each went on, and it ended whole")


IN_A_SMALL_DISK = """
mount -t tmpfs -o size={size} none {disk} && "$0" "$@"; echo "status $?"
mount -o remount,size=200m {disk} && "$0" "$@"; echo "status $?"
cp -r {disk}/run {kept}
"""


@needs_mounts
@pytest.mark.parametrize("size", ["0.1m", "6m", "22m"])
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
