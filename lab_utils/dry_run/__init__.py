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
    from lab_utils.dry_run.choose import compare_topologies, largest_batch
    from lab_utils.dry_run.records import Finding, Severity, Stage
    from lab_utils.dry_run.report.report import Report

__all__ = [
    "Finding",
    "Report",
    "Severity",
    "Stage",
    "compare_topologies",
    "dry_run",
    "largest_batch",
]

_HOMES = {  # of the others: records
    "Report": "report.report",
    "compare_topologies": "choose",
    "dry_run": "api",
    "largest_batch": "choose",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'records')}"), name)
