"""The compiled bounds behind lab_utils/dry_run/report/published.yaml, computed again.

    python tests/benchmarks/published.py [--only WORDS ...]

The programs here stand for those that were measured: the same network or matmul, batch a core, sharding and
number type, not the same code. Prints the time of a step as published, the bound and the estimated time, and
the share of each beside the table's.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import encoder_block
import gpt2
import jax
import jax.numpy as jnp
import mixer
import numpy as np
import resnet50
import resnet50_flax
import resnet50_jax
import small_gpt
import vit
import wmt
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.frontends.jax import JaxWorkload
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.report.words import published
from lab_utils.estimator import tf
from lab_utils.runtime import chips


@dataclass(frozen=True)
class Pair:
    """A row of the table that is compiled here.

    Attributes:
        lower: gives the program for `topology`.
        seconds: of a step, as published.
    """

    topology: str
    lower: Callable[[str], Program]
    seconds: float


def _resnet(topology: str) -> Program:
    cores, tpu = chips.cores(topology), tf.compat.v1.estimator.tpu
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp(), tpu_config=tpu.TPUConfig(100))
    port = tpu.TPUEstimator(
        resnet50.model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=128 * cores,
        params={"policy": "mixed_bfloat16"},
    )
    return lower_estimator(port, resnet50.input_fn, cores=cores)


def _of_jax(
    step_of: Callable, batch: int, batch_argnums: tuple[int, ...] | None = None
) -> Callable[[str], Program]:
    """A step that each core does on its own."""

    def lower(topology: str) -> Program:
        workload = JaxWorkload(*step_of(batch), topology, batch_argnums=batch_argnums)
        return workload.lower(chips.cores(topology))

    return lower


def _gpt(batch: int) -> Callable[[str], Program]:
    """tpuchat's step: with a batch of 1, its shapes do not tell which arguments are the texts."""
    return _of_jax(small_gpt.step_of, batch, batch_argnums=(2, 3))


def _gpt2(topology: str) -> Program:
    """The step of a GPT-2 on 32 texts, split over all cores."""
    cores = chips.cores(topology)
    workload = JaxWorkload(*gpt2.step_of(32), topology, {"data": cores}, batch_argnums=(1, 2))
    return workload.lower(cores)


def _matmul(size: int) -> tuple:
    matrix = jax.ShapeDtypeStruct((size, size), jnp.bfloat16)
    return jax.jit(jnp.matmul), (matrix, matrix)


def _sharded_matmul(topology: str) -> Program:
    """Rows over 4 cores, columns of the weights over 2, as the book's profile has it."""
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))

    def shape(*dims: int, axes: tuple) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(dims, jnp.bfloat16, sharding=sharding)

    rows = shape(32, 1024, 8192, axes=("data",))
    weights = shape(8192, 32768, axes=(None, "model"))
    step, mesh_axes = jax.jit(jnp.matmul), {"data": 4, "model": 2}
    workload = JaxWorkload(step, (rows, weights), topology, mesh_axes, batch_argnums=0)
    return workload.lower(chips.cores(topology))


IMAGES = 1_281_167  # of an epoch of ImageNet
PAIRS = {
    "ResNet-50 training, batch 1,024 on v2": Pair("v2:2x2", _resnet, 1024 / resnet50.THROUGHPUT),
    # 90 epochs; the example evaluates once, after the last.
    "ResNet-50 v2 training, batch 1,024 on v3": Pair(
        "v3:4x4", _of_jax(resnet50_jax.step_of, 32), 130 * 60 * 1024 / (90 * IMAGES)
    ),
    # 90 epochs of 99 % of the images; big_vision says 6 to 7 hours.
    "ViT-S/16 training, batch 1,024 on v3": Pair(
        "v3:2x2", _of_jax(vit.step_of, 128), 6.5 * 3600 * 1024 / (90 * 0.99 * IMAGES)
    ),
    # 100,000 steps; the hours hold 100 evaluations with beam search.
    "Flax's translation, batch 256 on v3": Pair(
        "v3:2x2", _of_jax(wmt.step_of, 32), (13 * 60 + 18) * 60 / 100_000
    ),
    "GPaR's encoder block, batch 64 on v5e": Pair(
        "v5e:1x1", _of_jax(encoder_block.step_of, 64), 1.63e-3
    ),
    "GPaR's encoder block, batch 256 on v5e": Pair(
        "v5e:1x1", _of_jax(encoder_block.step_of, 256), 8.31e-3
    ),
    "GPaR's encoder block, batch 1,024 on v5e": Pair(
        "v5e:1x1", _of_jax(encoder_block.step_of, 1024), 36.03e-3
    ),
    "tpuchat's GPT, batch 1 on v6e": Pair("v6e:1x1", _gpt(1), 37e-3),
    "tpuchat's GPT, batch 2 on v6e": Pair("v6e:1x1", _gpt(2), 65e-3),
    "tpuchat's GPT, batch 4 on v6e": Pair("v6e:1x1", _gpt(4), 126e-3),
    "tpuchat's GPT, batch 6 on v6e": Pair("v6e:1x1", _gpt(6), 198e-3),
    # 19,073 steps in 1,716.01 s, input and all.
    "GPT-2 small, batch 32 on v4": Pair("v4:2x2x1", _gpt2, 1716.01 / 19_073),
    # The hours of Flax's runs hold an evaluation after each of 100 epochs.
    "Flax's ResNet-50, 128 images a core on v3": Pair(
        "v3:2x2", _of_jax(resnet50_flax.step_of, 128), 4.4 * 3600 / 125_100
    ),
    "Flax's ResNet-50, 32 images a core on v3": Pair(
        "v3:4x4", _of_jax(resnet50_flax.step_of, 32), 2.1 * 3600 / 125_100
    ),
    "Flax's ResNet-50, 32 images a core on v2": Pair(
        "v2:4x4", _of_jax(resnet50_flax.step_of, 32), 2.5 * 3600 / 125_100
    ),
    # 300 epochs of 99 % of the images.
    "MLP-Mixer-B/16, batch 4,096 on v3": Pair(
        "v3:8x8", _of_jax(mixer.step_of, 32), 131 * 60 * 4096 / (300 * 0.99 * IMAGES)
    ),
    "a bfloat16 matmul on v2": Pair("v2:2x2", _sharded_matmul, 96e-3),
    "a bfloat16 matmul of 4,096 on v5e": Pair("v5e:1x1", _of_jax(_matmul, 4096), 0.8273e-3),
    "a bfloat16 matmul of 8,192 on v5e": Pair("v5e:1x1", _of_jax(_matmul, 8192), 6.047e-3),
    "a bfloat16 matmul of 8,192 on v6e": Pair(
        "v6e:1x1", _of_jax(_matmul, 8192), 2 * 8192**3 / 622e12
    ),
    "a bfloat16 matmul of 4,096 on tpu7x": Pair(
        "tpu7x:2x2x1", _of_jax(_matmul, 4096), 2 * 4096**3 / 892.9e12
    ),
}


def agreement() -> str:
    """How well the table's estimates agree with what was published: median error, interval, leave-one-out."""
    rows = [row for row in published() if hasattr(row, "of_estimate")]
    trainings = [row for row in rows if row.kind != "matmul"]
    times = [1 / row.of_estimate for row in rows]
    errors = [abs(row.of_estimate - 1) for row in trainings]
    inside = [_is_inside(row, [other for other in rows if other is not row]) for row in rows]
    names = [row.program.split(",")[0] for row in rows]
    apart = [
        _is_inside(row, [other for other, its in zip(rows, names, strict=True) if its != name])
        for row, name in zip(rows, names, strict=True)
    ]
    return (
        f"{len(rows)} pairs, {len(trainings)} of them trainings, with a median error of "
        f"{statistics.median(errors):.1%}. Published times are {min(times):.2f} to {max(times):.2f} times "
        f"the estimate. Within the interval of the others are {sum(inside)} of {len(rows)}; of those of "
        f"other programs, {sum(apart)}."
    )


def _is_inside(row: SimpleNamespace, others: list[SimpleNamespace]) -> bool:
    shares = [other.of_estimate for other in others]
    return min(shares) <= row.of_estimate <= max(shares)


def main() -> int:
    """Prints the comparison; returns 1 where a share is not the table's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", metavar="WORDS", help="rows whose name holds one of them"
    )
    wanted = parser.parse_args().only or [""]
    rows = {f"{row.program} on {row.chip}": row for row in published() if row.bound == "compiled"}
    wrong = 0
    for name, pair in PAIRS.items():
        if not any(words in name for words in wanted):
            continue
        step = compile_program(pair.lower(pair.topology), pair.topology).step
        if not step.cost:
            print(f"{name}: does not compile here\n{step}")
            wrong += 1
            continue
        bound = step.cost.roofline
        share = bound.seconds / pair.seconds
        said = rows[name].of_bound if name in rows else float("nan")
        estimate = step.cost.estimated_seconds.value
        of_estimate = estimate / pair.seconds
        told = getattr(rows.get(name), "of_estimate", float("nan"))
        alone = f"FLOPs {bound.compute_seconds * 1e3:,.4g}, HBM traffic {bound.memory_seconds * 1e3:,.4g}"
        print(
            f"{name}: {pair.seconds * 1e3:,.4g} ms a step as published, at least {bound.seconds * 1e3:,.4g} "
            f"({alone}): {share:.1%}; the table says {said:.0%}\n"
            f"    estimated {estimate * 1e3:,.4g} ms: {of_estimate:.1%}; the table says {told:.0%}",
            flush=True,
        )
        wrong += not (abs(share - said) <= 0.02 and abs(of_estimate - told) <= 0.02)
    print(agreement())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
