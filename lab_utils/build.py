"""solutions/ -> labs/: each lab is made from its solution, the one source.

python -m lab_utils.build            writes labs/NN_name.ipynb, the solutions as modules for the checks, and
                                     the labs' titles for the rules of the dry run
python -m lab_utils.build --execute  runs the solutions first and keeps their outputs; names may follow
python -m lab_utils.build --check    writes nothing; exit status 1 where a file is not what it would be

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

Cells with a region and cells with a check get nbgrader's metadata, so that nbgrader works on the same
files. Code cells with a region and those tagged "given" make up the module of the solution, which
`lab_utils.check.working` takes what a learner has not solved from.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat

from lab_utils import notebook_format
from lab_utils.check import life

ROOT = Path(__file__).parents[1]
REFERENCE = Path("lab_utils/check/solved")
TITLES = Path("lab_utils/dry_run/rules/labs.json")
REGION = re.compile(r"^([ ]*)### BEGIN SOLUTION\n(.*?)^\1### END SOLUTION$", re.M | re.S)
STARTER = re.compile(r"^[ ]*# STARTER: ?(.*)$", re.M)
TODO = re.compile(r"^[ ]*# (TODO \d+[a-z]: .*)$", re.M)
CHECK = re.compile(r'^check\("(\d+[a-z])"', re.M)
HEADING = re.compile(r"# (\d\d) · (.+)")


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
            told = todos[-1].replace('"', "'")
            lines = [f'raise NotImplementedError("{told}")']
        return "\n".join(region[1] + line for line in lines)

    released = REGION.sub(replace, source)
    if "### BEGIN" in released or "### END" in released:
        raise ValueError(f"a solution marker without its partner:\n{source}")
    return released


def solved(source: str) -> str:
    """A cell's source without markers and starters."""
    return re.sub(r"^[ ]*(### (BEGIN|END) SOLUTION|# STARTER:.*)\n?", "", source, flags=re.M)


def module(notebook: nbformat.NotebookNode, name: str) -> str:
    """The solution as a Python module: the cells with a region, and those tagged "given"."""
    cells = [
        solved(cell.source).strip()
        for cell in notebook.cells
        if cell.cell_type == "code"
        and ("given" in cell.metadata.get("tags", []) or REGION.search(cell.source))
        and not re.search(r"^predict\(", cell.source, re.M)
    ]
    head = f'"""Made from solutions/{name} by `python -m lab_utils.build`: change it there."""\n'
    return head + "\n" + "\n\n\n".join(cells) + "\n"


def stamp(notebook: nbformat.NotebookNode) -> None:
    """Gives cells nbgrader's metadata: those to solve, and those whose check gives a point."""
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        check = CHECK.search(cell.source) if cell.cell_type == "code" else None
        if cell.cell_type != "code" or not (check or REGION.search(cell.source)):
            continue
        cell.metadata["nbgrader"] = {
            "grade_id": f"check-{check[1]}" if check else f"solution-{cell.id}",
            "grade": bool(check),
            "solution": not check,
            "locked": bool(check),
            "task": False,
            "schema_version": 3,
        } | ({"points": 1} if check else {})


def title(notebook: nbformat.NotebookNode, name: str) -> str:
    """The title of the notebook `name`, from its first line: "# 04 · Metrics and the host".

    Raises:
        ValueError: the first cell does not begin so, with the number of the file's name.
    """
    found = HEADING.match(notebook.cells[0].source) if notebook.cells else None
    if not found or found[1] != name[:2]:
        raise ValueError(f"{name}: the first line is not '# {name[:2]} · TITLE'")
    return found[2].strip()


def build(into: Path) -> list[Path]:
    """Writes every solution in its canonical form, its lab, its module and all titles below `into`.

    Returns:
        The paths of the files.
    """
    written, titles = [], {}
    for source in sorted((ROOT / "solutions").glob("*.ipynb")):
        notebook = nbformat.read(source, as_version=4)
        titles[source.name[:2]] = title(notebook, source.name)
        stamp(notebook)
        code = module(notebook, source.name)
        written.append(_write(notebook, into / "solutions" / source.name))
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = starter(cell.source)
        written.append(_write(notebook, into / "labs" / source.name))
        written.append(_text(code, into / REFERENCE / f"lab_{source.name[:2]}.py"))
    text = json.dumps(titles, ensure_ascii=False, indent=2) + "\n"
    written.append(_text(text, into / TITLES))
    return written


def _text(text: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _write(notebook: nbformat.NotebookNode, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return _text(notebook_format.canonical(path), path)


def stale() -> list[str]:
    """The files that `build` would change, and those that no solution accounts for."""
    with tempfile.TemporaryDirectory() as scratch:
        wanted = {str(path.relative_to(scratch)): path.read_text() for path in build(Path(scratch))}
    patterns = ("solutions/*.ipynb", "labs/*.ipynb", f"{REFERENCE}/lab_*.py", str(TITLES))
    there = {
        str(path.relative_to(ROOT)): path.read_text()
        for pattern in patterns
        for path in ROOT.glob(pattern)
    }
    return sorted(name for name in wanted | there if wanted.get(name) != there.get(name))


def execute(names: Iterable[str]) -> None:
    """Runs those solutions, as a learner without any progress, and keeps their outputs."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        os.environ[life.SILENCE] = "1"
        for path in sorted((ROOT / "solutions").glob("*.ipynb")):
            if names and not any(name in path.name for name in names):
                continue
            notebook = nbformat.read(path, as_version=4)
            resources = {"metadata": {"path": str(path.parent)}}
            NotebookClient(notebook, timeout=600, resources=resources).execute()
            text = _write(notebook, path).read_text(encoding="utf-8")
            path.write_text(text.replace(str(ROOT), "."), encoding="utf-8")  # nobody else's paths
            print(f"executed {path.relative_to(ROOT)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where --check found a stale file."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.build", description="Make labs/ from solutions/."
    )
    parser.add_argument("--check", action="store_true", help="write nothing, name stale files")
    parser.add_argument("--execute", nargs="*", metavar="NAME", help="run solutions first")
    options = parser.parse_args(arguments)
    if options.check:
        names = stale()
        for name in names:
            print(f"{name} is not what its solution makes: run `python -m lab_utils.build`")
        return min(1, len(names))
    if options.execute is not None:
        execute(options.execute)
    for path in build(ROOT):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
