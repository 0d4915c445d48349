"""A class graded: whose notebook it is, which cells are run, the table, the pages; slowly, real grading."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace

import made_up_class
import psutil
import pytest

from lab_utils.teach.grade import cells, page, runs, submissions
from lab_utils.teach.grade.__main__ import main

NAME = made_up_class.NAME
STATIC = "03_static_shapes.ipynb"
SOLVED = {
    2: json.dumps(made_up_class.notebook()).encode(),
    3: json.dumps(made_up_class.notebook(name=STATIC)).encode(),
}


def zipped(content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, SOLVED.get(data, data))
    return packed.getvalue()


def hand_in(folder, content):
    """Writes files; a number as content is that solved lab."""
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SOLVED[data] if isinstance(data, int) else data)


def handed_in(place):
    """Learner -> the labs of the notebooks that count, or the problem."""
    labs = {}
    for each in submissions.find(place):
        labs.setdefault(each.learner, []).append(each.problem or f"lab {each.lab}")
    return {learner: ", ".join(found) for learner, found in labs.items()}


MOODLE = "_assignsubmission_"
TYPE = b'{"cells": [{"cell_type": "code", "source": "# TODO 77a: x"}]}'
# A file, what it holds, whose it is, and what is found of it.
CLASSES = {
    "folders, files and archives": [
        (f"ann/{NAME}", 2, "ann", "lab 2"),
        (f"bob/lab/{STATIC}.txt", 3, "bob", "lab 3"),
        ("02_four_changes_cid (1).ipynb", 2, "cid", "lab 2"),
        ("gil_lab02-Copy1.ipynb", 2, "gil", "lab 2"),
        (f"01/{NAME}", 2, f"01/{NAME}", "lab 2"),
        ("hal.zip", zipped({f"work/{NAME}": 2, f"__MACOSX/._{NAME}": b"\0"}), "hal", "lab 2"),
        ("ida/02.zip", b"PK\3\4 cut off", "ida", "damaged"),
        ("joe/work.zip", zipped({"a.pdf": b"%PDF"}), "joe", "only a.pdf"),
        (f"lea/{NAME}", b"", "lea", "cannot be read as a notebook"),
        (f"noa/{NAME}", b"[" * 100_000, "noa", "cannot be read as a notebook"),
        (f"pia/{NAME}", TYPE, "pia", "names no TODO"),
    ],
    "a folder each lab": [
        ("all/lab02/ann.ipynb", 2, "ann", "lab 2"),
        ("all/lab03/ann.ipynb", 3, "ann", "lab 3"),
        ("all/lab02/Bob Ray.ipynb", 2, "Bob Ray", "lab 2"),
    ],
    "Moodle": [
        (f"Ann L_12{MOODLE}file_/{NAME}", 2, "Ann L (12)", "lab 2"),
        (f"Ann L_13{MOODLE}file_/{NAME}", 2, "Ann L (13)", "lab 2"),
        (f"Bob_14{MOODLE}file_{NAME}", 2, "Bob (14)", "lab 2"),
        (f"Cid_15{MOODLE}onlinetext_/onlinetext.html", b"a link", "Cid (15)", "only onlinetext"),
    ],
    "Canvas": [
        (f"leeann_LATE_123_456_{NAME}", 2, "leeann (123)", "lab 2"),
        ("raybob_124_457_02_four_changes-1.ipynb", 2, "raybob (124)", "lab 2"),
        ("itozoe_125_text.html", b"a link", "itozoe (125)", "holds no notebook"),
    ],
}


@pytest.mark.parametrize("rows", CLASSES.values(), ids=CLASSES)
def test_whose_and_which_lab(rows, tmp_path):
    hand_in(tmp_path, {path: content for path, content, *_ in rows})
    labs = handed_in(tmp_path)
    assert labs.keys() == {learner for *_, learner, _ in rows}
    assert not [(learner, labs[learner]) for *_, learner, says in rows if says not in labs[learner]]


def test_a_class_can_be_an_archive_or_one_notebook(tmp_path):
    class DosName(zipfile.ZipInfo):  # as macOS writes it: UTF-8, and nothing says so
        def _encodeFilenameFlags(self):
            return self.filename.encode(), self.flag_bits & ~0x800

    hand_in(tmp_path, {"class.zip": zipped({f"ann/{NAME}": 2}), f"ann_{NAME}": 2})
    assert (
        handed_in(tmp_path / "class.zip") == {"ann": "lab 2"} == handed_in(tmp_path / f"ann_{NAME}")
    )
    with zipfile.ZipFile(tmp_path / "mac.zip", "w") as archive:
        for name in ("Zoë Núñez", "王小明"):
            archive.writestr(DosName(f"{name}/{NAME}"), SOLVED[2])
    assert handed_in(tmp_path / "mac.zip") == {"Zoë Núñez": "lab 2", "王小明": "lab 2"}


@pytest.mark.parametrize(
    ("name", "says"),
    [("none", "No such file"), ("broken.zip", "damaged"), ("a.pdf", "no notebook")],
)
def test_what_cannot_be_graded_is_one_sentence(name, says, tmp_path, capsys):
    hand_in(tmp_path, {"broken.zip": b"PK\3\4", "a.pdf": b"%PDF"})
    assert main([str(tmp_path / name), "-o", str(tmp_path / "grades.csv")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("grade: ") and says in error and error.count("\n") == 1


def test_of_a_copy_of_the_whole_course_what_was_worked_on_counts_and_copies_are_remarked(tmp_path):
    changed = made_up_class.changed(made_up_class.notebook(), "        losses =", "        each =")
    untouched, copied = (json.dumps(n).encode() for n in (made_up_class.notebook("labs"), changed))
    hand_in(tmp_path, {f"ann/labs/{NAME}": untouched, f"ann/labs/{STATIC}": 3})
    hand_in(tmp_path, {f"bob/{NAME}": untouched, f"cid/{NAME}": copied, f"dora/{NAME}": copied})
    (tmp_path / "eve").mkdir()
    labs = {"ann": "lab 3", "bob": "lab 2", "cid": "lab 2", "dora": "lab 2"}
    assert handed_in(tmp_path) == labs | {"eve": "holds no notebook (.ipynb)"}
    remarks = {each.learner: each.remarks for each in submissions.find(tmp_path)}
    assert remarks["cid"] == ["the same code as dora"] and not remarks["bob"]


def code_of(made):
    return [
        (c.get("id", ""), "".join(c["source"])) for c in made["cells"] if c["cell_type"] == "code"
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_the_learners_cells_are_run_whatever_became_of_the_notebook(order):
    code = [("", source) for _, source in code_of(made_up_class.notebook())[::order]]
    plan = cells.plan(2, code)
    whole = "\n".join(cell.source for cell in plan.cells if cell.whole)
    assert "def make_optimizer" in whole and len(plan.prelude) == 3
    assert "train_input, max_steps" not in whole, "an experiment"
    assert "load_digits()" not in whole, "a given cell"
    assert "those of our solution" in plan.remarks[-1]


def test_of_an_experiment_that_was_changed_what_it_defines_is_run():
    made = made_up_class.changed(made_up_class.notebook(), "max_steps=60)", "max_steps=90)")
    (cell,) = (cell for cell in cells.plan(2, code_of(made)).cells if "max_steps=90" in cell.source)
    assert not cell.whole
    made = made_up_class.with_first(made_up_class.notebook(), made_up_class.CHEAT)
    assert "code cell 1 reaches into the checks" in cells.plan(2, code_of(made)).remarks[0]


def graded(points, **more):
    results = {
        id: runs.Result("correct" if point == "1" else "incorrect", "Because of <b>this</b>.")
        for id, point in zip(made_up_class.TODOS, points, strict=True)
    }
    return runs.Graded(2, results, **more)


def submission(learner, name=NAME, lab=2):
    return submissions.Submission((learner, name), lab, learner=learner)


def test_the_table_has_a_row_a_learner_and_a_column_a_todo():
    table = page.rows(
        [
            (submission("ann", "first.ipynb"), graded("11000")),
            (submission("ann", "second.ipynb"), graded("11100", remarks=["code cell 3 reaches"])),
            (submission('=cmd("x")', lab=None), runs.Graded(None, problem="is empty")),
        ]
    )
    other, ann = csv.DictReader(io.StringIO(page.as_csv(table)))
    assert (ann["learner"], ann["points"], ann["of"]) == ("ann", "3", "5")
    assert [ann[id] for id in made_up_class.TODOS] == list("11100")
    assert "first.ipynb: left out" in ann["remarks"] and "code cell 3 reaches" in ann["remarks"]
    assert other["learner"].startswith("'=") and other["2a"] == "" and "is empty" in other["status"]


def test_the_page_for_the_screen_has_no_names_and_no_remarks():
    result = graded("01111", remarks=["the same code"])
    pairs = [(submission(who), result) for who in ("<script>ann", "bob")]
    unread = submission("cid", lab=None), runs.Graded(None, problem="cannot be read")
    table = page.rows([*pairs, unread])
    assert "1 of them handed in no notebook that can be graded" in page.of_class(table)
    shown, teacher = page.of_class(table), page.of_teacher(table)
    assert "bob" not in shown and "same code" not in shown and "2 x" in shown
    assert "<h3>TODO 2a: make_optimizer</h3>" in shown and "<h3>TODO 2b" not in shown
    assert "4 of 5" in teacher and "same code" in teacher and "&lt;script&gt;ann" in teacher
    for text in (shown, teacher):
        assert "<script" not in text and "<b>this" not in text and "<i>" not in text
        assert "prefers-color-scheme: dark" in text


def test_each_learner_has_a_page_of_what_the_checks_say():
    names = ["Zoë <b>", "a/b\n../c", "A_B_.._c", "...", "x" * 300]
    result = graded("01111", remarks=["the same code as ann"])
    pages = page.of_learners(page.rows([(submission(name), result) for name in names]))
    stems = ("Zoë _b_", "a_b_.._c", "A_B_.._c.2", "_", "x" * 60)
    assert sorted(pages) == sorted(f"{stem}.html" for stem in stems)
    for text in pages.values():
        assert "4 of 5" in text and "TODO 2a: make_optimizer" in text and "same code" not in text


def test_what_was_graded_is_written_where_grading_ends_early(tmp_path, monkeypatch, request):
    # A shell's job in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    for learner in ("ann", "bob", "cid"):
        made = made_up_class.with_first(made_up_class.notebook(), f"who = {learner!r}")
        hand_in(tmp_path, {f"class/{learner}/{NAME}": json.dumps(made).encode()})

    def grade(plan, *_):
        if "bob" in plan.cells[0].source:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(3)
        return graded("11111")

    monkeypatch.setattr(runs, "grade", grade)
    with pytest.raises(KeyboardInterrupt):
        main([str(tmp_path / "class"), "-o", str(tmp_path / "grades.csv"), "--jobs", "1"])
    ann, bob, cid = csv.DictReader((tmp_path / "grades.csv").open())
    assert ann["points"] == "5" and "stopped before it" in bob["status"] + cid["status"]


LIMITS = runs.Limits(step=5, total=40, memory=2**30)  # TensorFlow alone takes 600 MiB
RIGHT = 'on_a_tpu = {"TPU101": "A", "TPU201": "B"}\n'


def really_graded(*code, prelude=(), limits=LIMITS):
    """Lab 00 without its own cells, so without TensorFlow."""
    answers = [cells.Cell(f"cell {number}", text) for number, text in enumerate(code, 1)]
    return runs.grade(cells.Plan(0, list(prelude), [], answers), limits)


MATMUL = "def matmul_flop(m, k, n):\n    return 2 * m * k * n\n"
HABITS = f"""
%pip install -q tensorflow==2.15.1
!touch installed
from google.colab import drive
import google.colab.files
import os
drive.mount("/content/drive")
assert not os.path.exists("installed")
name = input("Your name? ")
{MATMUL}"""


def test_habits_of_other_places_cost_nothing():
    result = really_graded(HABITS, f"%%time\n{RIGHT}", "cheapest = {\n    pass")
    assert (result.results["0a"].points, result.results["0b"].points) == (1, 1), result
    assert result.results["0c"].why.startswith("Cell 3") and "Syntax" in result.results["0c"].why


PATIENT = replace(LIMITS, step=60, total=300)  # a busy machine hands out memory slowly
ENDINGS = {
    "loops": ("while True:\n    pass", LIMITS, "longer than"),
    "ends": ("import os\nos._exit(0)", PATIENT, "process ended"),
    "takes memory": ("blocks = [bytearray(2**24) for _ in range(10**6)]", PATIENT, "GiB of memory"),
}


@pytest.mark.parametrize("end", ENDINGS)
def test_a_cell_without_an_end_costs_its_own_todo_only(end):
    code, limits, says = ENDINGS[end]
    result = really_graded(RIGHT, MATMUL + code, limits=limits)
    assert result.results["0a"].points and result.results["0b"].points
    assert "only what it defines was run" in result.remarks[0] and says in result.remarks[0]


def test_an_answer_without_an_end_costs_its_own_todo_only():
    result = really_graded(RIGHT, "def matmul_flop(m, k, n):\n    while True:\n        pass")
    assert result.results["0a"].points and "longer than" in result.results["0b"].why


def test_checks_are_ours_again_whatever_a_cell_did_to_them():
    code = "import lab_utils.check.runner as r\nr.check = r.todos.find = lambda *a: 1\n"
    code += "import json\njson.dumps = lambda *a, **k: '{}'\nmatmul_flop = lambda m, k, n: 1"
    result = really_graded(code, RIGHT)
    assert (result.results["0b"].status, result.results["0a"].points) == ("incorrect", 1)


def test_a_given_cell_that_does_not_run_says_why():
    result = really_graded(RIGHT, prelude=["import not_installed_here"])
    assert "own cells do not run here (ModuleNotFoundError" in result.status


def test_a_grader_that_is_killed_leaves_no_process():
    """Its workers have a session of their own, and so do not hear Ctrl-C."""
    code = "import test_grade as t; t.really_graded('while True: pass', limits=t.runs.Limits(600))"
    folder = os.path.dirname(__file__)
    grader = subprocess.Popen([sys.executable, "-c", code], cwd=folder, start_new_session=True)
    process = psutil.Process(grader.pid)
    for _ in range(300):
        if workers := process.children():
            break
        psutil.wait_procs([process], timeout=0.2)
    grader.kill()
    grader.wait()
    assert psutil.wait_procs(workers, timeout=60)[1] == []


@pytest.mark.slow
def test_a_class_is_graded(tmp_path):
    """Really; a cell that loops or ends its process costs its own TODO only."""
    learners = made_up_class.learners()
    hand_in(
        tmp_path,
        {f"class/{who}/{NAME}": json.dumps(m).encode() for who, (m, _) in learners.items()},
    )
    hand_in(tmp_path, {f"class/broken/{NAME}": b"{"})
    output, screen = tmp_path / "grades.csv", tmp_path / "class.html"
    assert main([str(tmp_path / "class"), "-o", str(output), "--page", str(screen)]) == 0
    rows = {row["learner"]: row for row in csv.DictReader(io.StringIO(output.read_text()))}
    points = {who: "".join(row[id] for id in made_up_class.TODOS) for who, row in rows.items()}
    assert points == {who: wanted for who, (_, wanted) in learners.items()} | {"broken": ""}
    assert rows["endless"]["status"].endswith("timed out in 2b")
    assert rows["exiting"]["status"].endswith("ended its process in 2a")
    assert "reaches into" in rows["cheating"]["remarks"]
    assert "our solution" in rows["right"]["remarks"]
    assert "CrossShardOptimizer" in screen.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lab", sorted((made_up_class.ROOT / "solutions").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_solved_lab_has_all_points(lab):
    result = runs.grade(
        cells.plan(int(lab.name[:2]), code_of(json.loads(lab.read_text("utf-8")))), runs.Limits()
    )
    assert {each.why: each.status for each in result.results.values() if not each.points} == {}
    assert result.status == "graded" and "our solution" in result.remarks[-1]
