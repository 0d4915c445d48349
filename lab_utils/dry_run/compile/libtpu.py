"""The TPU compiler for programs that JAX lowered, in a process that has imported JAX.

The stages of the dry run do not come this way: they compile in a child process (stage.py).
"""

from typing import Any

from lab_utils.dry_run.compile.hlo.summary import summarise
from lab_utils.dry_run.private import jax as _jax


def compile_stablehlo(stablehlo: str, topology: str, cores: int | None = None) -> dict[str, Any]:
    """Compiles a program of JAX, split as its shardings say over all cores of `topology`, or so many.

    Args:
        stablehlo: as `jax.jit(...).trace(...).lower(lowering_platforms=("tpu",)).as_text()` gives it,
            lowered for as many devices of any kind.

    Returns:
        as private.jax.answer: "cost" and "memory" of a core, and "hlo"; with all rounds of loops counted.

    Raises:
        Exception: whatever libtpu says of a topology or a program that it refuses.
    """
    devices = _jax.tpu_devices(topology)[:cores]
    answer = _jax.answer(_jax.compile_partitioned(stablehlo, devices))
    return answer | {"cost": summarise(answer["hlo"]).cost(answer["cost"])}
