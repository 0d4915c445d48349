"""nbgrader with this course: it grades as `python -m lab_utils.grade` does.

solutions/instructor/nbgrader_config.py names the preprocessor. Only this module needs nbgrader.
"""

from typing import Any

import nbformat.v4
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float

from lab_utils.teach.grade import runs, submissions

_GRADE_ID = "check-"


class Grade(NbGraderPreprocessor):
    """In the place of Execute: each check cell gets its check's outcome, an error for all but correct."""

    step_seconds = Float(runs.Limits.step, help="for a cell or a check").tag(config=True)
    total_seconds = Float(runs.Limits.total, help="for a notebook").tag(config=True)
    memory_gib = Float(runs.Limits.memory / 2**30, help="for a notebook").tag(config=True)

    def preprocess(self, nb: nbformat.NotebookNode, resources: dict[str, Any]) -> tuple:
        """Grades a notebook, and writes what its checks say into their cells."""
        graded = self._graded(nb)
        for remark in graded.remarks:
            self.log.info("to be looked at: %s", remark)
        for cell in nb.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if cell.cell_type != "code" or not grade_id.startswith(_GRADE_ID):
                continue
            todo = grade_id.removeprefix(_GRADE_ID)
            result = graded.results.get(todo) or runs.Result("not graded", graded.problem)
            text = f"TODO {todo}: {result.status}. {result.why}"
            if result.points:
                output = nbformat.v4.new_output("display_data", {"text/plain": text})
            else:
                output = nbformat.v4.new_output(
                    "error", ename=result.status, evalue=text, traceback=[text]
                )
            cell.outputs = [output]
        return nb, resources

    def _graded(self, nb: nbformat.NotebookNode) -> runs.Graded:
        source = [(cell.cell_type, cell.source) for cell in nb.cells]
        submission = submissions.of_cells(("the notebook",), source)
        limits = runs.Limits(self.step_seconds, self.total_seconds, int(self.memory_gib * 2**30))
        graded = runs.grade(submission, limits)
        graded.remarks += submission.remarks
        return graded
