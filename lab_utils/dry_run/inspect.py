"""What labs, and rooms beside the dry run, look at a program with: the parts behind `dry_run` that stay.

    from lab_utils.dry_run.inspect import compile_program, lower_function

Everything else inside of the dry run may move. Importing this module imports neither TensorFlow nor JAX; the
first name taken from it imports what that name needs.
"""

# ruff: noqa: F401
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab_utils.dry_run.api import refusal
    from lab_utils.dry_run.compile.libtpu import compile_for_one_core, compile_sharded
    from lab_utils.dry_run.compile.stage import compile_program
    from lab_utils.dry_run.frontends.estimator import lower_estimator
    from lab_utils.dry_run.frontends.function import lower_function
    from lab_utils.dry_run.graphs import all_nodes, ancestors, everywhere
    from lab_utils.dry_run.lower.errors import CannotLower
    from lab_utils.dry_run.ops import is_random
    from lab_utils.dry_run.records import CompiledStep, Cost, Feed, LineCost
    from lab_utils.dry_run.rehearsal import replicas, settings
    from lab_utils.dry_run.report.published import published
    from lab_utils.dry_run.target import module_of_file
    from lab_utils.dry_run.trace.messages import settings_finding
    from lab_utils.dry_run.trace.stage import trace
    from lab_utils.dry_run.workload import Inputs

_HOMES = {
    # A program of one core: lowered, compiled for a TPU, or given to libtpu as JAX lowered it.
    "lower_estimator": "frontends.estimator",
    "lower_function": "frontends.function",
    "CannotLower": "lower.errors",
    "compile_program": "compile.stage",
    "compile_for_one_core": "compile.libtpu",
    "compile_sharded": "compile.libtpu",
    # The graphs that TPUEstimator builds, and walks over graphs.
    "trace": "trace.stage",
    "Inputs": "workload",
    "everywhere": "graphs",
    "ancestors": "graphs",
    "all_nodes": "graphs",
    "is_random": "ops",
    "settings": "rehearsal",
    "replicas": "rehearsal",
    # What a report holds, and one for a port that cannot be traced.
    "CompiledStep": "records",
    "Cost": "records",
    "Feed": "records",
    "LineCost": "records",
    "published": "report.published",
    "refusal": "api",
    "settings_finding": "trace.messages",
    "module_of_file": "target",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"lab_utils.dry_run.{_HOMES[name]}"), name)
