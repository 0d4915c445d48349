"""The marks in a source notebook: what a learner is to write, what its start is, and what is graded.

What a learner is to write stands between nbgrader's markers, below a comment that names its TODO:

    def inference(images):
        # TODO 1b: from images to logits
        ### BEGIN SOLUTION
        ...
        ### END SOLUTION

In the lab the region becomes `raise NotImplementedError("TODO 1b: from images to logits")`. A region that
needs another start, as a value does, gives it in its first lines, each of them marked:

        ### BEGIN SOLUTION
        # STARTER: steps = ...
        steps = 225
        ### END SOLUTION

A program with planted faults is named instead, and marked by itself: see `lab_utils.check.programs`.

Cells with a region and cells with a check get nbgrader's metadata in the source and in the lab. Code
cells with a region and those tagged "given" make up the module of the solution, which
`lab_utils.check.sources` makes; `lab_utils.check.working` takes from it what a learner has not solved.
"""

import re
from typing import TYPE_CHECKING

from lab_utils.check import programs
from lab_utils.check.sources import REGION, STARTER, TODO

if TYPE_CHECKING:
    import nbformat

CHECK = re.compile(r'^check\("(\d+[a-z])"', re.M)


def starter(source: str) -> str:
    """A cell's source as the learner gets it.

    Raises:
        ValueError: a region has no starter and no TODO above it, or a marker has no partner.
    """

    def replace(region: re.Match) -> str:
        lines = STARTER.findall(region[2])
        if not lines:
            todos = TODO.findall(source[: region.start()])
            if not todos:
                raise ValueError(f"no `# TODO 1a: ...` above this region:\n{region[0]}")
            message = todos[-1][0].replace('"', "'")
            lines = [f'raise NotImplementedError("{message}")']
        return "\n".join(region[1] + line for line in lines)

    released = REGION.sub(replace, source)
    if "### BEGIN" in released or "### END" in released:
        raise ValueError(f"a solution marker without its partner:\n{source}")
    return released


def stamp(notebook: "nbformat.NotebookNode") -> None:
    """Gives cells nbgrader's metadata: those to solve, and those whose check gives a point."""
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        check = CHECK.search(cell.source) if cell.cell_type == "code" else None
        if cell.cell_type != "code" or not (check or REGION.search(programs.expand(cell.source))):
            continue
        cell.metadata["nbgrader"] = {
            "grade_id": f"check-{check[1]}" if check else f"solution-{cell.id}",
            "grade": bool(check),
            "solution": not check,
            "locked": bool(check),
            "task": False,
            "schema_version": 3,
        } | ({"points": 1} if check else {})
