"""What the TPU compiler says at each place of the labs' sliders -> lab_utils/notebook/sliders.json.

python -m lab_utils.teach.make_sliders

Takes some minutes. Needs libtpu and JAX, and no TPU.
"""

import contextlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

from lab_utils.common import command, files
from lab_utils.runtime import chips

TARGET = Path(__file__).parents[1] / "notebook" / "sliders.json"
WIDTH = 1024  # of the block: weights [WIDTH, 4 * WIDTH] and back
TOPOLOGIES = ("v5e:1x1", "v5e:2x2", "v5e:2x4", "v5e:4x4", "v2:2x2", "v3:2x2", "v6e:2x2")
GLOBAL_BATCH = 1024


def _jax() -> Any:
    """JAX on as many virtual CPU devices as the largest topology has cores."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    with contextlib.suppress(RuntimeError):  # JAX has started
        jax.config.update("jax_num_cpu_devices", max(map(chips.cores, TOPOLOGIES)))
    return jax


def _step(weights: dict, x: Any, target: Any) -> tuple[dict, Any]:
    """A step of gradient descent of the block of lab 10."""
    import jax
    import jax.numpy as jnp

    def loss_of(weights: dict) -> Any:
        return jnp.mean((jax.nn.relu(x @ weights["inner"]) @ weights["outer"] - target) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


def _compiled(name: str, batch: int) -> Any:
    """libtpu's answer for the step: weights on each core, examples split over the cores."""
    jax = _jax()
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from lab_utils.dry_run.inspect import compile_for_one_core, compile_sharded

    def shape(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, "float32")

    weights = {"inner": shape(WIDTH, 4 * WIDTH), "outer": shape(4 * WIDTH, WIDTH)}
    shapes, cores = (weights, shape(batch, WIDTH), shape(batch, WIDTH)), chips.cores(name)
    if cores == 1:
        return compile_for_one_core(_hlo(jax.jit(_step), shapes), name)
    mesh = Mesh(np.array(jax.devices()[:cores]), ("cores",))
    whole, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("cores",)))
    jitted = jax.jit(_step, in_shardings=(whole, split, split), out_shardings=whole)
    lowered = jitted.trace(*shapes).lower(lowering_platforms=("tpu",))
    return compile_sharded(lowered.as_text(), name)


def _hlo(jitted: Any, shapes: tuple) -> bytes:
    lowered = jitted.trace(*shapes).lower(lowering_platforms=("tpu",))
    return lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()


def topology(name: str) -> dict[str, float]:
    """GLOBAL_BATCH examples split over the cores of a topology: each one's share, and the bound."""
    chip, cores = chips.parse(name)
    cost = _compiled(name, GLOBAL_BATCH).cost
    bound = chip.roofline(cost["flops"], cost["bytes"])
    return {
        "cores": cores,
        "examples per core": GLOBAL_BATCH // cores,
        "bound on a step, µs": round(1e6 * bound.seconds, 1),
        "examples/s of all cores, at most": round(GLOBAL_BATCH / bound.seconds),
    }


SLIDERS = {
    "topology": (topology, TOPOLOGIES, "topology"),
}


def main() -> int:
    """Asks the compiler at every place and writes the answers."""
    answers: dict[str, Any] = {"compiler": f"libtpu {metadata.version('libtpu')}"}
    for name, (ask, places, axis) in SLIDERS.items():
        answers[name] = {"axis": axis, "rows": {str(place): ask(place) for place in places}}
    files.write(TARGET, json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    command.run(main)
