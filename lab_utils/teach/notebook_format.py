"""The canonical form of a notebook on disk, so that a diff shows what a person changed and nothing else."""

import itertools
import json
from pathlib import Path

import nbformat

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def canonical_text(text: str, *, outputs: bool) -> str:
    """A notebook in its canonical form: one kernel, cell ids, sorted keys, outputs only if wanted.

    The execution times that JupyterLab may have written go in any case.

    Raises:
        ValueError: the text is not a valid notebook.
    """
    try:
        notebook = nbformat.from_dict(json.loads(text))
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
        _give_ids(notebook.cells)
        for cell in notebook.cells:
            cell.source = "".join(cell.source).replace("\r\n", "\n")
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code" and not outputs:
                cell.outputs, cell.execution_count = [], None
        nbformat.validate(notebook)
        # Once through the library: it has all texts as lists of lines.
        whole = nbformat.reads(json.dumps(notebook), as_version=4)
        return nbformat.writes(whole, sort_keys=True) + "\n"
    except (AttributeError, TypeError, RecursionError, nbformat.ValidationError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def read(path: Path, *, outputs: bool) -> nbformat.NotebookNode:
    """A notebook as its canonical form has it: the same each time, also where ids are missing or doubled.

    Raises:
        OSError, ValueError: it cannot be read, or is not a valid notebook.
    """
    text = path.read_text(encoding="utf-8-sig")
    return nbformat.reads(canonical_text(text, outputs=outputs), as_version=4)


def _give_ids(cells: list[nbformat.NotebookNode]) -> None:
    """An id for each cell without one, or with that of another; nbformat would draw one by chance."""
    known = {cell.get("id") for cell in cells}
    free = (name for n in itertools.count() if (name := f"cell-{n:02d}") not in known)
    seen = set()
    for cell in cells:
        if cell.get("id") is None or cell["id"] in seen:
            cell["id"] = next(free)
        seen.add(cell["id"])
