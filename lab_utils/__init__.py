"""Plumbing for the labs: a TensorFlow model's way to a Cloud TPU, and a dry run without one.

Importing this package imports neither TensorFlow nor JAX, and changes neither signals nor the environment.
"""

import logging

DISTRIBUTION = "tpu-porting-labs"  # the name under which the package is installed

# Where a user has no home, as in many containers, Matplotlib takes a temporary folder, and says so at length.
logging.getLogger("matplotlib").addFilter(
    lambda record: record.funcName != "_get_config_or_cache_dir"
)
