"""The canonical form of a notebook on disk, so that a diff shows what a person changed and nothing else.

python -m lab_utils.teach.notebook_format [--fix] NOTEBOOK.ipynb ...
"""

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

from lab_utils.common import command, files

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
UNRUN = ("labs", "source")  # folders whose notebooks hold no outputs


def canonical(path: Path) -> str:
    """The text that the file should hold; see `canonical_text`.

    Raises:
        ValueError: the file cannot be read, or is not a valid notebook.
    """
    try:
        return canonical_text(_text(path), outputs=path.resolve().parent.name not in UNRUN)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a valid notebook: {error}") from None


def canonical_text(text: str, *, outputs: bool) -> str:
    """A notebook in its canonical form: one kernel, cell ids, sorted keys, outputs as told.

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
    return nbformat.reads(canonical_text(_text(path), outputs=outputs), as_version=4)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _give_ids(cells: list[nbformat.NotebookNode]) -> None:
    """An id for each cell without one, or with that of another; nbformat would draw one by chance."""
    known = {cell.get("id") for cell in cells}
    free = (name for n in itertools.count() if (name := f"cell-{n:02d}") not in known)
    seen = set()
    for cell in cells:
        if cell.get("id") is None or cell["id"] in seen:
            cell["id"] = next(free)
        seen.add(cell["id"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where a notebook was not in canonical form."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.teach.notebook_format",
        description="Check the form of notebooks.",
    )
    parser.add_argument("--fix", action="store_true", help="write the canonical form")
    parser.add_argument("notebooks", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    wrong = 0
    for path in options.notebooks:
        try:
            text = canonical(path)
        except ValueError as error:
            print(error, file=sys.stderr)
            wrong += 1
            continue
        if text != path.read_text(encoding="utf-8"):
            wrong += 1
            print(f"{path}: {'put into' if options.fix else 'not in'} canonical form")
            if options.fix:
                files.write(path, text)
    return min(1, wrong)


if __name__ == "__main__":
    command.run(main)
