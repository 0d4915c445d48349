"""Where the code runs and which accelerator is there, read from the environment and from device files."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from lab_utils.common.figures import counted
from lab_utils.runtime import chips

PCI = Path("/sys/bus/pci/devices")
DEVICES = Path("/dev")
CGROUP = Path("/sys/fs/cgroup")
# Of control groups in version 2 and 1: the limit in bytes, what is in use, and files in it that may go.
_LIMITS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)
_GOOGLE = "0x1ae0"
_GENERATIONS = chips.generations_on_the_bus()


@dataclass(frozen=True)
class Machine:
    """What this process runs on.

    Attributes:
        place: "Colab", "Kaggle", "GKE", "TPU VM" or "this machine".
        accelerator: "TPU", "GPU" or "CPU".
        chips: TPU chips of this host; 0 without.
        generation: of these chips, such as "v5e"; "" where the bus does not tell.
    """

    place: str
    accelerator: str
    chips: int = 0
    generation: str = ""

    def __str__(self) -> str:
        if not self.chips:
            return f"{self.place}, {self.accelerator}, no TPU chip"
        return f"{self.place}, {counted(self.chips, 'TPU chip')} {self.generation}".rstrip()


def detect() -> Machine:
    """The machine that this process runs on; imports no framework and starts no process."""
    count, generation = _tpu_chips()
    gpu = any(DEVICES.glob("nvidia[0-9]*"))
    accelerator = "TPU" if count else "GPU" if gpu else "CPU"
    if "COLAB_RELEASE_TAG" in os.environ:
        where = "Colab"
    elif "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
        where = "Kaggle"
    elif count and "KUBERNETES_SERVICE_HOST" in os.environ:
        where = "GKE"
    else:
        where = "TPU VM" if count else "this machine"
    return Machine(where, accelerator, count, generation)


def _tpu_chips() -> tuple[int, str]:
    """The number of TPU chips on this machine's own bus, and their generation where it is known."""
    generations = []
    for device in PCI.glob("*"):
        with contextlib.suppress(OSError):
            vendor, number = ((device / name).read_text().strip() for name in ("vendor", "device"))
            if vendor == _GOOGLE and number in _GENERATIONS:
                generations.append(_GENERATIONS[number])
    if generations:
        return len(generations), generations[-1]
    # A container may hide the bus. v2 to v4 show as /dev/accel*, later ones as /dev/vfio/N.
    accel = list(DEVICES.glob("accel[0-9]*"))
    return len(accel) or len(list(DEVICES.glob("vfio/[0-9]*"))), ""


def free_memory() -> int:
    """Bytes that this process may still take: what the machine has, less where a container sets a limit."""
    free = psutil.virtual_memory().available
    for limit, used, statistics, files in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such group; its limit is "max"
            values = dict(line.split() for line in (CGROUP / statistics).read_text().splitlines())
            taken = int((CGROUP / used).read_text()) - int(values.get(files, 0))
            free = min(free, int((CGROUP / limit).read_text()) - taken)
    return max(0, free)
