"""The least time of the flowers step on a core of a TPU, by that TPU's compiler, which needs no TPU.

In a process of its own: the compiler may end it, and a chip that is here belongs to the measurement.
"""

import dataclasses
import json
import os
import subprocess
import sys
from typing import Any

from lab_utils import runtime
from lab_utils.runtime import chips

COMPUTED = "computed by the TPU compiler, with quoted peaks"


def least_time(kind: str, batch: int, image_size: int, dtype: str) -> float | None:
    """Seconds, from the compiler's FLOP and bytes and published peaks; None where it cannot compile.

    Args:
        kind: as JAX names the device; one that chips.py does not list cannot be compiled for.
        batch: images a core.
        image_size: side in pixels.
        dtype: as `keras_model.network` takes it.
    """
    if chips.of_jax_kind(kind) is None:
        return None
    command = [sys.executable, "-m", __name__, kind, str(batch), str(image_size), dtype]
    here = runtime.Machine("this machine", "CPU")  # so the child looks for no chip
    variables = runtime.environment(here, "jax") | {"JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"}
    child = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    return json.loads(child.stdout.splitlines()[-1]) if child.returncode == 0 else None


def compute(kind: str, batch: int, image_size: int, dtype: str) -> float:
    """As `least_time`, in this process; raises whatever JAX or libtpu raise."""
    import jax

    from lab_utils.dry_run.inspect import compile_for_one_core
    from lab_utils.runtime.verify.training import flowers

    step, *arguments = flowers(batch, image_size, dtype)
    shapes: Any = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
    # Not jax.jit(...).lower(...).compile() for the topology: jax 0.7.2 with libtpu 0.0.21.1 ends there.
    lowered = jax.jit(step).trace(*shapes).lower(lowering_platforms=("tpu",))
    hlo = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    chip = chips.of_jax_kind(kind)
    cost = compile_for_one_core(hlo, chip.example).cost
    if chip.megacore:  # one device, which has the whole chip's rates
        chip = dataclasses.replace(chip, cores=1)
    return chip.roofline(cost["flops"], cost["bytes"]).seconds


if __name__ == "__main__":
    print(json.dumps(compute(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
