"""Hand-ins, really graded: attacks gain nothing and are named, habits of other places cost nothing."""

import _thread
import dataclasses
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import attacks
import made_up_class
import numpy
import psutil
import pytest

from lab_utils.teach.grade import cells, kept, processes, runs
from lab_utils.teach.grade.__main__ import main
from lab_utils.teach.grade.kept import Kept

LIMITS = runs.Limits(step=5, total=30, memory=2**30)  # TensorFlow alone takes 600 MiB


def graded(*code, limits=LIMITS):
    """Lab 00 without its own cells, so without TensorFlow."""
    return runs.grade(dataclasses.replace(cells.plan(0, code), given=[]), limits)


def of_attack(name):
    code, says = attacks.CHEATS[name]
    result = graded(code, attacks.RIGHT)
    told = "\n".join([*(each.why for each in result.results.values()), *result.remarks])
    assert says in told, told
    assert not result.results["0a"].points and result.results["0b"].points == 1, told
    assert max(map(len, (told, result.status))) < 10_000


# Each closes another way; all of them are run with -m slow.
@pytest.mark.parametrize(
    "name",
    [
        "tells by os.write",
        "silences expect while it is checked",
        "frames of an exception",
        "reads the solution as a file",
        "ends the grader",
        "predicts a million times",
    ],
)
def test_an_attack_gains_nothing_and_is_named(name):
    of_attack(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", attacks.CHEATS)
def test_each_attack_gains_nothing_and_costs_its_own_todo_alone(name):
    of_attack(name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_a_submission_has_started_ends_with_it():
    """Also what has left its session and its parent, and so the tree of processes."""
    name = "stays_after_grading"
    code = f"""
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "{name}"])
    os._exit(0)
import time
time.sleep(0.5)
"""
    assert graded(code, attacks.RIGHT).results["0b"].points
    assert not [each for each in psutil.process_iter(["cmdline"]) if name in str(each.info)]


def test_an_interrupted_grader_ends_what_it_runs():
    """Its processes have a session of their own, and so do not hear Ctrl-C."""
    limits = runs.Limits(step=600, total=600)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(graded, "while True:\n    pass", limits=limits)
        limits.stop.set()
        with pytest.raises(runs.Stopped):
            running.result()


def test_of_an_interrupted_class_nothing_more_is_run_and_the_table_stays(tmp_path, monkeypatch):
    """The second of three is interrupted."""
    for number in range(3):
        one = made_up_class.notebook()
        one["cells"].append(made_up_class.code_cell(f"NUMBER = {number}"))
        path = tmp_path / "class" / f"learner{number}" / made_up_class.NAME
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(one), encoding="utf-8")
    ran = []

    def run(plan, limits):
        ran.append(plan)
        if len(ran) == 1:
            return runs.Graded(2)
        _thread.interrupt_main()
        limits.stop.wait()
        raise runs.Stopped

    monkeypatch.setattr(runs, "grade", run)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            main([str(tmp_path / "class"), "-o", str(tmp_path / "grades.csv")])
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ran) == 2


def test_what_is_graded_ends_where_its_grader_was_killed(tmp_path):
    reader, writer = os.pipe()
    job = {"token": "x", "lab": 0, "given": [], "todos": [], "beside": {}}
    job["cells"] = [{"label": "1", "source": "while True:\n    pass", "todos": []}]
    worker = processes.start(str(tmp_path), writer, job)
    os.close(writer)
    with os.fdopen(reader) as told:
        assert '"begin": "lab"' in told.readline()
    assert worker.wait(timeout=120) == -signal.SIGKILL


HABITS = """
%pip install -q tensorflow==2.15.1
!pip uninstall -y numpy && touch installed
%tensorflow_version 2.x
%matplotlib widget
%load_ext tensorboard
%tensorboard --logdir runs
import os
import seaborn_of_another_place.styles as styles
from kaggle_secrets import UserSecretsClient
styles.set_theme(UserSecretsClient().get_secret("key"))
assert not os.path.exists("installed")
%%time


def matmul_flop(m, k, n):
    return 2 * m * k * n
"""
TIMED = """%%of_another_place --quiet
def peak_flops(rows, columns, hertz):
    return 2 * rows * columns * hertz
"""


def test_what_only_other_places_have_costs_nothing():
    result = graded(HABITS, TIMED)
    assert (result.results["0a"].points, result.results["0b"].points) == (1, 1), result
    assert result.remarks == [
        "cell 1 imports seaborn_of_another_place, which is not installed here",
        "cell 1 uses %%time, which is not here",
        "cell 2 uses %%of_another_place, which is not here",
    ]


@pytest.mark.parametrize("end", ["while True:\n    pass", "import os\nos._exit(0)"])
def test_an_answer_counts_where_what_stands_below_it_has_no_end(end):
    """As a training of the learner's own, in the same cell."""
    result = graded(f"import math\n{attacks.RIGHT}{end}", limits=runs.Limits(step=3, total=30))
    assert result.results["0b"].points and result.results["0a"].status == "not attempted"
    (told,) = result.remarks
    assert told.startswith("cell 1 was left out, but for what it defines: "), told


def test_what_asks_for_input_hears_that_nobody_types():
    asks = "if input('Go on? ') != 'y':\n    print('no')\nsteps = int(input('How many? '))\n"
    endless = "while input() != 'y':\n    pass"
    result = graded(endless, asks + attacks.RIGHT)
    assert result.results["0b"].points, "what stands below the line that raised is defined"
    told = [f"cell {n} asks for input; nobody types while this is graded" for n in (1, 2)]
    assert [each.partition(",")[0] for each in result.remarks] == told, result.remarks


def test_a_function_of_another_name_is_judged_where_its_check_is_called_with_it():
    (starter,) = (each for each in cells._released(0).starters if "TODO 0b" in each)
    mine = attacks.RIGHT.replace("peak_flops", "mine")
    result = graded(mine + "\n# TODO 0b", 'check("0b", mine)\nhint("0b")', 'check("0a", absent)')
    assert result.results["0b"].points and "0b is judged by mine" in result.remarks[0]
    assert result.results["0a"].why == "No cell defines matmul_flop."
    left = graded(starter, mine, 'check("0b", mine)')
    assert left.results["0b"].points, "a starter that nobody worked on answers nothing"


def test_a_given_cell_that_does_not_run_says_why():
    plan = dataclasses.replace(cells.plan(0, [attacks.RIGHT]), given=["import not_installed_here"])
    said = runs.grade(plan, LIMITS).status
    assert "own cells do not run here (ModuleNotFoundError: No module named 'not_inst" in said


@pytest.mark.skipif(not os.path.exists("/proc/loadavg"), reason="needs Linux")
def test_a_worker_is_held_to_a_number_of_processes():
    code = "import resource\nassert resource.getrlimit(resource.RLIMIT_NPROC)[0] < 1_000_000"
    assert graded(f"{code}\n{attacks.RIGHT}").results["0b"].points


class Own:
    """Of this module, which is nobody's to keep."""


def test_what_answers_to_any_name_is_not_asked():
    class Lazy:
        def __getattr__(self, name):
            raise RuntimeError("the flags are not parsed yet")

        def __call__(self):
            return None

    def plain():
        return None

    lazy = Lazy()
    assert kept._functions(lazy) == []
    lazy.__wrapped__ = plain
    assert kept._functions(lazy) == [plain] == kept._functions(plain)


def test_functions_classes_and_their_parts_are_put_back():
    kept, graded, plan = Kept(), runs.Graded, cells.plan
    status, allclose = vars(graded)["status"], numpy.allclose
    defaults = allclose.__wrapped__.__defaults__
    numpy.allclose = cells.isinstance = Own.own = lambda *given: True
    allclose.__wrapped__.__defaults__ = (1.0, 1.0, True)
    plan.__code__ = (lambda *given: None).__code__
    graded.status = graded.__bool__ = property(lambda self: "graded")
    assert kept.restore() == {
        "numpy.allclose",
        "numpy._core.numeric.allclose, inside",
        "lab_utils.teach.grade.cells.isinstance",
        "lab_utils.teach.grade.cells.plan, inside",
        "lab_utils.teach.grade.runs.Graded.status",
        "lab_utils.teach.grade.runs.Graded.__bool__",
    }
    assert numpy.allclose is allclose and allclose.__wrapped__.__defaults__ == defaults
    assert vars(graded)["status"] is status and not hasattr(cells, "isinstance")
    assert cells.plan(0, []).cells == [] and Own.own and kept.restore() == set()
