"""One training run for test_flowers_kills.py: imports TensorFlow, and then waits for its order.

The order is a line of JSON: the flags of lab_utils.flowers.task, a file to log to, and a file of two int64
that then tells the run's phase and global step.
"""

import json
import mmap
import os
import struct
import sys

PHASES = ("start", "steps", "checkpoint", "evaluation", "export", "end")


def follow(state_file: str) -> None:
    """Patches the training so that it keeps its phase and step in the file."""
    from lab_utils.estimator import v1
    from lab_utils.flowers import progress, task

    with open(state_file, "r+b") as file:
        state = mmap.mmap(file.fileno(), 16)

    def phase() -> int:
        return struct.unpack("q", state[:8])[0]

    def enter(name: str) -> None:
        state[:8] = struct.pack("q", PHASES.index(name))

    def during(function, name):
        def wrapped(*arguments, **options):
            before = phase()
            enter(name)
            try:
                return function(*arguments, **options)
            finally:
                enter(PHASES[before] if name == "checkpoint" else "end")

        return wrapped

    def after_run(self, context, values):
        if phase() != PHASES.index("checkpoint"):
            enter("steps")
        state[8:] = struct.pack("q", int(values.results))

    progress._Bar.after_run = after_run
    v1.train.Saver.save = during(v1.train.Saver.save, "checkpoint")
    task._evaluate = during(task._evaluate, "evaluation")
    estimator = v1.estimator.tpu.TPUEstimator
    estimator.export_saved_model = during(estimator.export_saved_model, "export")


def main() -> None:
    from lab_utils import runtime

    runtime.quiet()
    from lab_utils.flowers import model, serving, settings, task  # noqa: F401  all that a run imports

    order = json.loads(sys.stdin.readline())
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    follow(order["state"])
    sys.exit(task.main(order["flags"]))


if __name__ == "__main__":
    main()
