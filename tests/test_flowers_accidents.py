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
from pathlib import Path

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


def struck(command: list, ready, seconds: float, number: int, log: Path, **options) -> bool:
    """Starts a command and sends it a signal so long after `ready()`; whether it had not ended by then."""
    with log.open("w") as file:
        options = {"env": ENVIRONMENT, "stdout": file, "stderr": file} | options
        # A shell that runs the tests in the background has its children ignore interrupts.
        heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        process = subprocess.Popen(list(map(str, command)), **heard, **options)
        while not ready() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(seconds)
        running = process.poll() is None
        process.send_signal(number)
        assert process.wait(60) in (0, SIGNALS[number])
    assert "Traceback" not in log.read_text(), log.read_text()
    return running


def history(folder: Path) -> list[int]:
    """The steps that a run was evaluated at."""
    return [json.loads(line)["step"] for line in (folder / "history.jsonl").open()]


CHANCE = random.Random(int(os.environ.get("SEED", "0")))
KILLS = int(os.environ.get("KILLS", "4"))
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGKILL: -9}
MOMENTS = {"Photographs to TFRecords": 1, "Train, evaluate, export": 6, "The same port": 8}


def test_the_whole_job_killed_at_random_moments_goes_on_and_ends_whole(tiny_photos, tmp_path):
    kills, log = Counter(), tmp_path / "log"
    command = [*JOB_COMMAND, f"--data={tiny_photos}", "--train_steps=24", "--eval_steps_between=6"]
    command += ["--train_batch_size=4", "--image_size=32"]
    for _ in range(KILLS):
        moment, number = CHANCE.choice(list(MOMENTS)), CHANCE.choice(list(SIGNALS))
        if list(tmp_path.glob("out/*/page/index.html")):
            shutil.rmtree(tmp_path / "out")
        kills[moment, number.name] += struck(
            [*command, f"--output_dir={tmp_path / 'out'}"],
            lambda moment=moment: moment in log.read_text(),
            CHANCE.uniform(0, MOMENTS[moment]),
            number,
            log,
        )
    for name in ("out", "undisturbed"):
        whole = run([*command, f"--output_dir={tmp_path / name}"])
        assert whole.returncode == 0, whole.stderr
    runs = [next(tmp_path.glob(f"{name}/*/run")) for name in ("out", "undisturbed")]
    assert history(runs[0]) == [6, 12, 18, 24]
    assert_same_weights(*runs, 24)
    print(f"\n{sum(kills.values())} kills ({dict(kills)}): each went on, and it ended whole")


def test_killed_between_two_checkpoints_it_loses_only_the_steps_since_the_last(run_flags, tmp_path):
    """Each kill comes later than the one before; the end is that of an undisturbed run."""
    kills = between = 0
    every, steps = 60, 60 * (KILLS + 2)
    one_thread = {"env": ENVIRONMENT | {"TF_NUM_INTRAOP_THREADS": "1"}}  # so it adds in one order
    folder, log = tmp_path / "run", tmp_path / "log"
    command = [*TASK, *run_flags, f"--train_steps={steps}", f"--eval_steps_between={every}"]
    while kills < KILLS and not (folder / "result.json").exists():
        before = checkpoint_steps(folder)
        kills += struck(
            [*command, f"--output_dir={folder}"],
            lambda before=before: set(checkpoint_steps(folder)) - set(before),
            CHANCE.uniform(0, 6),
            signal.SIGKILL,
            log,
            **one_thread,
        )
        after = checkpoint_steps(folder)
        between += len(set(after) - set(before)) == 1
        assert "damaged" not in log.read_text()
        assert not before or f"Going on from step {before[-1]} of {steps}" in log.read_text()
        assert not any(damage(str(folder / f"model.ckpt-{step}")) for step in after[-4:])
        exports = folder.glob("export/[0-9]*")
        assert all((export / "saved_model.pb").exists() for export in exports)
    for name in ("run", "undisturbed"):
        whole = run([*command, f"--output_dir={tmp_path / name}"], **one_thread)
        assert whole.returncode == 0, whole.stderr
        assert history(tmp_path / name) == list(range(every, steps + 1, every))
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
    assert "No space left on device" in ran.stderr and "enough room" in ran.stderr, ran.stderr
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


GROUPS = Path("/sys/fs/cgroup/memory")  # version 1, which a test can make a group of by a folder
IN_A_CONTAINER = 'echo $$ >{group}/cgroup.procs; mount --bind {group} {groups}; exec "$0" "$@"'


@needs_mounts
@pytest.mark.skipif(
    not os.access(GROUPS / "memory.limit_in_bytes", os.W_OK),
    reason="this user can make no group of processes with a limit of memory here",
)
def test_in_a_container_with_little_memory_the_job_ends_and_the_dry_run_gives_no_verdict(
    tiny_photos, tmp_path
):
    """The system ends the compiler, the report says so, and the predictions come all the same."""
    group = GROUPS / f"labs_{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(800 * 2**20))
        contained = IN_A_CONTAINER.format(group=group, groups=GROUPS)
        flags = [f"--data={tiny_photos}", f"--output_dir={tmp_path / 'out'}", "--train_steps=8"]
        flags += ["--train_batch_size=4", "--image_size=32"]
        ran = run(
            ["unshare", "-rm", "sh", "-c", contained, *JOB_COMMAND, *flags],
            env=ENVIRONMENT | {"XDG_CACHE_HOME": tmp_path / "cache"},
        )
        assert ran.returncode == 0, ran.stderr
        assert "No verdict: compile" in ran.stdout and "Done in" in ran.stdout, ran.stdout
        page = next(tmp_path.glob("out/*/page/dry_run.html")).read_text()
        assert "killed (signal 9), most likely because memory ran out" in page
    finally:
        group.rmdir()
