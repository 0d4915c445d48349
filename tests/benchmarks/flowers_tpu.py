"""The flowers model and the one that it descends from, side by side, by the TPU compiler.

    python tests/benchmarks/flowers_tpu.py [--topologies v2:2x2 v5e:2x2] [--output_dir out/benchmarks]

Both train with 128 images a core, which spares the old model the padding that its own batch of 32 had. Ours
is the port that `make flowers` judges, in bfloat16. Prints a table, writes
flowers_tpu.json. Nothing is measured: FLOP, bytes, layouts and memory are the compiler's, peaks are quoted.
"""

import argparse
import json
import tempfile
from pathlib import Path

from flowers_quality import old_model  # beside this file

from lab_utils import runtime

runtime.quiet()
from lab_utils import estimator  # noqa: E402, F401

# isort: split
import tensorflow as tf  # noqa: E402

from lab_utils.dry_run.compile.figures import Compiled  # noqa: E402
from lab_utils.dry_run.compile.stage import compile_program  # noqa: E402
from lab_utils.dry_run.frontends.estimator import lower_estimator  # noqa: E402
from lab_utils.dry_run.program import Program  # noqa: E402
from lab_utils.flowers.input_pipeline import train_size  # noqa: E402
from lab_utils.flowers.port import BATCH_PER_CORE  # noqa: E402
from lab_utils.flowers.settings import Settings  # noqa: E402
from lab_utils.flowers.task import make_estimator  # noqa: E402
from lab_utils.runtime import chips  # noqa: E402

LABELS = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]
TILE = 128  # edge of the matrix unit
LARGEST = 10  # tensors whose padding counts


def old(cores: int, model_dir: str) -> Program:
    """The old model's train step: 299 pixels, 10 and 20 filters, 300 dense units, float32."""
    tpu = tf.compat.v1.estimator.tpu
    built = tpu.TPUEstimator(
        old_model(len(LABELS), 0.001),
        config=tpu.RunConfig(model_dir=model_dir),
        use_tpu=False,
        train_batch_size=BATCH_PER_CORE * cores,
    )

    def input_fn(params):
        batch = params["batch_size"]
        images = tf.zeros([batch, 299, 299, 3])
        return tf.data.Dataset.from_tensors((images, tf.zeros([batch], tf.int32))).repeat()

    return lower_estimator(built, input_fn, cores=cores)


def ours(cores: int, model_dir: str) -> Program:
    """The train step of the flowers port."""
    settings = Settings(
        train_data_path="none",
        eval_data_path="none",
        output_dir=model_dir,
        train_batch_size=BATCH_PER_CORE * cores,
        eval_batch_size=BATCH_PER_CORE * cores,
        use_bfloat16=True,
    )
    side = train_size(settings.image_size)

    def input_fn(params):
        batch = params["batch_size"]
        images = tf.zeros([batch, side, side, 3], tf.uint8)
        features = {"image": images, "weight": tf.ones([batch])}
        return tf.data.Dataset.from_tensors((features, tf.zeros([batch], tf.int32))).repeat()

    return lower_estimator(make_estimator(settings, LABELS), input_fn, cores=cores)


def figures(compiled: Compiled) -> dict[str, float]:
    """What the table shows of a compiled step."""
    cost = {name: figure.value for name, figure in compiled.step.cost.items()}
    summary = compiled.summary
    filling = [each for each in summary.products if min(each.edges) >= TILE]
    shapes = [buffer.shape for buffer in summary.buffers[:LARGEST]]
    return {
        "images_per_second": cost["examples_per_second"] * compiled.program.cores,
        "gflop": cost["flops"] / 1e9,
        "megabytes": cost["bytes"] / 1e6,
        "arithmetic_ms": 1e3 * cost["flops"] / cost["peak_flops"],
        "memory_ms": 1e3 * cost["bytes"] / cost["peak_bandwidth"],
        "share_filling_tiles": sum(each.flops for each in filling) / cost["flops"],
        "worst_padding": max(shape.padded_bytes / shape.bytes for shape in shapes),
        "memory_mib": sum(
            compiled.step.memory[part].value
            for part in ("arguments", "temporaries", "outputs", "code")
        )
        / 2**20,
    }


ROWS = {
    "images_per_second": "images/s of the whole TPU, at most",
    "gflop": "arithmetic a step and core, GFLOP",
    "megabytes": "HBM traffic a step and core, MB",
    "arithmetic_ms": "time for the arithmetic at peak, ms",
    "memory_ms": "time for the HBM traffic at peak, ms",
    "share_filling_tiles": f"share of FLOP in products with no dimension below {TILE}",
    "worst_padding": f"most padding among the {LARGEST} largest tensors, times",
    "memory_mib": "memory of a core, MiB",
}


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """A block of lines for each topology."""
    lines = []
    for topology, models in results.items():
        lines.append(f"{topology:52}{'old':>12}{'ours':>12}{'ours/old':>12}")
        for key, name in ROWS.items():
            was, now = models["old"][key], models["ours"][key]
            form = "12,.0f" if max(was, now) >= 1000 else "12.2f"
            ratio = f"{now / was:12.3g}" if was else f"{'-':>12}"
            lines.append(f"{name:52}{was:{form}}{now:{form}}{ratio}")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Compiles, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topologies", nargs="+", default=["v2:2x2", "v5e:2x2"])
    parser.add_argument("--output_dir", type=Path, default=Path("out/benchmarks"))
    flags = parser.parse_args()
    results: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for topology in flags.topologies:
            cores = chips.cores(topology)
            results[topology] = {
                name: figures(compile_program(lower(cores, folder), topology))
                for name, lower in (("old", old), ("ours", ours))
            }
    print(table(results))
    kind = "computed by the TPU compiler; peaks quoted (lab_utils/runtime/chips.py)"
    print(kind)
    flags.output_dir.mkdir(parents=True, exist_ok=True)
    written = flags.output_dir / "flowers_tpu.json"
    content = {"batch_per_core": BATCH_PER_CORE, "kind": kind, "topologies": results}
    written.write_text(json.dumps(content, indent=2) + "\n")
    print(f"written: {written}")


if __name__ == "__main__":
    main()
