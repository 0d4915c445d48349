"""A learner's port through the real TPU compiler and on virtual cores, on a machine without a TPU.

    from lab_utils.dry_run import dry_run
    report = dry_run(estimator, input_fn, topology="v2:2x2")

or `python -m lab_utils.dry_run MODULE:FUNCTION`. Importing this package imports neither TensorFlow nor JAX;
the first name taken from it imports what that name needs.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab_utils.dry_run.api import dry_run
    from lab_utils.dry_run.records import Finding, Severity, Stage
    from lab_utils.dry_run.report.report import Report

__all__ = ["Finding", "Report", "Severity", "Stage", "dry_run"]

_HOMES = {"dry_run": "api", "Report": "report.report"}  # of the others: records


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'records')}"), name)
