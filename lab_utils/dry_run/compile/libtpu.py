"""The TPU compiler for programs that JAX lowered, in a process that has imported JAX.

The stages of the dry run do not come this way: they compile in a child process (stage.py).
"""

from dataclasses import dataclass

from lab_utils.dry_run.compile.hlo.summary import summarise
from lab_utils.dry_run.private import jax as _jax


@dataclass(frozen=True)
class Answer:
    """What the compiler says of one core's part of a program.

    Attributes:
        cost: "flops" and "bytes" of HBM of a step.
        memory: bytes: "arguments", "outputs", "alias", "temporaries", "code".
        hlo: the text of the optimised program.
    """

    cost: dict[str, float]
    memory: dict[str, int]
    hlo: str


def compile_stablehlo(stablehlo: str, topology: str, cores: int | None = None) -> Answer:
    """Compiles a program of JAX, split as its shardings say over all cores of `topology`, or so many.

    Args:
        stablehlo: as `jax.jit(...).trace(...).lower(lowering_platforms=("tpu",)).as_text()` gives it,
            lowered for as many devices of any kind.

    Raises:
        Exception: whatever libtpu says of a topology or a program that it refuses.
    """
    devices = _jax.tpu_devices(topology)[:cores]
    answer = _jax.answer(_jax.compile_partitioned(stablehlo, devices))
    cost = summarise(answer["hlo"]).cost(answer["cost"])
    return Answer(cost, answer["memory"], answer["hlo"])
