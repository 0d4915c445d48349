"""Plumbing for the labs: a TensorFlow model's way to a Cloud TPU, and a dry run without one.

Importing this package imports neither TensorFlow nor JAX.
"""

DISTRIBUTION = "tpu-porting-labs"  # the name under which the package is installed
