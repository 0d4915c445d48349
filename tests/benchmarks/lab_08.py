"""The two tables of lab 08 that its cells do not compute, by the TPU compiler.

    python tests/benchmarks/lab_08.py [climb] [changes] [--topologies v2:2x2 v6e:2x2]

`climb`: the time of a step of the lab's networks, on an old and a new chip. `changes`: the four steps of
TODO 8d, and what each change that it offers makes of their images/s. Prints the rows; nothing is measured on
a TPU. What was compiled before comes from the dry run's cache.
"""

import argparse
from collections.abc import Callable, Iterator

from lab_utils import runtime

runtime.quiet()
from lab_utils.check import sources  # noqa: E402
from lab_utils.dry_run import Report, dry_run  # noqa: E402
from lab_utils.estimator import tf, v1  # noqa: E402
from lab_utils.runtime import chips  # noqa: E402

LAB = sources.solved(8)
SIDE = 152
Inference = Callable[[tf.Tensor], tf.Tensor]


def network(patch: int, filters: int, count: int, flat: int = 0) -> Inference:
    """`count` convolutions, the first of patches; a pooled head, or one of `flat` units for each position."""

    def inference(images: tf.Tensor) -> tf.Tensor:
        x = v1.layers.conv2d(images, filters, patch, patch, activation=tf.nn.relu)
        for _ in range(count - 1):
            x = v1.layers.conv2d(x, filters, 3, padding="same", activation=tf.nn.relu)
        if not flat:
            return v1.layers.dense(tf.reduce_mean(x, [1, 2]), 5)
        return v1.layers.dense(v1.layers.dense(v1.layers.flatten(x), flat, tf.nn.relu), 5)

    return inference


def in_bfloat16(inference: Inference) -> Inference:
    """The same network with bfloat16 between its layers."""
    return lambda images: LAB.four(inference, images)


def judged(inference: Inference, side: int, per_core: int, topology: str) -> Report:
    """The dry run's report on a training step: compiled for the TPU, not run."""
    port = LAB.port_of(inference, side, per_core, chips.cores(topology))
    return dry_run(*port, topology, stages=["compile"], progress=False)


def climb(topology: str) -> Iterator[str]:
    """Times of a step of a core, rung by rung."""
    for name, inference, side, per_core in (
        ("old, 32 per core", LAB.inference_old, 299, 32),
        ("152 pixels, 128 per core", LAB.inference_old, SIDE, 128),
        ("patches, pooled head", LAB.inference_fast, SIDE, 128),
        ("bfloat16", in_bfloat16(LAB.inference_fast), SIDE, 128),
    ):
        seconds = judged(inference, side, per_core, topology).cost["estimated_seconds"].value
        yield f"{topology}  {name:26} {1e3 * seconds:8.2f} ms"


def changes(topology: str) -> Iterator[str]:
    """The four steps of TODO 8d, and the images/s of each change over those of the step as it is."""
    few, flat = network(4, 64, 2), network(4, 32, 1, flat=1024)
    wide, large = network(8, 256, 3), network(2, 32, 2)
    steps = {
        1: {"": (in_bfloat16(few), 16), "A": (in_bfloat16(few), 128)},
        2: {"": (flat, 128), "A": (flat, 512), "B": (in_bfloat16(flat), 128), "C": (network(4, 32, 1), 128)},
        3: {"": (in_bfloat16(wide), 128), "A": (in_bfloat16(wide), 512)},
        4: {"": (large, 128), "A": (large, 512), "B": (in_bfloat16(large), 128)},
    }  # fmt: skip
    chip, _ = chips.parse(topology)
    for number, tried in steps.items():
        before = 0.0
        for change, (inference, per_core) in tried.items():
            cost = judged(inference, SIDE, per_core, topology).cost
            seconds = cost["estimated_seconds"].value
            before = before or per_core / seconds
            parts = {
                "arithmetic": cost["flops"].value / chip.flops_per_core,
                "memory": cost["bytes"].value / chip.bandwidth_per_core,
                "estimated": seconds,
            }
            told = ", ".join(f"{name} {1e3 * each:6.2f} ms" for name, each in parts.items())
            times = per_core / seconds / before
            yield f"{topology}  step {number} {change or '-'}: {told}, images/s x {times:5.2f}"


def main() -> None:
    """Prints the rows of the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--topologies", nargs="+", default=["v2:2x2", "v6e:2x2"])
    flags = parser.parse_args()
    for name in flags.tables or ["climb", "changes"]:
        for topology in flags.topologies:
            for row in {"climb": climb, "changes": changes}[name](topology):
                print(row, flush=True)


if __name__ == "__main__":
    main()
