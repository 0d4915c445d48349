"""The clinic: whole programs that run on a CPU and fail, or silently go wrong, on a TPU.

patient = ward("digits")        `patient.sick` is the program, `patient.choices` what may be wrong, by letter
patient.changes(text)           where a learner's version is another one
examine.examine(patient, text)  a quick dry run of it, and whether it still computes the same
"""

from typing import Any

from lab_utils.check.clinic.ward import NAMES, Ward, ward

__all__ = ["NAMES", "Ward", "ward"]


def __getattr__(name: str) -> Any:
    """`loaded` and `dry_run_of`, which take TensorFlow: imported when first asked for."""
    if name not in ("loaded", "dry_run_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.examine"), name)
