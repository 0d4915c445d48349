"""As real processes: the whole job and a training killed at random moments, full disks, little memory.

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
from test_flowers_task import checkpoints as checkpoint_steps

from lab_utils.flowers.checkpoints import damage

pytestmark = pytest.mark.slow

ENVIRONMENT = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "1"}
TASK = [sys.executable, "-m", "lab_utils.flowers.task"]
JOB_COMMAND = [sys.executable, "-m", "lab_utils.flowers"]
MOUNTS = shutil.which("unshare") and not subprocess.run(["unshare", "-rm", "true"]).returncode
needs_mounts = pytest.mark.skipif(not MOUNTS, reason="no mounts for this user here")


def run(command: list, **options) -> subprocess.CompletedProcess:
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True} | options
    return subprocess.run(list(map(str, command)), **options)


STEPS, BETWEEN = 24, 6
JOB = ["--train_steps=24", "--eval_steps_between=6", "--train_batch_size=4", "--image_size=32"]
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGKILL: -9}
MOMENTS = {"Photographs to TFRecords": 1, "Train, evaluate, export": 6, "The same port": 8}


def test_the_whole_job_killed_at_random_moments_goes_on_and_ends_whole(tiny_photos, tmp_path):
    """Most kills fall between two checkpoints; the end is that of an undisturbed job."""
    chance, kills = random.Random(int(os.environ.get("SEED", "0"))), Counter()
    command = [*JOB_COMMAND, f"--data={tiny_photos}", *JOB]
    for _ in range(int(os.environ.get("KILLS", "7"))):
        moment, number = chance.choice(list(MOMENTS)), chance.choice(list(SIGNALS))
        if list(tmp_path.glob("out/*/page/index.html")):
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
        next(tmp_path.glob(f"{name}/*/run")) for name in ("out", "undisturbed")
    )
    lines = [json.loads(line)["step"] for line in (disturbed / "history.jsonl").open()]
    assert lines == list(range(BETWEEN, STEPS + 1, BETWEEN))
    assert_same_weights(disturbed, undisturbed, STEPS)
    print(f"\n{sum(kills.values())} kills ({dict(kills)}): each went on, and it ended whole")


def test_killed_between_two_checkpoints_it_loses_only_the_steps_since_the_last(run_flags, tmp_path):
    """Each kill comes later than the one before; the end is that of an undisturbed run."""
    chance, kills, between = random.Random(int(os.environ.get("SEED", "0"))), 0, 0
    number, every = int(os.environ.get("KILLS", "3")), 60
    one_thread = {"env": ENVIRONMENT | {"TF_NUM_INTRAOP_THREADS": "1"}}  # in which order it adds
    steps = every * (number + 2)
    flags = [*run_flags, f"--train_steps={steps}", f"--eval_steps_between={every}"]
    folder, log = tmp_path / "run", tmp_path / "log"
    command = [*TASK, *flags, f"--output_dir={folder}"]
    while kills < number and not (folder / "result.json").exists():
        before = checkpoint_steps(folder)
        with log.open("w") as file:
            task = subprocess.Popen(command, stdout=file, stderr=file, **one_thread)
            while task.poll() is None and len(set(checkpoint_steps(folder)) - set(before)) < 1:
                time.sleep(0.02)
            newest = checkpoint_steps(folder)[-1]
            time.sleep(chance.uniform(0, 6))
            if task.poll() is None:
                kills += 1
                task.kill()
            task.wait()
        said = log.read_text()
        assert "damaged" not in said and "Traceback" not in said, said
        assert not before or f"Going on from step {before[-1]} of {steps}" in said, said
        between += checkpoint_steps(folder)[-1] == newest
        if not (folder / "result.json").exists():
            exports = list(folder.glob("export/[0-9]*"))
            assert all((export / "saved_model.pb").exists() for export in exports)
        for step in checkpoint_steps(folder)[-5:]:
            assert not damage(str(folder / f"model.ckpt-{step}"))
    for name in ("run", "undisturbed"):
        whole = run([*TASK, *flags, f"--output_dir={tmp_path / name}"], **one_thread)
        assert whole.returncode == 0, whole.stderr
        lines = (tmp_path / name / "history.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == list(range(every, steps + 1, every))
        assert len(list((tmp_path / name / "export").iterdir())) == 1
    assert_same_weights(folder, tmp_path / "undisturbed", steps)
    print(f"\n{kills} kills, {between} of them before the next checkpoint: {steps} steps as ever")


IN_A_SMALL_DISK = """
mount -t tmpfs -o size={size} none {disk} && "$0" "$@"; echo "status $?"
ls {disk}/run/export {disk}/run/result.json
mount -o remount,size=200m {disk} && "$0" "$@"; echo "status $?"
cp -r {disk}/run {kept}
"""


@needs_mounts
@pytest.mark.parametrize("moment", ["start", "training", "export"])
def test_a_full_disk_is_a_sentence_and_with_room_the_same_command_goes_on(
    run_flags, finished_run, tmp_path, moment
):
    whole = sum(file.stat().st_size for file in finished_run[0].rglob("*") if file.is_file())
    exports = sum(file.stat().st_size for file in finished_run[0].glob("export/**/*"))
    size = {"start": 100_000, "training": (whole - exports) // 2, "export": whole - exports // 2}
    (tmp_path / "disk").mkdir()
    script = IN_A_SMALL_DISK.format(
        size=size[moment], disk=tmp_path / "disk", kept=tmp_path / "kept"
    )
    flags = [*run_flags, f"--output_dir={tmp_path / 'disk' / 'run'}"]
    ran = run(["unshare", "-rm", "sh", "-c", script, *TASK, *flags])
    assert re.findall(r"status (\d+)", ran.stdout) == ["1", "0"], ran.stdout + ran.stderr
    assert "No space left on device" in ran.stderr and "with room" in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr
    first = ran.stdout.partition("status 1")[2].partition("status 0")[0]
    assert not re.search(r"^[0-9]+$", first, re.M) and "result.json" not in first, first
    assert ("Going on from step 8" in ran.stdout) == (moment == "export"), ran.stdout
    result = json.loads((tmp_path / "kept" / "result.json").read_text())
    assert result["confusion"] == finished_run[1]["confusion"]
    assert len(list((tmp_path / "kept" / "export").iterdir())) == 1
    print(f"\n{moment}, {size[moment]:,} bytes: {ran.stderr.splitlines()[-1]}")


def test_a_limit_of_memory_is_a_sentence_before_the_work(run_flags, tmp_path):
    """Below it TensorFlow waits for ever while it is imported, or aborts in a thread of its own."""
    limited = ["sh", "-c", 'ulimit -v 2000000; exec "$0" "$@"']
    for command in (TASK, JOB_COMMAND):
        flags = run_flags if command == TASK else ["--data=bundled"]
        ran = run([*limited, *command, *flags, f"--output_dir={tmp_path / 'run'}"], timeout=60)
        assert ran.returncode == 1 and "ulimit -v" in ran.stderr, ran.stderr
    assert not (tmp_path / "run").exists()
