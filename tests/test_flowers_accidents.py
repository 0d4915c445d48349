"""As real processes: the whole job killed in each phase, full disks, read-only folders, two trainings.

KILLS=50 in the environment makes a long series of kills, SEED another one that begins at another phase.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter

import pytest
from drivers import killed_job

import lab_utils.flowers.__main__ as flowers

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


KILLS = int(os.environ.get("KILLS", "7"))


def test_the_whole_job_killed_at_random_moments_goes_on_and_ends_whole(
    tiny_photos, tmp_path, request
):
    seed = int(os.environ.get("SEED", "0"))
    chance = random.Random(seed)
    phases = list(killed_job.PHASES)
    kills, how, seconds, lost, ends = Counter(), Counter(), [], [], []
    job = killed_job.Job(tmp_path, tiny_photos)
    request.addfinalizer(lambda: [process.kill() for process in job.running()])

    def judge() -> None:
        assert job.process.wait() == 0, job.log.read_text()
        result = json.loads((job.place / "run" / "result.json").read_text())
        assert result["step"] == killed_job.STEPS and result["images"] == 6
        assert job.steps() == [2, 4, 6, 8]
        ends.append(result["accuracy"])
        assert {path.suffix for path in (job.place / "page").iterdir()} == {".html", ".png"}
        assert not job.half_written() and not job.left() and not job.running()

    while sum(kills.values()) < KILLS:
        target = phases[(seed + sum(kills.values())) % len(phases)]
        where = struck(job, target, chance)
        if where is None:
            judge()
            job = killed_job.Job(tmp_path, tiny_photos, f"out-{len(ends)}")
            continue
        kills[where[0]] += 1
        how[where[1:]] += 1
        struck_at = time.monotonic()
        job.process.wait()
        while job.running() and time.monotonic() - struck_at < 30:
            time.sleep(0.2)
        seconds.append(time.monotonic() - struck_at)
        lost.append(job.lost())
        left = job.left()
        print(
            f"killed in {where}: {lost[-1]} steps lost; {seconds[-1]:.1f} s to the last process; left: "
            f"{left}",
            flush=True,
        )
        assert not job.running(), job.running()
        assert "Traceback" not in job.log.read_text(), job.log.read_text()
        assert not job.half_written(), job.half_written()
        assert lost[-1] <= killed_job.BETWEEN
    job.start()
    judge()
    flags = [*killed_job.TRAINING, f"--config={flowers.CONFIG}", f"--output_dir={tmp_path / 'run'}"]
    flags += [f"--{split}_data_path={job.place}/records/{split}-*" for split in ("train", "eval")]
    assert run([*TASK, *flags]).returncode == 0
    undisturbed = json.loads((tmp_path / "run" / "result.json").read_text())["accuracy"]
    print(
        f"\n{sum(kills.values())} kills in {len(ends)} runs ({dict(kills)}; {dict(how)}): each went on and "
        f"ended whole; steps lost: {sum(lost) / len(lost):.1f} on average, at most {max(lost)}; accuracy at "
        f"the end {ends}, undisturbed {undisturbed}; at most {max(seconds):.1f} s to the "
        "last process; nothing left"
    )


def struck(job: killed_job.Job, target: str, chance: random.Random) -> tuple[str, str, str] | None:
    """Starts the job and strikes it in a phase; where it was, the signal and who got it.

    None where the phase has passed, and the job ended.
    """
    job.start()
    number, whom = killed_job.ways(chance)
    while job.process.poll() is None:
        if job.phase() == target:
            time.sleep(chance.uniform(0, killed_job.PHASES[target]))
            where = job.phase()
            if job.process.poll() is not None or where == "end":
                break
            job.strike(number, whom)
            return where, number.name, whom
        time.sleep(0.003)
    return None


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


PAGE_IN_A_SMALL_DISK = """
mount -t tmpfs -o size=8k none {disk}
"$0" -m lab_utils.flowers.predict --saved_model {model} --output {disk}/p.png "$1"; echo "status $?"
"$0" -m lab_utils.flowers.page --run_dir {run} --eval_csv {csv} --output_dir {disk}/page; echo "status $?"
ls -A {disk} {disk}/page
mount -o remount,size=20m {disk}
"$0" -m lab_utils.flowers.page --run_dir {run} --eval_csv {csv} --output_dir {disk}/page; echo "status $?"
ls -A {disk}/page
"""


@needs_mounts
def test_a_page_and_a_figure_on_a_full_disk_are_whole_or_not_there(
    finished_run, tiny_csv, tiny_photos, tmp_path
):
    (tmp_path / "disk").mkdir()
    given = {"disk": tmp_path / "disk", "run": finished_run[0], "csv": tiny_csv.eval_csv}
    script = PAGE_IN_A_SMALL_DISK.format(model=finished_run[1]["saved_model"], **given)
    photograph = next(tiny_photos.glob("*/*.jpg"))
    ran = run(["unshare", "-rm", "sh", "-c", script, sys.executable, photograph])
    *_, listed = re.split(r"status 1\n", ran.stdout)
    full, _, whole = listed.partition("status 0\n")
    assert not re.search(r"^[^/]*(png|html)$", full, re.M), full  # nothing is half there
    assert "index.html" in whole.splitlines()
    assert ran.stderr.count("No space left on device") == 2 and "Traceback" not in ran.stderr


@needs_mounts
def test_the_whole_job_on_a_full_disk_goes_on_once_there_is_room(tiny_photos, tmp_path):
    """What is too small for the records, and what is too small for the checkpoints."""
    (tmp_path / "disk").mkdir()
    job = [sys.executable, "-m", "lab_utils.flowers", "--data", tiny_photos, "--image_size=32"]
    job += ["--train_steps=4", "--eval_steps_between=2", "--train_batch_size=4"]
    job += ["--output_dir", tmp_path / "disk" / "run"]
    more = 'mount -t tmpfs -o size=24k none {disk}; "$0" "$@"; echo "status $?"; umount {disk}\n'
    script = more + IN_A_SMALL_DISK
    script = script.format(size="1m", disk=tmp_path / "disk", kept=tmp_path / "kept")
    ran = run(["unshare", "-rm", "sh", "-c", script, *job])
    assert re.findall(r"status (\d+)", ran.stdout) == ["1", "1", "0"], ran.stdout + ran.stderr
    stopped = re.findall(r"flowers: stopped, (.*?) did not succeed", ran.stderr)
    assert stopped == ["photographs to tfrecords", "train, evaluate, export"], ran.stderr
    assert ran.stderr.count("No space left on device") == 2 and "Traceback" not in ran.stderr
    assert "is converted already" in ran.stdout  # the third goes on where the second was
    assert list((tmp_path / "kept").glob("*/*/page/index.html"))


def test_a_limit_on_the_size_of_files_is_a_sentence(run_flags, tmp_path):
    """As `ulimit -f` sets it, and clusters do."""
    limited = ["sh", "-c", 'ulimit -f 200; exec "$0" "$@"']
    ran = run([*limited, *TASK, *run_flags, f"--output_dir={tmp_path / 'run'}"])
    assert ran.returncode == 1 and "File too large" in last_line(ran), ran.stderr
    assert "Traceback" not in ran.stderr
    assert run([*TASK, *run_flags, f"--output_dir={tmp_path / 'run'}"]).returncode == 0
