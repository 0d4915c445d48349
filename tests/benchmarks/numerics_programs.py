"""What a TPU's rounding does to programs that are known to train, and what the look at it costs.

    python tests/benchmarks/numerics_programs.py [--only WORDS ...] [--rounds 3]

The programs are the right ports of tests/rules, programs of JAX of tests/jax_mains, a Keras model on
TensorFlow and a plain function: on none of them may the dry run warn. Prints how far loss and weights are
off, beside another order of the examples; and the time of stage run with numerics=True over that without, of
several rounds the median.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rules import RIGHT, rights  # noqa: F401

from lab_utils.dry_run import Report, dry_run
from lab_utils.dry_run.records import StageResult
from lab_utils.dry_run.target import load_main
from lab_utils.estimator import tf

TESTS = Path(__file__).parents[1]
JAX_MAINS = ("optax_mlp", "linen_state", "nnx_trainer", "named_sharding", "equinox_mlp")
Subject = tuple[Any, Any, dict[str, Any]]  # what dry_run takes: subject, data, options


def _batches() -> tf.data.Dataset:
    points = tf.random.stateless_normal([512, 16], [1, 2])
    labels = tf.cast(tf.reduce_sum(points, 1) > 0, tf.int32)
    return tf.data.Dataset.from_tensor_slices((points, labels)).batch(64, drop_remainder=True)


def keras_on_tensorflow() -> Subject:
    """A model of two layers, as fit trains it."""
    layers = [tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential([tf.keras.layers.Input((16,)), *layers])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, _batches(), {}


def plain_function() -> Subject:
    """Gradient descent by hand, as TPUStrategy runs it."""
    weights = tf.Variable(tf.zeros([16, 2]))
    optimizer = tf.keras.optimizers.SGD(0.1)

    def step(points: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, points @ weights)
            loss = tf.nn.compute_average_loss(losses)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    return step, _batches(), {}


def _programs() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Names, and functions that make what is handed over."""
    for make in RIGHT:
        if make().estimator is not None:  # the others are programs with a main of their own
            yield make.__name__, lambda make=make: (make().estimator, make().input_fn, {})
    yield "keras_on_tensorflow", keras_on_tensorflow
    yield "plain_function", plain_function
    for name in JAX_MAINS:

        def of_main(path: str = str(TESTS / "jax_mains" / f"{name}.py")) -> Subject:
            target = load_main(path, [])
            return target.subject, target.data, {"observed": target.observed}

        yield name, of_main


def _run(make: Callable[[], Subject], *, numerics: bool) -> tuple[Report, StageResult]:
    subject, data, options = make()
    options |= {"stages": ("trace", "run"), "cache": False, "progress": False}
    report = dry_run(subject, data, numerics=numerics, **options)
    return report, next(stage for stage in report.stages if stage.stage == "run")


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each program; returns 1 if one is warned of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="words in a program's name")
    parser.add_argument("--rounds", type=int, default=1, help="how often each program is run")
    given = parser.parse_args(arguments)
    ratios, warned = [], 0
    for name, make in _programs():
        if given.only and not any(word in name for word in given.only):
            continue
        rounds = []
        for _ in range(given.rounds):
            _, plain = _run(make, numerics=False)
            report, looking = _run(make, numerics=True)
            rounds.append(looking.seconds / plain.seconds)
        if report.numerics is None:
            print(f"{name}: not run so: {looking.detail} {' '.join(report.not_checked[5:])}")
            continue
        found = [found.why for found in report.findings if found.rule == "TPU409"]
        warned += len(found)
        ratios.append(statistics.median(rounds))
        each = ", ".join(f"{ratio:.2f}" for ratio in rounds)
        print(
            f"{name}: {ratios[-1]:.2f} times the stage [{each}]. {''.join(found)} {looking.detail}"
        )
    if ratios:
        print(
            f"{len(ratios)} programs, {warned} warned of; the stage takes {statistics.median(ratios):.2f} "
            f"times as long [{min(ratios):.2f} to {max(ratios):.2f}]"
        )
    return int(warned > 0)


if __name__ == "__main__":
    sys.exit(main())
