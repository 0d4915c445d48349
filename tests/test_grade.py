"""A class graded: whose notebook it is, which cells are run, the table, the page; slowly, real grading."""

import csv
import dataclasses
import io
import json
import re

import made_up_class
import pytest

from lab_utils.common import files
from lab_utils.teach.grade import cells, guard, page, runs, submissions, tables
from lab_utils.teach.grade.__main__ import main

NAME = made_up_class.NAME


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def code_of(made):
    return tuple("".join(c["source"]) for c in made["cells"] if c["cell_type"] == "code")


def sorted_cells(made):
    plan = cells.plan(2, code_of(made))
    return {id: cell.source for cell in plan.cells for id in cell.todos}, plan


def test_the_learners_cells_are_run_whatever_became_of_the_notebook():
    plain, plan = sorted_cells(made_up_class.notebook())
    assert tuple(plain) == made_up_class.TODOS and len(plan.given) == 4
    assert "train_input, max_steps" not in "".join(cell.source for cell in plan.cells), (
        "no experiment"
    )
    assert not any("load_digits" in cell.source for cell in plan.cells), "no given cell"
    assert any(cell.source.startswith("predict(") for cell in plan.cells)
    turned = made_up_class.notebook()
    turned["cells"].reverse()
    for cell in turned["cells"]:
        cell.pop("id", None)
        cell["metadata"] = {"id": "aBcD1234", "outputId": "x"}  # Colab's
    assert sorted_cells(turned)[0] == plain
    twice = made_up_class.notebook()
    twice["cells"] += [
        made_up_class.code_cell("def make_optimizer(params):\n    return 1"),
        made_up_class.code_cell("SIZE = 8"),
    ]
    own, plan = sorted_cells(twice)
    assert own["2a"].endswith("return 1") and plan.cells[-1].source == "SIZE = 8"
    broken = made_up_class.changed(
        made_up_class.notebook(), "def metric_fn(labels", "# TODO 2b\ndef (labels"
    )
    assert "def (labels" in sorted_cells(broken)[0]["2b"]


def test_an_experiment_gives_its_functions_and_imports_alone():
    for steps in (100, 90):
        made = made_up_class.changed(
            made_up_class.notebook(), "max_steps=100)", f"max_steps={steps})"
        )
        _, plan = sorted_cells(made)
        (kept,) = [cell.source for cell in plan.cells if "def port_of" in cell.source]
        assert kept.startswith("def port_of") and "train_input, max_steps" not in kept
        assert any(cell.source.startswith("import argparse") for cell in plan.cells)


def test_what_a_person_should_look_at_is_remarked():
    made = made_up_class.with_first(made_up_class.notebook(), made_up_class.CHEAT)
    assert [told for told in sorted_cells(made)[1].remarks if "reaches into the checks" in told]
    (told,) = sorted_cells(made_up_class.notebook())[1].remarks
    assert "those of our solution" in told
    for own in (
        "from lab_utils.check import *",
        "from lab_utils.check import (check, hint)  # again",
    ):
        made = made_up_class.with_first(made_up_class.notebook(), f"{own}\nown = 1")
        assert len(sorted_cells(made)[1].remarks) == 1, own
    made = made_up_class.changed(made_up_class.notebook(), "    loop =", "    often =")
    assert not sorted_cells(made)[1].remarks


def graded(points, **told):
    results = {
        id: runs.Result("correct" if point == "1" else "incorrect", "Because of <b>this</b>.")
        for id, point in zip(made_up_class.TODOS, points, strict=True)
    }
    return runs.Graded(2, results, **told)


def submission(learner, name=NAME, lab=2):
    return submissions.Submission(learner, submissions.Path(name), lab)


def test_the_table_has_a_row_a_learner_and_a_column_a_todo():
    table = tables.rows(
        [
            (submission("ann", "first.ipynb"), graded("110000")),
            (submission("ann", "second.ipynb"), graded("111000", remarks=["cell 3 reaches"])),
            (submission('=cmd("x")', lab=None), runs.Graded(None, problem="is empty")),
        ]
    )
    ann, other = csv.DictReader(io.StringIO(tables.as_csv(table)))
    assert ann["learner"] == "ann" and (ann["points"], ann["of"]) == ("3", "6")
    assert [ann[id] for id in made_up_class.TODOS] == list("111000")
    assert "first.ipynb: left out" in ann["remarks"] and "cell 3 reaches" in ann["remarks"]
    assert other["learner"].startswith("'=") and other["2a"] == "" and "is empty" in other["status"]


def test_the_page_escapes_and_shows_who_stopped_where():
    table = tables.rows(
        [
            (submission("<script>ann"), graded("011111", predictions={"share <i>": 1.0})),
            (submission("bob"), graded("011111", predictions={"share <i>": float("inf")})),
        ]
    )
    text = page.html(table)
    assert "<script" not in text and "<b>this" not in text and "<i>" not in text
    assert "<td>bob</td><td>5 of 6</td>" in text
    assert "&lt;script&gt;ann, bob" in text and "TODO 2a: make_optimizer" in text
    assert "TODO 2b: " not in text and "prefers-color-scheme: dark" in text


def test_each_learner_has_a_page_of_what_the_checks_say():
    names = ["Zoë <b>", "a/b\n../c", "A_B_.._c", "李雷", "...", "x" * 300]
    own = graded("011111", remarks=["the same code as ann"])
    table = tables.rows([(submission(name), own) for name in names])
    pages = page.feedback(table)
    assert list(pages) == [
        "Zoë _b_.html",
        "a_b_.._c.html",
        "A_B_.._c.2.html",
        "李雷.html",
        "_.html",
        "x" * 60 + ".html",
    ]
    for name, text in zip(names, pages.values(), strict=True):
        assert "<b>" not in text.replace("<b class", "") and "5 of 6" in text
        assert (
            "✗ TODO 2a: incorrect</b> <code>make_optimizer</code>" in text
            and "same code" not in text
        ), name


def test_a_histogram_counts_each_value_once():
    assert page.histogram([1.0, 1.0, 2.0]) == [("1", 2), ("2", 1)]
    spans = page.histogram([float(n) for n in range(100)])
    assert len(spans) == 8 and sum(count for _, count in spans) == 100
    assert sum(n for _, n in page.histogram([-1e308, 1e308, *map(float, range(9))])) == 11


def test_changed_files_of_the_grader_end_the_grading(tmp_path, monkeypatch, capsys):
    for learner in ("ann", "bob"):
        put(tmp_path / "class" / learner / NAME, made_up_class.notebook())
        put(tmp_path / "class" / learner / "03.ipynb", made_up_class.notebook("labs"))
    grader = tmp_path / "lab_utils" / "check"
    put(grader / "runner.py", "pass")
    monkeypatch.setattr(guard, "_PACKAGE", grader.parent)
    monkeypatch.setattr(
        runs, "grade", lambda *_: put(grader / "runner.py", "cheat") or graded("111111")
    )
    made = ["-o", str(tmp_path / "grades.csv"), "--feedback", str(tmp_path / "feedback")]
    main([str(tmp_path / "class"), *made])
    assert sorted(p.name for p in (tmp_path / "feedback").iterdir()) == ["ann.html", "bob.html"]
    for row in csv.DictReader((tmp_path / "grades.csv").open()):
        assert "lab_utils/check/runner.py changed" in row["status"] and row["points"] == "0"


def test_what_was_graded_is_kept_where_grading_is_stopped(tmp_path, monkeypatch, capsys):
    """By Ctrl-C, or by a submission that ends the grader: it runs with the same rights."""
    wanted = {"ann": "111111", "bob": None, "cid": "000000"}
    for number, learner in enumerate(wanted):
        made = made_up_class.notebook()
        made["cells"].append(made_up_class.code_cell(f"own = {number}"))
        put(tmp_path / "class" / learner / NAME, made)

    def grade(plan, _):
        points = list(wanted.values())[int(plan.cells[-1].source[-1])]
        if points is None:
            raise KeyboardInterrupt
        return graded(points)

    monkeypatch.setattr(runs, "grade", grade)
    with pytest.raises(KeyboardInterrupt):
        main([str(tmp_path / "class"), "-o", str(tmp_path / "grades.csv")])
    ann, bob, cid = csv.DictReader((tmp_path / "grades.csv").open())
    assert (ann["points"], ann["status"]) == ("6", f"{NAME}: graded")
    assert {row["status"].partition(": ")[2] for row in (bob, cid)} == {
        "could not be graded: grading was stopped before it"
    }


def test_results_that_could_not_be_written_are_refused_before_anything_is_graded(tmp_path, capsys):
    (tmp_path / "file").touch()
    for flag, name in (("-o", "none/g.csv"), ("--page", "none/p.html"), ("--feedback", "file/f")):
        given = {"-o": str(tmp_path / "grades.csv"), flag: str(tmp_path / name)}
        with pytest.raises(SystemExit, match="2"):
            main([str(tmp_path), *(word for pair in given.items() for word in pair)])
        assert str(tmp_path / name) in capsys.readouterr().err


def test_a_table_that_cannot_be_written_is_printed(tmp_path, monkeypatch, capsys):
    put(tmp_path / "class" / "ann" / NAME, made_up_class.notebook())
    monkeypatch.setattr(runs, "grade", lambda *_: graded("111111"))
    monkeypatch.setattr(files, "write", full)
    assert main([str(tmp_path / "class"), "-o", str(tmp_path / "grades.csv")]) == 2
    said = capsys.readouterr()
    assert (
        len(list(csv.reader(io.StringIO(said.out.partition("\n")[2])))) > 1 and "\nann," in said.out
    )
    assert (
        said.err
        == f"grade: {tmp_path / 'grades.csv'}: No space left on device; the table stands above\n"
    )


def full(path, _):
    raise OSError(28, "No space left on device", str(path))


@pytest.mark.parametrize("value", ["nan", "0", "-1", "inf", "many"])
@pytest.mark.parametrize("limit", ["--step_seconds", "--total_seconds", "--memory_gib"])
def test_a_limit_that_is_none_is_told(limit, value, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "-o", str(tmp_path / "grades.csv"), limit, value])
    assert f"argument {limit}: " in capsys.readouterr().err


def test_a_line_that_bears_no_token_is_no_event():
    assert runs._event(b'{"todo": "2a", "token": "mine"}', "mine")
    for line in (
        b'{"todo": "2a", "token": "other"}',
        b'{"todo": "2a"}',
        b"[1]",
        b"{",
        b"\xff",
        b'"a"',
    ):
        assert runs._event(line, "mine") is None


@pytest.mark.slow
def test_a_class_is_graded(tmp_path):
    """Six learners really graded; a cell that loops or ends its process costs its own TODO alone."""
    learners = made_up_class.learners()
    for name, (made, _) in learners.items():
        put(tmp_path / "class" / name / NAME, made)
    put(tmp_path / "class" / "broken" / NAME, "{")
    output = tmp_path / "grades.csv"
    limits = ["--step_seconds", "90", "--total_seconds", "400"]
    told = main(
        [
            str(tmp_path / "class"),
            "-o",
            str(output),
            "--page",
            str(tmp_path / "class.html"),
            *limits,
        ]
    )
    assert told == 0
    rows = {row["learner"]: row for row in csv.DictReader(io.StringIO(output.read_text()))}
    points = {name: "".join(row[id] for id in made_up_class.TODOS) for name, row in rows.items()}
    assert points == {name: wanted for name, (_, wanted) in learners.items()} | {"broken": ""}
    assert rows["endless"]["status"].endswith("timed out in 2d")
    assert rows["exiting"]["status"].endswith("ended its process in 2a")
    assert "JSON cannot be read" in rows["broken"]["status"]
    assert (
        re.search("were put back", rows["cheating"]["remarks"])
        and "our solution" in rows["right"]["remarks"]
    )
    assert "CrossShardOptimizer" in (tmp_path / "class.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lab", sorted((made_up_class.ROOT / "solutions").glob("*.ipynb")), ids=lambda p: p.stem
)
def test_a_solved_lab_has_all_points(lab):
    code = code_of(json.loads(lab.read_text(encoding="utf-8")))
    result = runs.grade(cells.plan(int(lab.name[:2]), code), runs.Limits())
    assert {each.why: each.status for each in result.results.values() if not each.points} == {}
    (told,) = result.remarks
    assert result.status == "graded" and "our solution" in told


MERGED = """from google.colab import drive
from google.colab.patches import cv2_imshow
import google.colab.files
from helpers import TWO
drive.mount("/content/drive")
name = input("Your name? ") + str(len(google.colab.files.upload()))

def matmul_flop(m, k, n):
    return TWO * m * k * n

check("0a", matmul_flop)
# hint("0a")

print("TODO 0b: correct.")
1 / 0

check("0b", peak_flops)

def peak_flops(rows, columns, hertz):
    raise SystemExit(3)
"""


def test_a_merged_cell_with_a_module_beside_it_is_really_graded():
    """Lab 00, whose first checks need no TensorFlow; an error ends its own part of the cell alone."""
    plan = cells.plan(
        0, [MERGED, "def step(features, labels:\n    pass"], [("helpers.py", "TWO = 2")]
    )
    result = runs.grade(dataclasses.replace(plan, given=[]), runs.Limits(step=60, total=120))
    said = {id: (each.status, each.why) for id, each in result.results.items()}
    assert said["0a"][0] == "correct"
    assert said["0b"][0] == "incorrect" and "ends the process" in said["0b"][1]
    assert said["0c"][0] == "incorrect" and said["0c"][1].startswith("Cell 2, line 1 raised Syntax")
