"""How much of a step this machine can run on virtual cores: it takes seconds, not minutes."""

import psutil

from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import CompiledStep

# A pod's program is compiled for all its cores; so many of them are run here.
MOST_VIRTUAL_CORES = 8
# In all steps together; a few seconds on two cores. Beyond it, the virtual cores run a smaller batch.
MOST_VIRTUAL_FLOP = 4e10
_FEW = 8  # examples a core


def affordable_cores(program: Program) -> int:
    """How many of the program's cores run here."""
    return min(program.cores, MOST_VIRTUAL_CORES)


def affordable_batch(
    program: Program, compiled: CompiledStep | None, cores: int, steps: int
) -> int:
    """Examples a virtual core that this machine can work through: the port's own batch, or a part of it.

    A step costs about as many FLOP and bytes here as the TPU compiler counts for it; without
    figures (for example where it did not fit), 8 examples a core are used.
    """
    batch = program.per_core_batch
    if not compiled or not compiled.cost:
        return batch if batch % _FEW else _FEW
    flops = compiled.cost.flops.value * cores * steps
    size = (compiled.memory.temporaries.value + compiled.memory.arguments.value) * cores
    room = psutil.virtual_memory().available / 2
    part = 1.0
    while max(flops / MOST_VIRTUAL_FLOP, size / room) * part > 1 and not batch % (2 * _FEW):
        batch, part = batch // 2, part / 2
    return batch
