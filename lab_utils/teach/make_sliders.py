"""What the TPU compiler says at each place of the labs' sliders -> lab_utils/notebook/sliders.json.

python -m lab_utils.teach.make_sliders

Takes some minutes. Needs libtpu and JAX, and no TPU.
"""

import json
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from lab_utils.common import command, files
from lab_utils.runtime import chips

TARGET = Path(__file__).parents[1] / "notebook" / "sliders.json"
TOPOLOGIES = ("v5e:1x1", "v5e:2x2", "v5e:2x4", "v5e:4x4", "v2:2x2", "v3:2x2", "v6e:2x2")
WIDTH = 1024  # of the block of lab 10: weights [WIDTH, 4 * WIDTH] and back
GLOBAL_BATCH = 1024


def row(topology: str) -> dict[str, float]:
    """GLOBAL_BATCH examples split over the cores of a topology: each one's share, and the bound."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    from lab_utils.dry_run import dry_run

    def step(weights: dict, x: Any, target: Any) -> tuple[dict, Any]:
        def loss_of(weights: dict) -> Any:
            return jnp.mean((jax.nn.relu(x @ weights["inner"]) @ weights["outer"] - target) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss

    _, cores = chips.parse(topology)
    mesh = jax.make_mesh((cores,), ("cores",), devices=jax.devices()[:cores])
    whole, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("cores",)))
    program = jax.jit(step, in_shardings=(whole, split, split), out_shardings=whole)
    array = partial(jax.ShapeDtypeStruct, dtype="float32")
    weights = {"inner": array((WIDTH, 4 * WIDTH)), "outer": array((4 * WIDTH, WIDTH))}
    examples = array((GLOBAL_BATCH, WIDTH))
    report = dry_run(program, (weights, examples, examples), topology, stages=["compile"])
    seconds = report.cost.roofline.seconds
    return {
        "cores": cores,
        "examples per core": GLOBAL_BATCH // cores,
        "bound on a step, µs": round(1e6 * seconds, 1),
        "examples/s of all cores, at most": round(GLOBAL_BATCH / seconds),
    }


def main() -> int:
    """Asks the compiler at every place and writes the answers."""
    import jax

    jax.config.update("jax_num_cpu_devices", max(chips.parse(each)[1] for each in TOPOLOGIES))
    rows = {topology: row(topology) for topology in TOPOLOGIES}
    answers = {
        "compiler": f"libtpu {metadata.version('libtpu')}",
        "topology": {"axis": "topology", "rows": rows},
    }
    files.write(TARGET, json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    command.run(main)
