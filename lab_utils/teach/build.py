"""solutions/source/ -> labs/ and solutions/: each lab and each solution is made from one marked notebook.

python -m lab_utils.build            writes labs/NN_name.ipynb and solutions/NN_name.ipynb, the labs' titles
                                     for the dry run's rules, and their minutes in README. Links that open
                                     a lab elsewhere, minutes and questions come in on the way
python -m lab_utils.build --execute  runs the solutions too and keeps their outputs; names may follow
python -m lab_utils.build --check    writes nothing; exit status 1 where a file is not what it would be

solutions/NN_name.ipynb is for reading: without markers, and with the outputs of its last run, which a
build leaves alone.
"""

import argparse
import contextlib
import copy
import json
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from unittest import mock

import nbformat

from lab_utils.check.programs import expand
from lab_utils.check.setup import SILENCE
from lab_utils.check.sources import without_marks
from lab_utils.common import command, files, scratch
from lab_utils.teach import minutes, quiz, slides
from lab_utils.teach.marks import stamp, starter
from lab_utils.teach.setup_cell import Course, links, setup_cell

ROOT = Path(__file__).parents[2]
SOURCES = Path("solutions/source")
TITLES = Path("lab_utils/dry_run/rules/labs.json")
ROW = re.compile(r"^(\| (\d\d) [^|]+\| )(\d+)( \|)", re.M)  # a lab's number and title, its minutes
FOLDED = 15  # lines of a given cell, from which on it is shown folded
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
HEADING = re.compile(r"# (\d\d) · (.+)")
SET_UP = re.compile(r"^ready\(.*\)\Z", re.M)  # the last line of the cell in whose place it stands


def canonical_text(notebook: nbformat.NotebookNode) -> str:
    """A notebook as text, so that a diff shows what a person changed and nothing else.

    It has one kernel, sorted keys, and none of the execution times that JupyterLab writes.

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
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        if cell.cell_type == "code" and not outputs:
            cell.outputs, cell.execution_count = [], None
    nbformat.validate(notebook)
    return notebook


class NotebookError(Exception):
    """A notebook that cannot be used; the message names the file."""


def _lab(source: nbformat.NotebookNode, name: str, course: Course) -> nbformat.NotebookNode:
    """The lab of a source: starters, the set-up cell, folded cells, links to open it elsewhere."""
    notebook = _with_cells(source, starter, course)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        long = "given" in tags and cell.source.count("\n") >= FOLDED
        if long or minutes.FOLDED in tags:
            cell.metadata["jupyter"] = {"source_hidden": True}
    if opened := links(course, name):
        heading, newline, rest = notebook.cells[0].source.partition("\n")
        notebook.cells[0].source = f"{heading}\n\n{opened}{newline}{rest}"
    return notebook


def _title(notebook: nbformat.NotebookNode, name: str) -> str:
    """The title of the notebook `name`, from its first line: "# 04 · Metrics and the host"."""
    heading = HEADING.match(notebook.cells[0].source) if notebook.cells else None
    if not heading or heading[1] != name[:2]:
        raise ValueError(f"{name}: the first line is not '# {name[:2]} · TITLE'")
    return heading[2].strip()


def build() -> dict[str, str]:
    """Each source in canonical form, its lab, its solution, and all titles: path below ROOT -> text.

    Raises:
        NotebookError: a source or the outputs of a solution cannot be read, or no lab can be made of it.
    """
    texts, sources, titles, lab_minutes = {}, {}, {}, {}
    course, questions = Course.of(ROOT), quiz.questions(ROOT)
    for path in _sources():
        with _naming(path):
            sources[path.name] = read(path, outputs=False)
            titles[path.name] = _title(sources[path.name], path.name)
    for path in _sources():
        name, number, source = path.name, path.name[:2], sources[path.name]
        with _naming(path):
            of_lab = questions.get(number, [])
            lab_minutes[number] = minutes.of_lab(source, len(of_lab))
            minutes.stamp(source, name, lab_minutes[number], titles)
            stamp(source)
            texts[f"{SOURCES}/{name}"] = canonical_text(source)
            if of_lab:  # above the last cell of text, which is the lab's recap
                recap = max(n for n, c in enumerate(source.cells) if c.cell_type == "markdown")
                source.cells.insert(recap, quiz.cell(of_lab))
            texts[f"labs/{name}"] = canonical_text(_lab(source, name, course))
        with _naming(ROOT / "solutions" / name):
            texts[f"solutions/{name}"] = canonical_text(_solution(source, name, course))
    if (readme := ROOT / "README.md").exists():
        texts["README.md"] = ROW.sub(
            lambda row: f"{row[1]}{lab_minutes.get(row[2], row[3])}{row[4]}",
            readme.read_text(encoding="utf-8"),
        )
    rule_titles = {name[:2]: text for name, text in titles.items()}
    texts[str(TITLES)] = json.dumps(rule_titles, ensure_ascii=False, indent=2) + "\n"
    return texts


def _sources() -> list[Path]:
    return sorted((ROOT / SOURCES).glob("*.ipynb"))


def _with_cells(
    source: nbformat.NotebookNode, change: Callable[[str], str], course: Course
) -> nbformat.NotebookNode:
    """A copy with each code cell's source changed; the set-up cell stands where ready() is called."""
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            last = SET_UP.search(cell.source)
            cell.source = setup_cell(course, last[0]) if last else change(expand(cell.source))
    return notebook


def _solution(source: nbformat.NotebookNode, name: str, course: Course) -> nbformat.NotebookNode:
    """The source without its markers, with the outputs that solutions/`name` has for the same cells."""
    notebook = _with_cells(source, lambda text: without_marks(text).rstrip("\n"), course)
    path = ROOT / "solutions" / name
    ran = read(path, outputs=True).cells if path.exists() else []
    by_id = {cell.id: cell for cell in ran}
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        before = by_id.get(cell.id, {})
        if cell.cell_type == "code":
            cell.outputs = before.get("outputs", [])
            cell.execution_count = before.get("execution_count")
    return notebook


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Context manager: whatever is wrong with a notebook, the error names its file."""
    try:
        yield
    except Exception as error:  # nbformat and nbclient raise many kinds
        message = str(error).strip() or type(error).__name__
        raise NotebookError(f"{path.relative_to(ROOT)}: {message}") from error


def stale() -> list[str]:
    """The files that `build` would change, and those that no source accounts for."""
    texts = build()
    notebooks = [f"{folder}/*.ipynb" for folder in ("solutions", SOURCES, "labs")]
    there = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8", errors="replace")
        for pattern in (*notebooks, str(TITLES), "README.md")
        for path in ROOT.glob(pattern)
    }
    return sorted(name for name in texts | there if texts.get(name) != there.get(name))


def execute(texts: dict[str, str], names: Collection[str]) -> None:
    """Runs those solutions of `texts`, as a learner without any progress; writes them with their outputs.

    Raises:
        NotebookError: a name fits no solution; or one cannot be run, which then stays as it was.
    """
    from nbclient import NotebookClient

    solutions = [ROOT / "solutions" / path.name for path in _sources()]
    for name in names:
        if not any(name in path.name for path in solutions):
            numbers = ", ".join(path.name[:2] for path in solutions)
            raise NotebookError(f"no solution has {name!r} in its name; there are {numbers}")
    with (
        scratch.folder() as state,
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": state, SILENCE: "1"}),
    ):
        for path in solutions:
            if names and not any(name in path.name for name in names):
                continue
            with _naming(path):
                notebook = nbformat.reads(texts[f"solutions/{path.name}"], as_version=4)
                resources = {"metadata": {"path": str(path.parent)}}
                start = time.perf_counter()
                formats = [f"--InlineBackend.figure_formats={name}" for name in ("png", "svg")]
                options = {"timeout": 600, "resources": resources, "extra_arguments": formats}
                NotebookClient(notebook, **options).execute()
                took = time.perf_counter() - start
                outputs = {cell.id: cell.get("outputs", []) for cell in notebook.cells}
                slides.store_figures(ROOT, int(path.name[:2]), outputs)
                text = canonical_text(notebook).replace(str(ROOT), ".")  # nobody else's paths
            files.write(path, text)
            print(f"executed {path.relative_to(ROOT)} in {took:.0f} s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where --check found a stale file, 2 for a broken solution."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.build",
        description=f"Make labs/ and solutions/ from {SOURCES}/.",
        allow_abbrev=False,
    )
    parser.add_argument("--check", action="store_true", help="write nothing, name stale files")
    parser.add_argument("--execute", nargs="*", metavar="NAME", help="run solutions first")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            names = stale()
            for name in names:
                print(f"{name} is not what its source makes: run `python -m lab_utils.build`")
            return min(1, len(names))
        texts = build()  # all of it, before anything is written
        if options.execute is not None:
            execute(texts, options.execute)
            texts = build()  # with the outputs
    except NotebookError as error:
        print(f"build: {error}", file=sys.stderr)
        return 2
    for name, text in texts.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != text.encode():
            files.write(path, text)
        print(name)
    return 0


if __name__ == "__main__":
    command.run(main)
