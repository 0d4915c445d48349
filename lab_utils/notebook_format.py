"""The canonical form of a notebook on disk, so that a diff shows what a person changed and nothing else.

python -m lab_utils.notebook_format [--fix] NOTEBOOK.ipynb ...
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def canonical(path: Path) -> str:
    """The text that `path` should hold: one kernel, cell ids, sorted keys, labs without outputs.

    Solutions keep their outputs, but not the execution times that JupyterLab may have written.

    Raises:
        ValueError: the file is no valid notebook.
    """
    try:
        notebook = nbformat.from_dict(json.loads(path.read_text(encoding="utf-8")))
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
        for number, cell in enumerate(notebook.cells):
            cell.setdefault("id", f"cell-{number:02d}")
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code" and path.resolve().parent.name == "labs":
                cell.outputs, cell.execution_count = [], None
        nbformat.validate(notebook)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise ValueError(f"{path} is not a valid notebook: {error}") from None
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where a notebook was not in canonical form."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.notebook_format", description="Check the form of notebooks."
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
                path.write_text(text, encoding="utf-8")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
