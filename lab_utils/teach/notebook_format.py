"""The canonical form of a notebook on disk, so that a diff shows what a person changed and nothing else."""

from pathlib import Path

import nbformat

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def canonical_text(notebook: nbformat.NotebookNode) -> str:
    """A notebook as text: one kernel, sorted keys, without the execution times that JupyterLab writes.

    Raises:
        nbformat.ValidationError: it is not a valid notebook.
    """
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def read(path: Path, *, outputs: bool) -> nbformat.NotebookNode:
    """A notebook with an id for each cell, outputs only if wanted.

    Raises:
        Exception: it cannot be read, or is not a valid notebook; nbformat raises many kinds.
    """
    notebook = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=4)
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.source = cell.source.replace("\r\n", "\n")
        if cell.cell_type == "code" and not outputs:
            cell.outputs, cell.execution_count = [], None
    nbformat.validate(notebook)
    return notebook
