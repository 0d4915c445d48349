"""Plumbing for the labs: a TensorFlow model's way to a Cloud TPU, and a dry run without one.

Importing this package imports neither TensorFlow nor JAX.
"""

import logging
import sys

from lab_utils.common import interrupts

DISTRIBUTION = "tpu-porting-labs"  # the name under which the package is installed

# Where a user has no home, as in many containers, Matplotlib takes a temporary folder, and says so at length.
logging.getLogger("matplotlib").addFilter(
    lambda record: record.funcName != "_get_config_or_cache_dir"
)

# `python -m` is looking for a module of this package: Ctrl-C waits until the command can answer (command.py).
# A learner's package that imports this one is started by `python -m`, too, and answers for itself.
_own = any(argument.partition(".")[0] == __name__ for argument in getattr(sys, "orig_argv", []))
if _own and sys.argv[:1] == ["-m"]:
    interrupts.hold(interrupts.CTRL_C)
