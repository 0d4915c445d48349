"""What labs, and rooms beside the dry run, look at a program with: the parts behind `dry_run` that stay.

    from lab_utils.dry_run.inspect import compile_program, lower_estimator

Everything else inside of the dry run may move. A name is imported when it is taken: those for TensorFlow's
programs import TensorFlow, and the others do without it.
"""

import importlib

# A program of one core: lowered, compiled for a TPU, or given to libtpu as JAX lowered it. The graphs that
# TPUEstimator builds, and walks over graphs. What a report holds, and one for a port that cannot be traced.
# A program that is run up to its training.
_NAMES = {
    "api": ("refusal",),
    "compile.stage": ("compile_program", "compile_stablehlo"),
    "facts.traces": ("trace",),
    "frontends.cells": ("CannotJudge",),
    "frontends.estimator": ("lower_estimator",),
    "graphs": ("all_nodes", "ancestors", "everywhere"),
    "ops": ("is_random",),
    "private.tensorflow": ("replicas", "tpu_shard_context"),
    "private.tpu_estimator": ("settings",),
    "records": ("CompiledStep", "Cost", "LineCost", "Memory"),
    "report.comparison": ("Trial",),
    "report.words": ("published", "times_of_estimates"),
    "rules.messages": ("settings_finding",),
    "target": ("load_main", "module_of_file"),
    "workload": ("Inputs",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"lab_utils.dry_run.{_HOMES[name]}"), name)
