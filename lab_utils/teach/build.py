"""solutions/source/ -> labs/ and solutions/: each lab and each solution is made from one marked notebook.

python -m lab_utils.build            writes labs/NN_name.ipynb and solutions/NN_name.ipynb, the labs' titles
                                     for the dry run's rules, and links that open labs elsewhere
                                     (pyproject.toml gives the address). Minutes and questions come in on the
                                     way (teach/minutes.py, quiz.py)
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

from lab_utils.check import life
from lab_utils.check.sources import without_marks
from lab_utils.common import command, files, scratch
from lab_utils.teach import minutes, notebook_format, quiz, slides
from lab_utils.teach.marks import stamp, starter
from lab_utils.teach.setup_cell import Course, links, setup_cell

ROOT = Path(__file__).parents[2]
SOURCES = Path("solutions/source")
TITLES = Path("lab_utils/dry_run/rules/labs.json")
LINKS = re.compile(r"(<!-- links, by lab_utils.build -->\n).*?(<!-- end of links -->)", re.S)
ROW = re.compile(r"^(\| (\d\d) [^|]+\| )\d+( \|)", re.M)  # a lab's number and title, its minutes
FOLDED = 15  # lines of a given cell, from which on it is shown folded
HEADING = re.compile(r"# (\d\d) · (.+)")


class NotebookError(Exception):
    """A notebook that cannot be used; the message names the file."""


def _set_up(notebook: nbformat.NotebookNode, cell_source: str) -> nbformat.NotebookNode:
    """Puts the set-up cell that all labs share in the place of the first code cell, if that calls ready()."""
    first = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)
    if first is not None and first.source.endswith("ready()"):
        first.source = cell_source
    return notebook


def _lab(source: nbformat.NotebookNode, name: str, course: Course) -> nbformat.NotebookNode:
    """The lab of a source: starters, the set-up cell, long given cells folded, links to open it elsewhere."""
    notebook = _set_up(_with_cells(source, starter), setup_cell(course))
    for cell in notebook.cells:
        if "given" in cell.metadata.get("tags", []) and cell.source.count("\n") >= FOLDED:
            cell.metadata["jupyter"] = {"source_hidden": True}
    if opened := links(course, name):
        heading, newline, rest = notebook.cells[0].source.partition("\n")
        notebook.cells[0].source = f"{heading}\n\n{opened}{newline}{rest}"
    return notebook


def _readme(course: Course, of_labs: dict[str, int], names: list[str]) -> str | None:
    """README.md with links that open the labs elsewhere, and their minutes; None where there is no README."""
    path = ROOT / "README.md"
    if not path.exists():
        return None
    rows = [f"{name[:2]}: {opened}  \n" for name in names if (opened := links(course, name))]
    text = f"\nEach lab opens from here:\n\n{''.join(rows)}\n" if rows else ""

    def row(found: re.Match) -> str:
        return f"{found[1]}{of_labs[found[2]]}{found[3]}" if found[2] in of_labs else found[0]

    page = ROW.sub(row, path.read_text(encoding="utf-8"))
    return LINKS.sub(lambda found: found[1] + text + found[2], page)


def title(notebook: nbformat.NotebookNode, name: str) -> str:
    """The title of the notebook `name`, from its first line: "# 04 · Metrics and the host".

    Raises:
        ValueError: the first cell does not begin so, with the number of the file's name.
    """
    found = HEADING.match(notebook.cells[0].source) if notebook.cells else None
    if not found or found[1] != name[:2]:
        raise ValueError(f"{name}: the first line is not '# {name[:2]} · TITLE'")
    return found[2].strip()


def build() -> dict[str, str]:
    """Each source in canonical form, its lab, its solution, and all titles: path below ROOT -> text.

    Raises:
        NotebookError: a source or the outputs of a solution cannot be read, or no lab can be made of it.
    """
    made, sources, titles, of_labs = {}, {}, {}, {}
    course, asked, seconds = Course.of(ROOT), quiz.questions(ROOT), minutes.seconds(ROOT)
    for path in _sources():
        with _naming(path):
            sources[path.name] = notebook_format.read(path, outputs=False)
            titles[path.name] = title(sources[path.name], path.name)
    for path in _sources():
        name, source = path.name, sources[path.name]
        with _naming(path):
            own = asked.get(name[:2], [])
            takes = minutes.of_lab(source, seconds.get(name[:2], 0), len(own))
            of_labs[name[:2]] = takes
            minutes.stamp(source, name, takes, titles)
            stamp(source)
            made[f"{SOURCES}/{name}"] = _text(source, outputs=False)
            if own:
                quiz.insert(source, own)
            made[f"labs/{name}"] = _text(_lab(source, name, course), outputs=False)
        made[f"solutions/{name}"] = _text(_solution(source, name, course), outputs=True)
    if readme := _readme(course, of_labs, [path.name for path in _sources()]):
        made["README.md"] = readme
    rule_titles = {name[:2]: text for name, text in titles.items()}
    made[str(TITLES)] = json.dumps(rule_titles, ensure_ascii=False, indent=2) + "\n"
    return made


def _sources() -> list[Path]:
    return sorted((ROOT / SOURCES).glob("*.ipynb"))


def _with_cells(
    source: nbformat.NotebookNode, change: Callable[[str], str]
) -> nbformat.NotebookNode:
    """A copy of the notebook with each code cell's source changed."""
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = change(cell.source)
    return notebook


def _solution(source: nbformat.NotebookNode, name: str, course: Course) -> nbformat.NotebookNode:
    """The source without its markers, with the outputs that solutions/`name` has for the same cells."""
    notebook = _with_cells(source, lambda text: without_marks(text).rstrip("\n"))
    _set_up(notebook, setup_cell(course))
    path = ROOT / "solutions" / name
    ran = {}
    if path.exists():
        with _naming(path):
            ran = {cell.id: cell for cell in notebook_format.read(path, outputs=True).cells}
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        before = ran.get(cell.id, {})
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
        told = str(error).strip() or type(error).__name__
        raise NotebookError(f"{path.relative_to(ROOT)}: {told}") from error


def _text(notebook: nbformat.NotebookNode, *, outputs: bool) -> str:
    return notebook_format.canonical_text(nbformat.writes(notebook), outputs=outputs)


def stale() -> list[str]:
    """The files that `build` would change, and those that no source accounts for."""
    wanted = build()
    patterns = (
        "solutions/*.ipynb",
        f"{SOURCES}/*.ipynb",
        "labs/*.ipynb",
        str(TITLES),
        "README.md",
    )
    there = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8", errors="replace")
        for pattern in patterns
        for path in ROOT.glob(pattern)
    }
    return sorted(name for name in wanted | there if wanted.get(name) != there.get(name))


def execute(made: dict[str, str], names: Collection[str]) -> None:
    """Runs those solutions of `made`, as a learner without any progress; writes them with their outputs.

    Raises:
        NotebookError: a name fits no solution; or one cannot be run, which then stays as it was.
    """
    from nbclient import NotebookClient

    solutions = [ROOT / "solutions" / path.name for path in _sources()]
    for name in names:
        if not any(name in path.name for path in solutions):
            known = ", ".join(path.name[:2] for path in solutions)
            raise NotebookError(f"no solution has {name!r} in its name; there are {known}")
    with (
        scratch.folder() as state,
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": state, life.SILENCE: "1"}),
    ):
        for path in solutions:
            if names and not any(name in path.name for name in names):
                continue
            with _naming(path):
                notebook = nbformat.reads(made[f"solutions/{path.name}"], as_version=4)
                resources = {"metadata": {"path": str(path.parent)}}
                start = time.perf_counter()
                formats = [f"--InlineBackend.figure_formats={name}" for name in ("png", "svg")]
                options = {"timeout": 600, "resources": resources, "extra_arguments": formats}
                NotebookClient(notebook, **options).execute()
                took = time.perf_counter() - start
                outputs = {cell.id: cell.get("outputs", []) for cell in notebook.cells}
                slides.store_figures(ROOT, int(path.name[:2]), outputs)
                text = _text(notebook, outputs=True).replace(str(ROOT), ".")  # nobody else's paths
            files.write(path, text)
            minutes.note_seconds(ROOT, path.name[:2], round(took))
            print(f"executed {path.relative_to(ROOT)} in {took:.0f} s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where --check found a stale file, 2 for a broken solution."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.build", description=f"Make labs/ and solutions/ from {SOURCES}/."
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
        made = build()  # all of it, before anything is written
        if options.execute is not None:
            execute(made, options.execute)
            made = build()  # with the outputs, and minutes of the seconds that they took
    except NotebookError as error:
        print(f"build: {error}", file=sys.stderr)
        return 2
    for name, text in made.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != text.encode():
            files.write(path, text)
        print(name)
    return 0


if __name__ == "__main__":
    command.run(main)
