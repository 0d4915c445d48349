"""What labs, and rooms beside the dry run, look at a program with: the parts behind `dry_run` that stay.

    from lab_utils.dry_run.inspect import compile_program, lower_estimator

Everything else inside of the dry run may move.
"""

# ruff: noqa: F401 (names for others)
# A program of one core: lowered, compiled for a TPU, or given to libtpu as JAX lowered it. The graphs that
# TPUEstimator builds, and walks over graphs. What a report holds, and one for a port that cannot be traced.
# A program that is run up to its training.
from lab_utils.dry_run.api import refusal
from lab_utils.dry_run.compile.stage import compile_program, compile_stablehlo
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.graphs import all_nodes, ancestors, everywhere
from lab_utils.dry_run.ops import is_random
from lab_utils.dry_run.private.tensorflow import replicas
from lab_utils.dry_run.private.tpu_estimator import settings
from lab_utils.dry_run.records import CompiledStep, Cost, LineCost, Memory
from lab_utils.dry_run.report.comparison import Trial
from lab_utils.dry_run.report.words import published, times_of_estimates
from lab_utils.dry_run.target import load_main, module_of_file
from lab_utils.dry_run.trace.build import trace
from lab_utils.dry_run.trace.messages import settings_finding
from lab_utils.dry_run.workload import Inputs
