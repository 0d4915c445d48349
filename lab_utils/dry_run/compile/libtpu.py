"""The TPU compiler for programs that JAX lowered, in a process that has imported JAX.

The stages of the dry run do not come this way: they compile in a child process (stage.py).
"""

from dataclasses import dataclass
from typing import Any

from lab_utils.dry_run.compile.hlo.summary import summarise
from lab_utils.dry_run.private import jax as _jax


@dataclass(frozen=True)
class Answer:
    """What the compiler says of a program on one core.

    Attributes:
        cost: "flops" and "bytes" of HBM of a step.
        memory: bytes: "arguments", "outputs", "alias", "temporaries", "code".
        hlo: the text of the optimised program.
    """

    cost: dict[str, float]
    memory: dict[str, int]
    hlo: str


def compile_sharded(stablehlo: str, topology: str) -> Answer:
    """Compiles a program with shardings, split over all cores of `topology`.

    Args:
        stablehlo: as `jax.jit(...).trace(...).lower(lowering_platforms=("tpu",)).as_text()` gives it,
            lowered for as many devices of any kind.

    Raises:
        Exception: whatever libtpu says of a topology or a program that it refuses.
    """
    return _answer(_jax.compile_partitioned(stablehlo, _jax.tpu_devices(topology)))


def compile_for_one_core(hlo: bytes, topology: str) -> Answer:
    """Compiles a serialized HloModuleProto for a single core of `topology`; raises as compile_sharded."""
    return _answer(_jax.compile_hlo(hlo, _jax.tpu_devices(topology)[:1], load=False))


def _answer(executable: Any) -> Answer:
    text = _jax.optimised_hlo(executable)
    return Answer(summarise(text).cost(_jax.cost(executable)), _jax.memory(executable), text)
