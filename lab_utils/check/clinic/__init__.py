"""The clinic: whole programs that run on a CPU and fail, or silently go wrong, on a TPU.

patient = ward("digits")        `patient.sick` is the program, `patient.choices` what may be wrong, by letter
patient.changes(text)           where a learner's version is another one
examine.examine(patient, text)  a quick dry run of it, and whether it still computes the same
"""

from lab_utils.check.clinic.ward import NAMES, Ward, ward

__all__ = ["NAMES", "Ward", "ward"]
