"""solutions/source/ -> labs/ and solutions/: starters, and nothing stale here."""

import importlib.util
import re
import sys

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from lab_utils.check import sources
from lab_utils.teach import build, marks
from lab_utils.teach.setup_cell import Course, setup_cell

CELL = """\
def twice(x):
    # TODO 1a: double it, "quickly"
    ### BEGIN SOLUTION
    # a comment of the solution
    return 2 * x
    ### END SOLUTION
"""


def test_labs_and_solutions_are_what_their_sources_make():
    assert build.stale() == [], "run `python -m lab_utils.build`"


@pytest.mark.parametrize("path", sorted(build.ROOT.glob("labs/*.ipynb")), ids=lambda p: p.stem[:2])
def test_todos_are_lettered_as_the_text_sets_them_and_ask_for_what_the_lab_has(path):
    cells = nbformat.read(path, 4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    letters = re.findall(r"^\*\*TODO \d+([a-z])[.,]", "\n".join(texts), re.M)
    assert letters == [chr(ord("a") + n) for n in range(len(letters))]
    questions = next(n for n, text in enumerate(texts) if text.startswith("## Questions"))
    assert re.match("## (Recap|What you have)", texts[questions + 1])
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    todo = r"\*\*TODO (\d+[a-z])\.\*\*[^\n]*?(?:Write|Finish) `(\w+)[`(]"
    for id, name in re.findall(todo, "\n".join(texts)):
        assert re.search(rf"\b(def|class) {name}\(|^{name} = ", code, re.M), f"{id}: {name}"


def test_a_region_becomes_an_exception_that_names_its_todo():
    lab = marks.starter(CELL)
    assert "return 2 * x" not in lab and "### " not in lab
    names = {}
    exec(lab, names)
    with pytest.raises(NotImplementedError, match="TODO 1a: double it, 'quickly'"):
        names["twice"](3)


def test_a_region_may_give_its_own_starter():
    start = "# STARTER: steps = ...\n# STARTER: rest = ...\n"
    cell = f"### BEGIN SOLUTION\n{start}steps = 3\nrest = 1\n### END SOLUTION"
    assert marks.starter(cell) == "steps = ...\nrest = ..."
    assert sources.without_marks(cell) == "steps = 3\nrest = 1\n"


@pytest.mark.parametrize(
    "cell, message",
    [
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "no `# TODO"),
        ("# TODO 1a: x\n### BEGIN SOLUTION\nx = 1", "without its partner"),
        ("# TODO 1a: x\nx = 1\n### END SOLUTION", "without its partner"),
    ],
)
def test_a_region_that_cannot_be_replaced_is_an_error(cell, message):
    with pytest.raises(ValueError, match=message):
        marks.starter(cell)


def test_nbgrader_sees_cells_to_solve_and_cells_that_give_points():
    cells = [nbformat.v4.new_code_cell(CELL), nbformat.v4.new_code_cell('check("1a", twice)')]
    marks.stamp(nbformat.v4.new_notebook(cells=cells))
    solution, check = (cell.metadata["nbgrader"] for cell in cells)
    assert (solution["solution"], solution["grade"]) == (True, False) and "points" not in solution
    assert (check["grade_id"], check["grade"], check["points"]) == ("check-1a", True, 1)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A course of two solutions, built."""
    (tmp_path / build.SOURCES).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a-course"\nversion = "1.2"\n')
    monkeypatch.setattr(build, "ROOT", tmp_path)
    for number in (1, 2):
        heading = nbformat.v4.new_markdown_cell(f"# 0{number} · X\n\n**5 minutes.**")
        notebook = nbformat.v4.new_notebook(cells=[heading, nbformat.v4.new_code_cell(CELL)])
        nbformat.write(notebook, tmp_path / build.SOURCES / f"0{number}_x.ipynb")
    assert build.main([]) == 0 and build.stale() == []
    return tmp_path


def test_a_solution_is_the_source_without_markers_and_keeps_its_outputs(repository):
    solution, source = (
        repository / folder / "01_x.ipynb" for folder in ("solutions", build.SOURCES)
    )
    ran = nbformat.read(solution, as_version=4)
    assert not re.search("###|STARTER|nbgrader", solution.read_text())
    ran.cells[1].outputs = [nbformat.v4.new_output("stream", text="4")]
    ran.cells[1].execution_count = 1
    solution.write_text(build.canonical_text(ran))
    assert build.stale() == []
    marked = source.read_text()
    source.write_text(marked.replace("2 * x", "x + x"))
    assert build.main([]) == 0
    cell = nbformat.read(solution, as_version=4).cells[1]
    assert "x + x" in cell.source and cell.outputs[0].text == "4"


def test_what_is_written_into_a_solution_is_stale_and_an_unreadable_one_is_named(
    repository, capsys
):
    solution = repository / "solutions" / "01_x.ipynb"
    solution.write_text(solution.read_text().replace("2 * x", "x + x"))
    assert build.stale() == ["solutions/01_x.ipynb"]
    solution.write_text("<<<<<<< HEAD")
    assert build.main([]) == 2
    assert capsys.readouterr().err.startswith("build: solutions/01_x.ipynb: ")


READY = "from lab_utils.check import ready\n\nready()"
GITHUB = "https://github.com/someone/course"


@pytest.mark.parametrize(
    "address", ["", GITHUB + ".git", GITHUB + "/", "https://git.example.org/course"]
)
def test_one_line_of_pyproject_gives_the_address_to_first_cells_and_links(repository, address):
    if address:
        with (repository / "pyproject.toml").open("a") as file:
            file.write(f'[project.urls]\nRepository = "{address}"\n')
    source = repository / build.SOURCES / "01_x.ipynb"
    notebook = nbformat.read(source, as_version=4)
    notebook.cells.insert(1, nbformat.v4.new_code_cell(READY))
    nbformat.write(notebook, source)
    assert build.main([]) == 0 and build.stale() == []
    lab, solution, source = (
        nbformat.read(repository / folder / "01_x.ipynb", as_version=4).cells
        for folder in ("labs", "solutions", build.SOURCES)
    )
    assert lab[1].source == solution[1].source != source[1].source == READY
    lines = lab[1].source.splitlines()
    assert len(lines) <= 13 and max(map(len, lines)) <= 100 and lines[-1] == "ready()"
    wanted = f"a-course[course] @ git+{address.rstrip('/').removesuffix('.git')}@v1.2"
    wanted = wanted if address else "./a_course-1.2-py3-none-any.whl[course]"
    assert f'%pip install -q "{wanted}"' in lab[1].source
    opens = "https://colab.research.google.com/github/someone/course/blob/v1.2/labs/01_x.ipynb"
    assert (opens in lab[0].source) == ("Open in" in lab[0].source) == (GITHUB in address)


@pytest.mark.parametrize(
    ("version", "wheel", "says"),
    [
        ((3, 14), True, "needs Python 3.11, 3.12 or 3.13: set_up.md says how to get one"),
        ((3, 12), False, "a_course-1-py3-none-any.whl is missing: put it into {folder}, beside"),
        ((3, 12), True, "pip install -q ./a_course-1-py3-none-any.whl[course]"),
    ],
)
def test_a_first_cell_that_cannot_install_the_course_says_why(
    version, wheel, says, monkeypatch, tmp_path
):
    class Shell:
        def run_line_magic(self, *words: str) -> None:
            sys.exit(" ".join(words).replace('"', ""))

    text = setup_cell(Course("a-course", "1", ""))
    code = TransformerManager().transform_cell(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "version_info", (*version, 0))
    if wheel:
        (tmp_path / "a_course-1-py3-none-any.whl").touch()
    with pytest.raises(SystemExit, match=re.escape(says.format(folder=tmp_path))):
        exec(code, {"get_ipython": Shell})


def test_the_minutes_stand_in_the_rows_of_labs_and_nowhere_else(repository):
    readme = repository / "README.md"
    readme.write_text("| 01 x | 0 | say x |\n| 02 x | 0 | say y |\n\n| 01 | 02 |\n")
    assert build.main([]) == 0
    assert readme.read_text() == "| 01 x | 5 | say x |\n| 02 x | 5 | say y |\n\n| 01 | 02 |\n"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CELLS = '{"cells": %s, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
HEADING = '[{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# 03 · Y"}]'
BROKEN = ["", "[]", "[" * 100_000, CELLS % "null", CELLS % HEADING]
BROKEN += [CELLS % f'[{{"cell_type": "code", "source": {x}}}]' for x in ('"### BEGIN SOLUTION"', 7)]


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("flags", [[], ["--check"]])
def test_a_broken_solution_is_named_and_nothing_is_written(repository, capsys, text, flags):
    (repository / build.SOURCES / "02_x.ipynb").write_text(text)
    other = repository / build.SOURCES / "01_x.ipynb"
    other.write_text(other.read_text() + "\n")  # not canonical: a build would write it
    before = contents(repository)
    assert build.main(flags) == 2
    assert capsys.readouterr().err.startswith("build: solutions/source/02_x.ipynb: ")
    assert contents(repository) == before


def test_a_name_that_fits_no_solution_is_refused(repository, capsys):
    assert build.main(["--execute", "99"]) == 2
    assert "no solution has '99' in its name; there are 01, 02" in capsys.readouterr().err


def test_a_flag_is_not_guessed(capsys, monkeypatch):
    """--exec once executed all solutions."""
    monkeypatch.setattr(build, "stale", list)
    with pytest.raises(SystemExit) as end:
        build.main(["--check", "--exec"])
    assert end.value.code == 2 and "--exec" in capsys.readouterr().err
