"""A training that is killed again and again ends where an undisturbed one does.

KILLS=50 in the environment makes a long series, SEED another one.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from drivers.killed_training import PHASES
from test_flowers_task import assert_same_weights

from lab_utils.estimator import tf

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KILLS", "4"))
BETWEEN, STEPS = 4, 16  # of `run_flags`


class Trainings:
    """Runs trainings one after the other; the next one's process imports TensorFlow meanwhile."""

    def __init__(self, folder: Path, flags: list[str]) -> None:
        self.folder, self.flags = folder, flags
        self.state = folder / "state"
        self.spare = self._process()

    def _process(self) -> subprocess.Popen:
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "1"}
        driver = Path(__file__).parent / "drivers" / "killed_training.py"
        return subprocess.Popen(
            [sys.executable, driver], env=environment, stdin=subprocess.PIPE, text=True
        )

    def start(self, run: Path) -> subprocess.Popen:
        """Starts a training."""
        self.state.write_bytes(bytes(16))
        order = {"log": str(self.folder / "log"), "state": str(self.state)}
        order["flags"] = [*self.flags, f"--output_dir={run}"]
        process, self.spare = self.spare, self._process()
        print(json.dumps(order), file=process.stdin, flush=True)
        return process

    def now(self) -> tuple[str, int]:
        """Phase and global step of the training."""
        phase, step = struct.unpack("qq", self.state.read_bytes())
        return PHASES[phase], step

    def said(self) -> str:
        return (self.folder / "log").read_text()


@pytest.fixture
def trainings(tmp_path, run_flags):
    made = Trainings(tmp_path, run_flags)
    yield made
    made.spare.kill()
    made.spare.communicate()


def checkpoint(run: Path) -> int:
    """The newest checkpoint with an index, which comes last."""
    steps = (re.search(r"ckpt-(\d+)\.index$", file.name) for file in run.glob("model.*.index"))
    return max((int(match[1]) for match in steps if match), default=0)


def strike(
    trainings: Trainings, run: Path, target: str, chance: random.Random
) -> tuple[str, int] | None:
    """Starts the training and kills it in a phase, or not if that has passed; where it was."""
    process = trainings.start(run)
    seen = 0  # times that the phase began
    wanted = chance.choice([1, 1, 2, 3]) if target in ("checkpoint", "evaluation") else 1
    at_least = chance.randrange(STEPS) if target == "steps" else 0
    before = ""
    while process.poll() is None:
        phase, step = trainings.now()
        seen += phase == target != before
        before = phase
        if phase == target and seen >= wanted and step >= at_least:
            time.sleep(chance.uniform(0, 0.4 if target in ("start", "steps") else 0.05))
            where = trainings.now()
            process.kill()
            return where if process.wait() < 0 else None
        time.sleep(0.002)
    assert process.returncode == 0, trainings.said()
    return None


def test_killed_at_random_moments_it_ends_where_an_undisturbed_run_does(
    trainings, finished_run, tmp_path
):
    chance = random.Random(int(os.environ.get("SEED", "0")))
    undisturbed = finished_run[1]
    kills, lost, passed_over, finished, different = Counter(), [], 0, 0, []
    run = tmp_path / "run-0"

    def judge(run: Path) -> None:
        result = json.loads((run / "result.json").read_text())
        assert result["step"] == STEPS
        assert_same_weights(run, finished_run[0], STEPS)
        different.append(abs(result["accuracy"] - undisturbed["accuracy"]))
        steps = [json.loads(line)["step"] for line in (run / "history.jsonl").open()]
        assert steps == [4, 8, 12, 16]
        for export in (each for each in (run / "export").iterdir() if each.name.isdecimal()):
            assert tf.saved_model.load(str(export)).signatures["serving_default"]
            assert (export / "assets.extra" / "labels.txt").read_text() == "daisy\nroses\ntulips\n"

    while sum(kills.values()) < KILLS:
        target = chance.choice(PHASES[:5])
        where = strike(trainings, run, target, chance)
        passed_over += trainings.said().count("is damaged")
        if where is None:
            judge(run)
            finished += 1
            run = tmp_path / f"run-{finished}"
            continue
        kills[where[0]] += 1
        lost.append(max(0, where[1] - checkpoint(run)))
        print(f"killed in {where[0]} after step {where[1]}: {lost[-1]} steps lost", flush=True)
        assert lost[-1] <= BETWEEN, (where, checkpoint(run))
    while strike(trainings, run, "never", chance) is not None:
        pass
    judge(run)
    print(
        f"\n{sum(kills.values())} kills in {finished + 1} runs ({dict(kills)}): all went on; "
        f"{passed_over} checkpoints passed over; steps lost: {sum(lost) / len(lost):.1f} on average, "
        f"at most {max(lost)} of the {BETWEEN} between checkpoints; accuracy at the end: at most "
        f"{max(different):.3f} beside the undisturbed run's, and the same weights"
    )
