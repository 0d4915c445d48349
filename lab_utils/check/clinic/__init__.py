"""The clinic: whole programs that run on a CPU and fail, or silently go wrong, on a TPU.

patient = ward("digits")        `patient.listing()` shows the program with numbered lines
patient.choices                 what may be wrong, by letter
patient.treated({21: "..."})    the program with other lines in the place of some
examine(patient, text)          a quick dry run of it, and whether it still computes the same
"""

from lab_utils.check.clinic.examine import dry_run_of, examine, loaded
from lab_utils.check.clinic.ward import NAMES, Ward, ward

__all__ = ["NAMES", "Ward", "dry_run_of", "examine", "loaded", "ward"]
