"""Lab 04, metrics and the host: TODO 4a, metric_fn, 4b, a review, and 4c, iterations_per_loop."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from lab_utils.check.labs.metrics import values_of_metrics
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, expect, expect_keys

_NAMES = ("accuracy", "mean_loss", "worst_loss")
_PADDING = 9.0  # nats that are added to the loss of padding


def _batch(seed: int, weight: list[float]) -> list[np.ndarray]:
    """The arguments of metric_fn, for random rows; padding has a loss, too, and a large one."""
    random, rows = np.random.default_rng(seed), len(weight)
    logits = random.normal(size=[rows, 10]).astype(np.float32)
    labels = random.integers(0, 10, rows).astype(np.int32)
    logits[np.arange(rows), labels] += 1
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(rows), labels]
    return [labels, logits, losses + _PADDING * (1 - np.float32(weight)), np.float32(weight)]


@todo(
    "4a",
    hints=(
        "Both functions of v1.metrics accept weights=. Without any precaution, which rows may have the largest loss?",
        "A metric made by hand is a local variable and the op that changes it. Which op keeps the larger of two numbers?",
        "The op that changes the variable compares its value so far with the largest loss of this batch.",
        "0 * NaN is NaN. Which function of TensorFlow chooses between two tensors, row by row, without multiplying?",
    ),
    why="The losses of padding become 0 before anything is computed with them, since 0 * NaN is NaN. accuracy and "
    "mean_loss get the weights, and worst_loss is a local variable, which a batch can only raise.",
    slips=(
        Slip(
            "v1.metrics.mean(real, weights=weight)",
            "v1.metrics.mean(real)",
            "mean_loss leaves padding out of its sum, but not out of its count: weights= does both.",
        ),
        Slip(
            "tf.maximum(worst, tf.reduce_max(real))",
            "tf.reduce_max(real)",
            "worst_loss is the largest loss of the last batch only: compare it with the value so far.",
        ),
    ),
)
def host_metrics(metric_fn: Callable) -> Cases:
    """Three metrics over two batches, which padding does not touch."""
    batches = [_batch(1, [1] * 16), _batch(2, [1] * 5 + [0] * 11)]
    batches[0][2][3] += 3  # the largest loss is not in the last batch
    values = values_of_metrics(metric_fn, batches, _NAMES)
    _expect_largest(values["worst_loss"], batches)
    alike = [[*tensors, np.ones_like(weight)] for *tensors, weight in batches]
    unweighted = values_of_metrics(metric_fn, alike, _NAMES)
    for name in _NAMES:
        expect(
            values[name] != unweighted[name],
            f"{name}: {values[name]:.4g} is the value without weights, in which padding counts.",
        )
    for name in _NAMES:
        label = f"{name} of two batches (21 examples, and 11 rows of padding that do not count)"
        yield label, values[name], 1e-4
    losses, weight = batches[1][2:]
    batches[1][2] = np.where(weight > 0, losses, np.float32(np.nan))
    for name, value in values_of_metrics(metric_fn, batches, _NAMES).items():
        expect(
            np.isclose(value, values[name], rtol=1e-4),
            f"{name} is {value:.4g} where the loss of padding is NaN, and {values[name]:.4g} where it is a number: "
            "what is 0 * NaN?",
        )
    return "The three metrics count 21 examples, and the 11 rows of padding change nothing, even if their loss is NaN."


def _expect_largest(worst: float, batches: list[list[np.ndarray]]) -> None:
    """Raises `Wrong` where the largest loss of all batches is another number that can be told."""
    first, last = (float((losses * weight).max()) for _, _, losses, weight in batches)
    told = (
        (last, "the largest loss of the last batch only. Compare it with the value so far."),
        ((first + last) / 2, "the mean of the batches' maxima. It should be the largest of them."),
        (first + last, "the sum of the batches' maxima. It should be the largest of them."),
        (0.0, "what the variable began with. Is the op that changes it the second of the pair?"),
    )
    for value, what in told:
        expect(
            not np.isclose(worst, value, rtol=1e-4),
            f"The largest losses of two batches are {first:.4g} and {last:.4g}, but your worst_loss is {worst:.4g}, {what}",
        )


_CORES = 8
_AGAINST = {
    "A": "A Python number is the same on every machine, so the host's ops may use it.",
    "B": "This is the repair: the host gets weight because it is a parameter, and is in the list.",
    "C": "Since recall gets the weights, it counts no padding.",
}


@todo(
    "4b",
    hints=(
        "Which of the tensors in the list have a number for each row, and which has only one number for each core?",
        "D averages eight numbers. When do all of them stand for the same number of rows?",
    ),
    why="The host averages eight means, in which a core with one real row counts as much as one with two. The result "
    "is the mean over all rows only if all cores have equally many real rows.",
)
def review(wrong: str, shows: Sequence, hides: Sequence) -> str:
    """The mean of the cores' means, beside the mean over all real rows, for random losses."""
    letter = str(wrong).strip().upper()
    expect(letter in "ABCD" and len(letter) == 1, f"`wrong` is A, B, C or D; yours is {wrong!r}.")
    expect(letter == "D", f"Change {letter} is correct. {_AGAINST.get(letter, '')}")
    for name, weights in (("shows", shows), ("hides", hides)):
        array = _weights(weights, name)
        draws = np.random.default_rng(0).uniform(0.1, 3, [3, array.size])
        means = [(_of_means(losses, array), np.average(losses, weights=array)) for losses in draws]
        counts = ", ".join(str(n) for n in array.reshape(_CORES, -1).sum(axis=1))
        reported, right = means[0]
        example = f"the cores have {counts} real rows. With random losses D reports {reported:.3f}"
        alike = all(np.isclose(*pair) for pair in means)
        expect(
            not alike or name == "hides",
            f"{name}: {example}, and the mean over all real rows is {right:.3f} as well.",
        )
        expect(
            alike or name == "shows",
            f"{name}: {example}, but the mean over all real rows is {right:.3f}.",
        )
    return (
        "D averages the cores' means, which is right only if all cores have equally many real rows."
    )


def _weights(weights: Any, name: str) -> np.ndarray:
    """The weights of a batch, int [16], checked."""
    array = np.asarray(weights, dtype=object).ravel()
    rows = 2 * _CORES
    expect(array.size == rows, f"{name} should have {rows} weights; yours has {array.size}.")
    expect(set(array.tolist()) <= {0, 1}, f"{name}: each weight should be 0 or 1.")
    expect(0 in array, f"{name} has no padding: at least one weight should be 0.")
    expect(1 in array, f"{name} has no real row: at least one weight should be 1.")
    return array.astype(int)


def _of_means(losses: np.ndarray, weights: np.ndarray) -> float:
    """The mean of the cores' means: each core's over its rows of weight 1, 0 where it has none."""
    losses, weights = losses.reshape(_CORES, -1), weights.reshape(_CORES, -1)
    means = (losses * weights).sum(axis=1) / np.maximum(1, weights.sum(axis=1))
    return float(means.mean())


_JOBS = {
    "digits": (0.05e-3, 1000, 100),
    "flowers": (1.5e-3, 200, 50),
    "ResNet-50": (0.32, 1000, 100),
}
_CALL, _BUSY, _LONGEST = 0.4e-3, 0.95, 10  # seconds, share, seconds


@todo(
    "4c",
    hints=(
        "A loop takes n times the step time, plus the time of one call. From which n on does the call take 5 % of this time or less?",
        "Which number has to divide both the steps between checkpoints and the steps between hooks?",
        "For each job, write down the shortest loop, the longest one, and all numbers that divide both intervals.",
        "Write down the steps at which the colleague's loops end. Which is the first of these steps that comes at least "
        "200 steps after the last checkpoint?",
    ),
    why="A good loop is long enough to make its call cheap, short enough to wait for, and divides the steps between "
    "checkpoints and hooks. For the digits, a loop needs at least 152 steps, but a hook every 100 steps allows no more "
    "than 100, so the hook has to run less often. The colleague's loops end at steps 90, 180 and 270, and 270 is the "
    "first that is at least 200 steps after the start. The next checkpoint is then due at 470, and written at 540.",
)
def loop_lengths(loops: Mapping, written: Sequence) -> str:
    """Each loop against what the text asks for, and the checkpoints of loops that do not divide their interval."""
    expect_keys(loops, _JOBS, "loops")
    for job, (_, _, hook) in _JOBS.items():
        loop = loops[job]
        if loop is None:
            fitting = any(not _against(job, each) for each in range(1, hook + 1))
            expect(
                not fitting,
                f"{job}: not None, since one of the divisors of {hook} meets all conditions.",
            )
            continue
        expect(
            isinstance(loop, Integral) and loop > 0,
            f"{job}: a loop is a whole number of steps, at least 1; yours is {loop!r}.",
        )
        against = _against(job, loop)
        expect(not against, against)
    _expect_written(written)
    return (
        "With two loops between checkpoints and hooks, the core stays busy. For the digits no loop does "
        "both, but a hook every 200 steps would allow loops of 200."
    )


_LOOP, _EVERY, _STEPS = 90, 200, 1000  # of the colleague's job


def checkpoints(loop: int, every: int, steps: int) -> list[int]:
    """The steps at which TPUEstimator writes a checkpoint, in a job of so many steps that begins at 0.

    After a loop it writes one if the last that was written is at least `every` steps old (CheckpointSaverHook).
    """
    written, step = [0], 0
    while step < steps:
        step = min(step + loop, steps)
        if step - written[-1] >= every or step == steps:
            written.append(step)
    return written


def _expect_written(written: Any) -> None:
    """Raises `Wrong` unless these are the steps of the colleague's checkpoints."""
    expect(
        isinstance(written, list | tuple | set | np.ndarray),
        f"written should be a list of steps, such as [0, 200]; yours is {a(written)}.",
    )
    theirs, ours = sorted(set(written)), checkpoints(_LOOP, _EVERY, _STEPS)
    for step in theirs:
        ends = step in (0, _STEPS) or step % _LOOP == 0
        expect(
            ends and 0 <= step <= _STEPS,
            f"written: no loop of {_LOOP} ends at step {step!r}, so the host cannot write a checkpoint there.",
        )
    for step, what in ((0, "before its first step"), (_STEPS, "after its last step")):
        expect(step in theirs, f"written: the job writes a checkpoint {what}, too.")
    for last, step in pairwise(ours):
        due = last + _EVERY
        message = f"written: the checkpoint after the one at step {last} is due at step {due}. "
        found = next((each for each in theirs if each > last), None)
        early = found is not None and found < step
        message += f"Yours has it at {found}. At which step does the loop with step {due} end?"
        expect(not early and step in theirs, message)


def _against(job: str, loop: int) -> str:
    """What speaks against a loop of so many steps; "" for nothing."""
    step, checkpoint, hook = _JOBS[job]
    busy = loop * step / (loop * step + _CALL)
    if busy < _BUSY:
        return f"{job}: with loops of {loop} the core is busy {busy:.1%} of the time."
    for what, steps in (("a checkpoint", checkpoint), ("the hook", hook)):
        late = -(-steps // loop) * loop
        if late != steps:
            return f"{job}: with loops of {loop}, {what} that is due at step {steps} comes at step {late}."
    if loop * step > _LONGEST:
        return f"{job}: a loop of {loop} steps takes {loop * step:.0f} seconds, and cannot be stopped earlier."
    return ""
