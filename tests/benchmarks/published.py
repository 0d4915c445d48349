"""The compiled bounds behind lab_utils/dry_run/report/published.yaml, computed again.

    python tests/benchmarks/published.py [--chip v2]

ResNet-50 and ViT-S/16 stand for the programs that were measured: the same network, batch a core and number
type, not the same code. Prints each published speed, the bound, and their ratio beside the table's.
"""

import argparse
import sys
import tempfile

import resnet50
import vit

from lab_utils import chips
from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.frontends.jax import JaxWorkload
from lab_utils.dry_run.report.published import table
from lab_utils.estimator import tf

# Of each chip: topology, examples a core, Keras' policy, and images/s a core as published.
COMPILED = {
    "v2": ("v2:2x2", 128, "mixed_bfloat16", resnet50.THROUGHPUT / 8),
    # 90 epochs of 99 % of ImageNet's images in 6 to 7 hours; "" is ViT-S/16 in JAX.
    "v3": ("v3:2x2", 128, "", 90 * 0.99 * 1_281_167 / (6.5 * 3600) / 8),
}


def bound(topology: str, batch: int, policy: str) -> float:
    """Images/s of a core at the roofline bound."""
    cores, tpu = chips.cores(topology), tf.compat.v1.estimator.tpu
    if not policy:
        program = JaxWorkload(*vit.step_of(batch), topology).lower(cores)
        return compile_program(program, topology).step.cost.examples_per_second.value
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp(), tpu_config=tpu.TPUConfig(100))
    port = tpu.TPUEstimator(
        resnet50.model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=batch * cores,
        params={"policy": policy},
    )
    program = lower_estimator(port, resnet50.input_fn, cores=cores)
    return compile_program(program, topology).step.cost.examples_per_second.value


def main() -> int:
    """Prints the comparison; returns 1 where a ratio is not the table's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", choices=COMPILED, action="append")
    wrong = 0
    for chip in parser.parse_args().chip or COMPILED:
        topology, batch, policy, measured = COMPILED[chip]
        most = bound(topology, batch, policy)
        row = next(row for row in table() if row.chip == chip and row.bound == "compiled")
        print(
            f"{row.program} on {chip}: {measured:,.0f} images/s a core as published, {most:,.0f} at most: "
            f"{measured / most:.1%}; the table says {row.of_bound:.0%}"
        )
        wrong += abs(measured / most - row.of_bound) > 0.02
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
