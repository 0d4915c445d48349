"""Does training reach the chip in front of you, and how near to the compiler's bound? A report to hand on.

    python -m lab_utils.runtime --verify --output report.json

A matmul, then one flowers step and ten, in Keras 3 on JAX: what Colab's TPU runtime has. The step's
least time comes from the same step, compiled for a core of that chip. The report holds versions, figures and
their kinds; neither names nor paths.
"""

from lab_utils.runtime.verify.report import render, verdict, verify

__all__ = ["render", "verdict", "verify"]
