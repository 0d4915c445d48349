"""This machine: where the code runs, what it has, how quiet the frameworks are, and the way to its TPU.

    runtime.prepare_tpu()  # before TensorFlow or JAX is imported

`python -m lab_utils.runtime` says what is here; with `--verify` it trains on it. No framework is imported
until one is needed.
"""

from lab_utils.common.notices import CellLine, hide_native_notices, in_notebook, quiet
from lab_utils.runtime.places import Machine, detect
from lab_utils.runtime.tpu import NO_CHIP, answers, prepare_tpu

__all__ = [
    "NO_CHIP",
    "CellLine",
    "Machine",
    "answers",
    "detect",
    "hide_native_notices",
    "in_notebook",
    "prepare_tpu",
    "quiet",
]
