"""Lab 04, metrics and the host: TODO 4a, metric_fn, 4b, a small patient, and 4c, iterations_per_loop."""

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from lab_utils.check.labs.metrics import values_of_metrics
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import expect, expect_keys

_NAMES = ("accuracy", "top_3", "mean_loss")


def _batch(seed: int, weight: list[float]) -> list[np.ndarray]:
    """The arguments of metric_fn, for random rows; padding has a loss, too."""
    random, rows = np.random.default_rng(seed), len(weight)
    logits = random.normal(size=[rows, 10]).astype(np.float32)
    labels = random.integers(0, 10, rows).astype(np.int32)
    logits[np.arange(rows), labels] += 1
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(rows), labels]
    return [labels, logits, losses, np.float32(weight)]


@todo(
    "4a",
    hints=(
        "Compute the metrics as in the text above, from the four arguments.",
        "Each of the three metrics accepts weights=.",
    ),
    why="Each metric gets the weights, so padding stays out of its sum and out of its count.",
    slips=(
        Slip(
            "v1.metrics.mean(losses, weights=weight)",
            "v1.metrics.mean(losses * weight)",
            "The sum of mean_loss leaves padding out, but its count does not: weights= does both.",
        ),
    ),
)
def host_metrics(metric_fn: Callable) -> Cases:
    """Three metrics over two batches, which padding does not touch."""
    batches = [_batch(1, [1] * 16), _batch(2, [1] * 5 + [0] * 11)]
    values = values_of_metrics(metric_fn, batches, _NAMES)
    alike = [[*tensors, np.ones_like(weight)] for *tensors, weight in batches]
    unweighted = values_of_metrics(metric_fn, alike, _NAMES)
    for name in _NAMES:
        message = (
            f"{name}: {values[name]:.4g} is the value without weights=, in which padding counts."
        )
        expect(values[name] != unweighted[name], message)
        label = f"{name} of two batches (21 examples, and 11 rows of padding that do not count)"
        yield label, values[name], 1e-4
    return "The three metrics count 21 examples; the 11 rows of padding change nothing."


enter_patient(
    "4b",
    "parts",
    hints=(
        "Which lines of model_fn run on the core, and which on the host? What is sent from one to the other?",
        "Compare the names that metric_fn uses with its parameters. Which of the others are tensors?",
    ),
    why="`weight` is a tensor of the model: eval_metrics has to send it. `limit` is a Python number.",
)

_JOBS = {
    "digits": (0.05e-3, 1000, 1000),
    "flowers": (1.5e-3, 200, 50),
    "ResNet-50": (0.32, 1000, 100),
}
_CALL, _BUSY, _LONGEST = 0.4e-3, 0.95, 10  # seconds, share, seconds


@todo(
    "4c",
    hints=(
        "A loop takes n * step seconds, plus one call. From which n on does the call take 5 % of this time or less?",
        "Which number has to divide both the steps between checkpoints and those between hooks?",
    ),
    why="A good loop is long enough to make its call cheap, short enough to wait for, and divides the steps between "
    "checkpoints and hooks.",
)
def loop_lengths(loops: Mapping) -> str:
    """Each loop against what the text asks for."""
    expect_keys(loops, _JOBS, "loops")
    for job, (step, checkpoint, hook) in _JOBS.items():
        loop = loops[job]
        message = f"{job}: a loop is a whole number of steps, at least 1; yours is {loop!r}."
        expect(isinstance(loop, Integral) and loop > 0, message)
        busy = loop * step / (loop * step + _CALL)
        expect(
            busy >= _BUSY, f"{job}: with loops of {loop} the core is busy {busy:.1%} of the time."
        )
        for what, steps in (("a checkpoint", checkpoint), ("the hook", hook)):
            late = -(-steps // loop) * loop
            message = f"{job}: with loops of {loop}, {what} that is due at step {steps} comes at step {late}."
            expect(steps % loop == 0, message)
        message = f"{job}: a loop of {loop} steps takes {loop * step:.0f} seconds, and cannot be stopped earlier."
        expect(loop * step <= _LONGEST, message)
    return "Each loop keeps the core busy and divides the steps between checkpoints and hooks."
