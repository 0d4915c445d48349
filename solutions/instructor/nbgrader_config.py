"""Copy this file into the folder of an nbgrader course; solutions/instructor/grading.md says how to go on."""

from nbgrader import preprocessors

from lab_utils.teach.grade.nbgrader import Grade

c = get_config()  # noqa: F821  (nbgrader gives it)

c.CourseDirectory.course_id = "tpu-porting-labs"

# A release is the lab as it stands in labs/, so nothing is cleared but outputs.
c.GenerateAssignment.preprocessors = [
    preprocessors.LockCells,
    preprocessors.ClearOutput,
    preprocessors.CheckCellMetadata,
    preprocessors.ComputeChecksums,
    preprocessors.SaveCells,
    preprocessors.ComputeChecksums,
    preprocessors.CheckCellMetadata,
]

# Grading runs the learner's cells and our checks apart from the notebook, under limits.
c.Autograde.autograde_preprocessors = [
    Grade,
    preprocessors.LimitOutput,
    preprocessors.SaveAutoGrades,
    preprocessors.AssignLatePenalties,
    preprocessors.CheckCellMetadata,
]
c.Grade.step_seconds = 60
c.Grade.total_seconds = 600
c.Grade.memory_gib = 4

# For `nbgrader validate`, which learners run: whole labs take minutes.
c.ExecutePreprocessor.timeout = 900
c.ExecutePreprocessor.iopub_timeout = 120
