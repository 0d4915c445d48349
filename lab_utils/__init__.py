"""Behind the labs: a TensorFlow model's way to a Cloud TPU, and a dry run without one. Four groups of rooms:

    what labs use   estimator (the genuine Estimator), check (TODOs, hints, clinic), notebook (what cells
                    show), runtime (this machine, chips, doctor)
    the job         datasets, convert (photographs to TFRecords), flowers, equivalence (is it the same model?)
    the tool        dry_run (a port through the TPU compiler), port (a program as a port; contrib inside)
    the teacher's   teach (build, grade, guide, slides); `build` and `grade` are its commands

Under all of them stands `common`. Layers and budgets: tests/test_architecture.py.
Importing this package imports neither TensorFlow nor JAX, and does not change the environment. It changes a
signal only where Python imports it to start one of its commands.
"""

import logging
import signal
import sys

DISTRIBUTION = "tpu-porting-labs"  # the name under which the package is installed

# Where a user has no home, as in many containers, Matplotlib takes a temporary folder, and says so at length.
logging.getLogger("matplotlib").addFilter(
    lambda record: record.funcName != "_get_config_or_cache_dir"
)

# `python -m lab_utils.convert` imports for a second before the command begins (common/command.py). Until
# then nothing is done, so Ctrl-C ends the process at once, and shows no stack of imports.
_STARTS = sys.argv[:1] == ["-m"] and any(word.startswith("lab_utils") for word in sys.orig_argv)
if _STARTS and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
