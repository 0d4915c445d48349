"""A class graded: whose notebook it is, what is the learner's own, the table, the pages; real grading."""

import csv
import io
import json
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import zipfile
from dataclasses import replace
from multiprocessing.pool import ThreadPool
from pathlib import Path

import made_up_class
import psutil
import pytest

from lab_utils.check import sources, todos
from lab_utils.common import command, interrupts
from lab_utils.teach import pages
from lab_utils.teach.grade import __main__ as grade_command
from lab_utils.teach.grade import page, runs, submissions
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
        (f"01/{NAME}", 2, "01", "lab 2"),
        (f"lab02/{NAME}", 2, f"lab02/{NAME}", "lab 2"),
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
    "numbers": [
        (f"student_01/{NAME}", 2, "student_01", "lab 2"),
        (f"student_02/02/{NAME}", 2, "student_02", "lab 2"),
        (f"02/group 3/{NAME}", b"", "group 3", "cannot be read"),
        (f"02/group 4/{NAME}", 2, "group 4", "lab 2"),
        (f"week 2/user05/{NAME}", 2, "user05", "lab 2"),
    ],
    "odd names": [
        (f"__Eve__Smith/{NAME}", 2, "Eve__Smith", "lab 2"),
        (f"ann/.{NAME}", 2, "ann", "lab 2"),
        (f"bob/.ipynb_checkpoints/{NAME}", 2, "bob", "holds no notebook"),
        ("cid.zip", zipped({f".ipynb_checkpoints/{NAME}": 2}), "cid", "holds no notebook"),
        ("dan.zip", zipped({f"__my_work/{NAME}": 2}), "dan", "lab 2"),
        ("eva.zip", zipped({f"/{NAME}": 2}), "eva", "lab 2"),
        ("fay.zip", zipped({f"../{NAME}": 2}), "fay", "lab 2"),
        ("gus.zip", zipped({"a/": b""}), "gus", "holds no notebook"),
        ("M\udcfcller/02.ipynb", 2, "M\xfcller", "lab 2"),
        (f"pro/{NAME}", 2, "pro", "lab 2"),
        ("pro/progress.json", b"[", "pro", "lab 2"),
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


def test_what_is_no_file_costs_its_own_row(tmp_path):
    """A link that leads nowhere, out of the class or to somebody else's work; a pipe; a folder in a zip."""
    elsewhere, klass = tmp_path / "elsewhere", tmp_path / "class"
    hand_in(elsewhere, {NAME: 2})
    hand_in(klass, {f"zoe/{NAME}": 2, "vic/a.pdf": b"%PDF"})
    for learner, target in {
        "ann/02.ipynb": "nowhere",
        "bob/x.zip": "nowhere",
        "cid/lab": elsewhere,
        "dan/02.ipynb": klass / "zoe" / NAME,
    }.items():
        (klass / learner).parent.mkdir()
        (klass / learner).symlink_to(target)
    (klass / "eva").mkdir()
    os.mkfifo(klass / "eva" / "02.ipynb")
    link = zipfile.ZipInfo("02.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(klass / "fay.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    labs = handed_in(klass)
    assert labs.pop("zoe") == "lab 2" and "only a.pdf" in labs.pop("vic")
    assert "neither a file nor a folder" in labs.pop("eva")
    assert set(labs) == {"ann", "bob", "cid", "dan", "fay"} and set(labs.values()) == {
        "is a link: the file itself is needed"
    }


def test_an_archive_with_a_whole_environment_is_read_once(tmp_path):
    """28,000 files in 3,500 folders; each folder once cost a walk through all names."""
    names = (f".venv/lib/package_{n}/module_{m}.py" for n in range(3500) for m in range(8))
    foreign = json.dumps({"cells": []})
    content = {f"work/{NAME}": 2, ".venv/lib/x.ipynb": foreign} | dict.fromkeys(names, "")
    hand_in(tmp_path, {"ann.zip": zipped(content), f"bob/{NAME}": 2})
    assert handed_in(tmp_path) == {"ann": "lab 2", "bob": "lab 2"}


def test_an_archive_of_which_one_byte_is_wrong_costs_its_own_row(tmp_path):
    """Each kind of compression; zipfile and its unpackers raise a dozen kinds of errors."""
    hand_in(tmp_path, {f"zoe/{NAME}": 2})
    chance = random.Random(0)
    for compression in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
        zipfile.ZIP_BZIP2,
        zipfile.ZIP_LZMA,
    ):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", compression) as archive:
            archive.writestr("M\xfcller.ipynb", SOLVED[2])
        for number in range(60):
            data = bytearray(whole.getvalue())
            place = chance.choice([chance.randrange(60), -chance.randrange(1, 100)])
            data[place] ^= 1 << chance.randrange(8)
            (tmp_path / f"student_{compression:02}{number:02}.zip").write_bytes(data)
    labs = handed_in(tmp_path)
    assert labs["zoe"] == "lab 2" and len(labs) == 241
    assert not [says for says in labs.values() if "None" in says]
    assert any("damaged" in says for says in labs.values())


def test_a_file_for_which_memory_is_too_small_costs_its_own_row(tmp_path, monkeypatch):
    hand_in(tmp_path, {f"ann/{NAME}": 2, "bob.zip": b""})
    read = Path.read_bytes

    def limited(path):
        if path.name == "bob.zip":
            raise MemoryError
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", limited)
    assert handed_in(tmp_path) == {"ann": "lab 2", "bob.zip": "is too large to be read"}


def test_of_archives_within_archives_some_are_opened(tmp_path):
    inner = {few: zipped({NAME: 2}) for few in (3, 30)}
    for few, data in inner.items():
        for _ in range(few):
            data = zipped({"more.zip": data})
        hand_in(tmp_path, {f"in_{few}.zip": data})
    labs = handed_in(tmp_path)
    assert labs["in_3"] == "lab 2" and "too many archives" in labs["in_30"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_costs_its_own_row(tmp_path):
    hand_in(tmp_path, {f"ann/{NAME}": 2, f"bob/{NAME}": 2, f"cid/{NAME}": 2})
    (tmp_path / "bob" / NAME).chmod(0)
    (tmp_path / "cid").chmod(0)
    labs = handed_in(tmp_path)
    (tmp_path / "cid").chmod(0o700)
    assert labs["ann"] == "lab 2" and "Permission denied" in labs["bob"] and labs["cid"]


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
    [
        *(("none", "No such file"), ("broken.zip", "damaged"), ("a.pdf", "no notebook")),
        ("empty", "empty holds no notebook of a lab. a folder is not a notebook"),
    ],
)
def test_what_cannot_be_graded_is_one_sentence(name, says, tmp_path, capsys):
    hand_in(tmp_path, {"broken.zip": b"PK\3\4", "a.pdf": b"%PDF"})
    (tmp_path / "empty").mkdir()
    arguments = [str(tmp_path / name), "-o", str(tmp_path / "grades.csv")]
    assert command.status_of(lambda: main(arguments)) == 1
    error = capsys.readouterr().err
    begins = f"{tmp_path / name}: " if name == "none" else "grade: "
    assert error.startswith(begins) and says in error and error.count("\n") == 1


def test_of_a_copy_of_the_whole_course_what_was_worked_on_counts_and_copies_are_remarked(tmp_path):
    changed = made_up_class.with_first(made_up_class.notebook(), "mine = 1")
    untouched, copied = (json.dumps(n).encode() for n in (made_up_class.notebook("labs"), changed))
    hand_in(tmp_path, {f"ann/labs/{NAME}": untouched, f"ann/labs/{STATIC}": 3})
    hand_in(tmp_path, {f"bob/{NAME}": untouched, f"cid/{NAME}": copied, f"dora/{NAME}": copied})
    (tmp_path / "eve").mkdir()
    labs = {"ann": "lab 3", "bob": "lab 2", "cid": "lab 2", "dora": "lab 2"}
    assert handed_in(tmp_path) == labs | {"eve": "holds no notebook (.ipynb)"}
    remarks = {each.learner: each.remarks for each in submissions.find(tmp_path)}
    assert remarks["cid"][-1] == "the same code as dora" and not remarks["bob"]


def submission_of(made):
    return submissions.of_cells(
        ("nb",), [(cell["cell_type"], made_up_class.source(cell)) for cell in made["cells"]]
    )


def test_a_cell_is_the_learners_own_where_something_was_written_into_it():
    made = made_up_class.notebook()
    lab = {made_up_class.source(cell) for cell in made_up_class.notebook("labs")["cells"]}
    submission = submission_of(made)
    assert {cell.source for cell in submission.cells if not cell.own} <= lab
    assert not lab & {cell.source for cell in submission.cells if cell.own}
    assert "identical to our solution" in submission.remarks[-1]
    checks = submissions.handed_out(made_up_class.LAB).checks
    own = [cell for cell in submission.cells if cell.own]
    for todo in made_up_class.TODOS:
        assert checks[todo] and any(submissions.writes(cell.source, todo) for cell in own)
    assert not submission_of(made_up_class.notebook("labs")).work


def test_minutes_of_labs_that_are_solved_whole(tmp_path, capsys, monkeypatch):
    """From the file that `lab_utils progress` writes; breaks of over half an hour are left out."""
    ids, start = sources.ids(2), 10**9
    for number, learner in enumerate(("ann", "bob", "cid")):
        times = {
            id: {"first": start + 600 * n, "solved": start + 600 * n + 60 * number}
            for n, id in enumerate(ids)
        }
        times["3a"] = {"first": 5}
        if learner == "cid":  # went to bed before the last one
            times[ids[-1]] = {"first": 2 * start, "solved": 2 * start + 120}
        hand_in(tmp_path, {f"class/{learner}/{NAME}": 2})
        hand_in(tmp_path, {f"class/{learner}/progress.json": json.dumps(times).encode()})
    monkeypatch.setattr(runs, "grade", lambda *_: graded())
    assert main([str(tmp_path / "class"), "-o", str(tmp_path / "grades.csv")]) == 0
    told = capsys.readouterr().out
    minutes = 10 * (len(ids) - 1)
    assert f"lab 02: {minutes} minutes" in told and "median of 3" in told and "lab 03" not in told


def graded(wrong=(), **more):
    """A notebook that is right but for these TODOs."""
    results = {
        id: runs.Result(
            "incorrect" if id in wrong else "correct", "Because of <b>this</b>.", "cell 7"
        )
        for id in made_up_class.TODOS
    }
    return runs.Graded(made_up_class.LAB, results, **more)


def submission(learner, name=NAME, lab=made_up_class.LAB):
    return submissions.Submission((learner, name), lab, learner=learner)


FIRST, *OTHERS = made_up_class.TODOS
OF = len(made_up_class.TODOS)
HEAD = f"TODO {FIRST}: {', '.join(todos.find(FIRST).names)}"


def test_the_table_has_a_row_a_learner_and_a_column_a_todo():
    table = page.rows(
        [
            (submission("ann", "first.ipynb"), graded(made_up_class.TODOS)),
            (submission("ann", "second.ipynb"), graded([FIRST], remarks=["code cell 3 reaches"])),
            (submission('=cmd("x")', lab=None), runs.Graded(None, problem="is empty")),
            (submission("bob", "", lab=None), runs.Graded(None, problem="holds no notebook")),
        ]
    )
    other, ann, bob = csv.DictReader(io.StringIO(page.as_csv(table)))
    assert (ann["learner"], ann["points"], ann["of"]) == ("ann", str(OF - 1), str(OF))
    assert "".join(ann[id] for id in made_up_class.TODOS) == made_up_class.marks(FIRST)
    assert "first.ipynb: left out" in ann["remarks"] and "code cell 3 reaches" in ann["remarks"]
    assert bob["status"] == "could not be graded: holds no notebook", "an empty folder has no file"
    assert (
        other["learner"].startswith("'=") and other[FIRST] == "" and "is empty" in other["status"]
    )


def test_the_page_for_the_screen_has_no_names_and_no_remarks():
    result = graded([FIRST], remarks=["the same code"])
    other = replace(result.results[FIRST], place="cell 12")
    results = (result, replace(result, results=result.results | {FIRST: other}))
    pairs = [
        (submission(who), each) for who, each in zip(("<script>ann", "bob"), results, strict=True)
    ]
    unread = submission("cid", lab=None), runs.Graded(None, problem="cannot be read")
    table = page.rows([*pairs, unread])
    assert "1 of them handed in no notebook that can be graded" in page.of_class(table)
    shown, teacher = page.of_class(table), page.of_teacher(table)
    assert "bob" not in shown and "same code" not in shown
    assert "2 x" in shown and "cell 7" not in shown, "the same mistake in other cells"
    assert f"<h3>{HEAD}</h3>" in shown and f"<h3>TODO {OTHERS[0]}" not in shown
    assert f"{OF - 1} of {OF}" in teacher and "same code" in teacher and "cell 12" in teacher
    assert "&lt;script&gt;ann" in teacher
    for text in (shown, teacher):
        assert "<script" not in text and "<b>this" not in text and "<i>" not in text
        assert "prefers-color-scheme: dark" in text


def test_each_learner_has_a_page_of_what_the_checks_say():
    names = ["Zoë <b>", "a/b\n../c", "A_B_.._c", "...", "x" * 300]
    result = graded([FIRST], remarks=["the same code as ann"])
    pages_ = page.of_learners(page.rows([(submission(name), result) for name in names]))
    stems = ("Zoë _b_", "a_b_.._c", "A_B_.._c.2", "_", "x" * 60)
    assert sorted(pages_) == sorted(f"{stem}.html" for stem in stems)
    for text in pages_.values():
        assert f"{OF - 1} of {OF}" in text and HEAD in text and "same code" not in text


@pytest.fixture
def klass(tmp_path):
    """Three learners' notebooks."""
    for learner in ("ann", "bob", "cid"):
        made = made_up_class.with_first(made_up_class.notebook(), f"who = {learner!r}")
        hand_in(tmp_path, {f"class/{learner}/{NAME}": json.dumps(made).encode()})
    return tmp_path / "class"


def rows_of(path):
    return {row["learner"]: row for row in csv.DictReader(path.open(encoding="utf-8"))}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_graded_is_written_where_grading_ends_early(
    number, klass, monkeypatch, request, capsys
):
    # A shell's job in the background ignores SIGINT; a command hears the others as Ctrl-C.
    for each, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        before = signal.signal(each, handler)
        request.addfinalizer(lambda each=each, before=before: signal.signal(each, before))
    interrupts.as_ctrl_c()
    output, over = klass.parent / "grades.csv", threading.Event()
    request.addfinalizer(over.set)

    def grade(submission, _):
        if submission.learner == "bob":
            assert rows_of(output)["ann"]["points"] == str(OF), "rows are written as they come"
            signal.pthread_kill(threading.main_thread().ident, number)
            over.wait(60)
        return graded()

    monkeypatch.setattr(runs, "grade", grade)
    with pytest.raises(KeyboardInterrupt):
        main([str(klass), "-o", str(output), "--jobs", "1"])
    rows = rows_of(output)
    assert rows["ann"]["points"] == str(OF)
    assert "stopped before it" in rows["bob"]["status"] + rows["cid"]["status"]
    assert "stopped after 1 of 3 notebooks" in capsys.readouterr().err


def test_what_goes_wrong_with_one_notebook_costs_the_others_nothing(klass, monkeypatch):
    def grade(submission, _):
        if submission.learner == "bob":
            raise RuntimeError("something of ours")
        return graded(remarks=["half a character: \udcfc"])

    monkeypatch.setattr(runs, "grade", grade)
    output, made = klass.parent / "grades.csv", klass.parent / "pages"
    assert main([str(klass), "-o", str(output), "--pages", str(made)]) == 0
    rows = rows_of(output)
    assert [rows[who]["points"] for who in ("ann", "bob", "cid")] == [str(OF), "0", str(OF)]
    assert "RuntimeError: something of ours" in rows["bob"]["status"]
    assert sorted(path.name for path in made.iterdir()) == [
        "class.html",
        "feedback",
        "teacher.html",
    ]
    assert len(list((made / "feedback").iterdir())) == 3


def test_an_earlier_table_stays_where_the_pages_have_no_place(klass):
    output, made = klass.parent / "grades.csv", klass.parent / "pages"
    output.write_text(page.as_csv([]))
    before = output.read_bytes()
    made.touch()
    with pytest.raises(NotADirectoryError):
        main([str(klass), "-o", str(output), "--pages", str(made)])
    assert output.read_bytes() == before


def test_there_are_no_more_jobs_than_notebooks(klass, monkeypatch):
    monkeypatch.setattr(runs, "grade", lambda *_: graded())
    pools = []
    monkeypatch.setattr(
        grade_command, "ThreadPool", lambda jobs: pools.append(jobs) or ThreadPool(jobs)
    )
    assert main([str(klass), "-o", str(klass.parent / "grades.csv"), "--jobs=99999"]) == 0
    assert pools == [3]


@pytest.mark.parametrize(
    "flag",
    [
        *("--memory_gib=1e300", "--memory_gib=nan", "--step_seconds=0"),
        *("--total_seconds=1e7", "--total_seconds=-1", "--jobs=0", "--jobs=-3"),
    ],
)
def test_a_limit_is_a_number_that_the_system_takes(flag, klass, capsys):
    with pytest.raises(SystemExit) as end:
        main([str(klass), "-o", str(klass.parent / "grades.csv"), flag])
    assert end.value.code == 2 and "is not a number above 0" in capsys.readouterr().err


# Real kernels. Lab 00's answers stand by themselves: without the lab's own cells there is no TensorFlow.
LIMITS = runs.Limits(step=60, total=300, memory=2**30)  # a busy machine starts kernels slowly
QUICK = tuple(sources.ids(0))
ANSWERS = [
    cell["source"]
    for cell in pages.cells(made_up_class.ROOT, 0).values()
    if any(f"# TODO {id}" in cell["source"] for id in QUICK)
]


@pytest.fixture
def quickly(monkeypatch):
    """Grades a notebook of lab 00: these cells, then the answers."""
    lab = replace(submissions.handed_out(0), given=())
    monkeypatch.setattr(runs, "handed_out", lambda _: lab)

    def grade(*code, limits=LIMITS, answers=ANSWERS):
        cells = [("code", source) for source in (*code, *answers)]
        submission = submissions.of_cells(("nb",), cells)
        return runs.grade(submission, limits)

    return grade


def test_habits_of_other_places_cost_nothing(quickly):
    habits = """
%pip install -q tensorflow==2.15.1
!pip install something
!touch made
from google.colab import drive
import google.colab.files
import os
drive.mount("/content/drive")
assert os.path.exists("made")
name = input("Your name? ")
exit()
"""
    result = quickly(
        habits, "%%writefile program.py\nx = 1\n", "import program\nassert program.x == 1"
    )
    assert result.points == len(QUICK) and not result.remarks, result


def test_cells_in_another_order_are_run_again(quickly):
    *others, last = ANSWERS
    result = quickly(f"if base:\n{textwrap.indent(last, '    ')}", "base = 1", answers=others)
    assert result.points == len(QUICK)


STUBBORN = """
import time
while True:
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        pass
"""
JUNK = """
import os
for number in range(3, 60):
    try:
        os.write(number, b"hello\\n")
    except OSError:
        pass
"""
QUICKLY = replace(LIMITS, step=10)
ENDINGS = {
    "loops": ("while True:\n    pass", QUICKLY, "longer than"),
    "does not hear": (STUBBORN, QUICKLY, "longer than"),
    "ends": ("import os\nos._exit(0)", LIMITS, "process ended"),
    "ends its group": ("import os\nos.killpg(0, 15)", LIMITS, "process ended"),
    "takes memory": ("blocks = [bytearray(2**24) for _ in range(10**6)]", LIMITS, "GiB of memory"),
    "writes anywhere": (JUNK, LIMITS, "cannot be read"),
    "replaces json": (
        "import json\njson.encoder.JSONEncoder.encode = lambda *a: '{}'",
        LIMITS,
        "cannot be read",
    ),
}


@pytest.mark.parametrize("end", ENDINGS)
def test_a_cell_without_an_end_costs_itself_only(end, quickly):
    code, limits, says = ENDINGS[end]
    result = quickly(code, limits=limits)
    assert result.points == len(QUICK)
    assert says in next(remark for remark in result.remarks if remark.startswith("code cell 1: "))


SPARED = {
    "ends its parent": "import os\nfor number in (1, 2, 15):\n    os.kill(os.getppid(), number)",
    "prints much": "for _ in range(100):\n    print('x' * 10**6)",
    "shows much": "from IPython.display import HTML\nHTML('x' * 10**8)",
    "raises half a character": "raise ValueError('\\udcfc')",
    "raises no Exception": "raise GeneratorExit",
    "leaves": "import sys\nsys.exit(3)",
    "asks nobody": "import lab_utils.check\nlab_utils.check.check = lambda *a: 1",
}


def test_what_cells_do_beside_an_answer_costs_nothing(quickly):
    assert quickly(*SPARED.values()).points == len(QUICK)


def test_who_ends_the_process_that_runs_it_is_told_so(quickly):
    result = quickly("import os\nos.kill(os.getppid(), 9)")
    assert "was ended, perhaps by it (SIGKILL)" in result.status and not result.points


def test_nothing_that_a_notebook_starts_is_left(quickly):
    sleeping = "import subprocess, sys\ncode = 'import time; time.sleep(1000)'\n"
    sleeping += (
        "subprocess.Popen([sys.executable, '-c', code, 'left behind'], start_new_session=True)"
    )
    assert quickly(sleeping).points == len(QUICK)
    lines = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if "left behind" in line]


def test_a_cell_that_fails_says_why_its_todo_was_not_attempted(quickly):
    *others, last = ANSWERS
    result = quickly("x = 1", f"{last}\n)", answers=others)
    missed = [each for each in result.results.values() if not each.points]
    assert [each.status for each in missed] == ["incorrect"]
    assert missed[0].why.startswith("SyntaxError") and missed[0].place.startswith(
        "code cell 2, line "
    )


def test_a_grader_that_is_killed_leaves_no_process(tmp_path):
    """Its workers have a session of their own, and so do not hear Ctrl-C."""
    code = """
import test_grade as t
cells = [("code", "while True: pass  # TODO 0")] + [("code", a) for a in t.ANSWERS]
t.runs.grade(t.submissions.of_cells(("nb",), cells), t.runs.Limits(600))
"""
    folder = os.path.dirname(__file__)
    grader = subprocess.Popen([sys.executable, "-c", code], cwd=folder, start_new_session=True)
    process = psutil.Process(grader.pid)
    for _ in range(300):
        if len(family := process.children(recursive=True)) > 1:  # the worker and its kernel
            break
        psutil.wait_procs([process], timeout=0.2)
    grader.kill()
    grader.wait()
    assert psutil.wait_procs(family, timeout=60)[1] == []


@pytest.mark.slow
def test_a_class_is_graded(tmp_path):
    """Really; a cell that loops or ends its process costs its own TODO only."""
    learners = made_up_class.learners()
    hand_in(
        tmp_path,
        {f"class/{who}/{NAME}": json.dumps(m).encode() for who, (m, _) in learners.items()},
    )
    hand_in(tmp_path, {f"class/broken/{NAME}": b"{"})
    output, made = tmp_path / "grades.csv", tmp_path / "pages"
    assert main([str(tmp_path / "class"), "-o", str(output), "--pages", str(made)]) == 0
    rows = rows_of(output)
    points = {who: "".join(row[id] for id in made_up_class.TODOS) for who, row in rows.items()}
    assert points == {who: wanted for who, (_, wanted) in learners.items()} | {"broken": ""}
    todo, _ = made_up_class.lonely_function()
    assert rows["endless"]["status"].endswith(f"timed out in {todo}")
    assert rows["exiting"]["status"].endswith(f"ended its process in {todo}")
    assert "our solution" in rows["right"]["remarks"]
    assert f"TODO {todo} is correct with the course's own object" in rows["shown"]["remarks"]
    wrong, _ = made_up_class.wrong_answer()
    assert f"TODO {wrong}" in (made / "class.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lab", sorted((made_up_class.ROOT / "solutions").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_solved_lab_has_all_points(lab):
    submission = submissions.of_cells(
        (lab.name,),
        [
            (c["cell_type"], made_up_class.source(c))
            for c in json.loads(lab.read_text("utf-8"))["cells"]
        ],
    )
    result = runs.grade(submission, runs.Limits())
    assert {each.why: each.status for each in result.results.values() if not each.points} == {}
    assert result.status == "graded" and "our solution" in submission.remarks[-1]
    assert not result.remarks
