"""An answer is given again only where nothing that it was made from has changed."""

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from test_dry_run_cli import PORT

from lab_utils.common import scratch
from lab_utils.dry_run import cache, doubts, evidence, unchanged

PROGRAM = """
    import glob, json, os
    import helper
    settings = json.load(open("settings.json"))
    data = [open(path, "rb").read() for path in sorted(glob.glob("data/part-*"))]
    linked = open("link").read()
    there = os.path.exists("switch")
    listed = os.listdir("folder")
"""
FILES = {
    "program.py": PROGRAM,
    "helper.py": "value = 1\n",
    "settings.json": "{}",
    "data/part-1": "one",
    "target_1": "a",
    "target_2": "b",
    "folder/one": "",
    "before/unused.txt": "",
    "before/more.pth": "/nowhere\n",
}
# The files that a test has just made are not to count as newer than the run.
OBSERVER = """
    import json, os, runpy, sys
    from lab_utils.dry_run import evidence
    with evidence.gathering(frozenset([os.path.abspath("report.json")])) as gathered:
        gathered._began += float(sys.argv[1])
        runpy.run_path("program.py")
        found = gathered.finished()
    parts = {part: getattr(found, part) for part in ("files", "folders", "modules", "patterns")}
    print(json.dumps({"doubts": found.doubts, "kept": parts}))
"""


def made(folder: Path) -> Path:
    """The folder with FILES alone."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(textwrap.dedent(text))
    (folder / "link").symlink_to("target_1")
    return folder


def observed(folder: Path, later: float = 3600) -> dict:
    """What a process that runs the folder's program notes: "kept" and "doubts"."""
    root = Path(evidence.__file__).parents[2]
    path = os.pathsep.join([str(folder / "before"), str(folder), str(root)])
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OBSERVER), str(later)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The folder, and what was noted there."""
    folder = made(tmp_path_factory.mktemp("seen") / "own")
    found = observed(folder)
    assert found["doubts"] == []
    return folder, found["kept"]


def holds(kept: dict, folder: Path) -> bool:
    return evidence.unchanged(kept, frozenset([str(folder / "report.json")]))


def replaced(path: Path, text: str) -> None:
    """Another file of the same name and time of writing."""
    times = path.stat()
    path.unlink()
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def retarget(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("target_2")


CHANGES = {
    "a helper module": lambda f: (f / "helper.py").write_text("value = 20\n"),
    "a helper module, same size and time": lambda f: replaced(f / "helper.py", "value = 3\n"),
    "the program": lambda f: (f / "program.py").write_text("import helper\n"),
    "a settings file": lambda f: (f / "settings.json").write_text('{"a": 1}'),
    "a data file, same size and time": lambda f: replaced(f / "data/part-1", "two"),
    "one more file that the glob matches": lambda f: (f / "data/part-2").write_text("new"),
    "a data file less": lambda f: (f / "data/part-1").unlink(),
    "one more name in a folder": lambda f: (f / "folder/two").write_text(""),
    "a link to another file": retarget,
    "the file behind a link": lambda f: (f / "target_1").write_text("ab"),
    "a file that was not there": lambda f: (f / "switch").write_text(""),
    "a module earlier on the path": lambda f: (f / "before/helper.py").write_text("value = 4\n"),
    "a package earlier on the path": lambda f: (f / "before/helper").mkdir(),
    "a module that hides an installed one": lambda f: (f / "json.py").write_text(""),
    "a sitecustomize": lambda f: (f / "before/sitecustomize.py").write_text(""),
    "what adds to Python's path": lambda f: (f / "before/more.pth").write_text("/somewhere\n"),
    "a settings file less": lambda f: (f / "settings.json").unlink(),
    "a folder for a file": lambda f: ((f / "target_1").unlink(), (f / "target_1").mkdir()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts(seen, change):
    folder, kept = seen
    made(folder)  # as it was, but for the times
    kept = kept | {"files": {path: evidence.state(path) for path in kept["files"]}}
    assert holds(kept, folder)
    (folder / "report.json").write_text("the dry run's own")
    (folder / "unrelated.txt").write_text("nobody looks at it")
    assert holds(kept, folder)
    CHANGES[change](folder)
    assert not holds(kept, folder)


DOUBTS = {
    "import time\nname = time.time()": "says time",
    "import importlib\nclock = importlib.import_module('datetime')": "says datetime",
    "import os\nos.system('true')": "os.system",
    "import sub" + "process\nsub" + "process.run(['true'])": "subprocess.Popen",
    "import socket\nsocket.getaddrinfo('localhost', 1)": "socket.getaddrinfo",
    "open('log.txt', 'a').write('x'); open('log.txt').read()": "log.txt has changed meanwhile",
    "open('settings.json').read(); open('settings.json', 'w').write('{ }')": None,
    "import sys\nwords = sys.stdin.read()": "says stdin",
    "import tempfile\nopen(tempfile.mkdtemp() + '/a', 'w').write('x')": None,
    "import os\nos.makedirs('made', exist_ok=True)": "made has changed meanwhile",
}


@pytest.mark.parametrize("program", DOUBTS)
def test_what_cannot_be_told_is_a_doubt(tmp_path, program):
    folder = made(tmp_path / "own")
    (folder / "program.py").write_text(program)
    found = observed(folder)["doubts"]
    says = DOUBTS[program]
    assert says in " ".join(found) if says else found == []


def test_a_notebook_is_a_doubt():
    assert doubts.is_users("/home/of/train.ipynb")
    assert doubts.of_code("/home/of/train.ipynb") == [
        "/home/of/train.ipynb is a notebook, whose code is not looked through"
    ]


def test_a_file_that_is_younger_than_the_run_is_a_doubt(tmp_path):
    found = observed(made(tmp_path), -3600)["doubts"]
    assert any("settings.json has changed" in doubt for doubt in found)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch, folder: patch.setattr(sys, "orig_argv", ["python", "--topology", "v3:2x2"]),
        lambda patch, folder: patch.setenv("MY_PROGRAMS_OWN", "1"),
        lambda patch, folder: patch.setenv("PYTHONPATH", str(folder)),
        lambda patch, folder: patch.chdir(folder),
        lambda patch, folder: patch.setattr(sys, "executable", "/another/python"),
        lambda patch, folder: patch.setattr(sys, "version", "3.99"),
        lambda patch, folder: patch.setattr(os, "cpu_count", lambda: 999),
    ],
    ids=("flag", "variable", "PYTHONPATH", "folder", "environment", "Python", "machine"),
)
def test_another_command_has_another_name(monkeypatch, tmp_path, change):
    before = unchanged.name()
    assert unchanged.name() == before
    change(monkeypatch, tmp_path)
    assert unchanged.name() != before


@pytest.fixture
def no_doubts(monkeypatch):
    """What pytest itself loads is no doubt."""
    monkeypatch.setattr(doubts, "unknown_packages", list)
    monkeypatch.setattr(doubts, "of_code", lambda path: [])


def test_a_folder_for_the_jobs_own_temporary_files_gives_no_other_name(monkeypatch, tmp_path):
    """The whole job has another one each time, and its dry run would be carried out again."""
    names = set()
    for _ in range(2):
        with scratch.folder(parent=tmp_path) as folder:
            monkeypatch.setenv("TMPDIR", folder)
            names.add(unchanged.name())
    (again,) = names
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the user's own, where a program's data may lie
    assert unchanged.name() != again


def test_no_value_of_the_environment_is_kept(monkeypatch, own_cache, no_doubts, tmp_path):
    monkeypatch.setenv("TOKEN", "very-secret")
    with unchanged.watched(unchanged.name(), []) as watch:
        (tmp_path / "read").exists()
    watch.evidence._began += 3600
    assert watch.keep(unchanged.Answer(0, "ready", [])) == []
    [entry] = cache.folder().glob(f"{watch.name}.json.gz")
    assert b"very-secret" not in gzip.decompress(entry.read_bytes())


@pytest.fixture
def kept(own_cache, no_doubts, tmp_path):
    """A kept answer with a report, and the file that it was made from."""
    source, report = tmp_path / "source", tmp_path / "report.json"
    source.write_text("1")
    with unchanged.watched("name", [report]) as watch:
        source.read_text()
        report.write_text("the report")
    watch.evidence._began += 3600
    assert watch.keep(unchanged.Answer(1, "one error", [report])) == []
    return source, report


def test_an_answer_comes_back_with_its_files(kept, capsys):
    _, report = kept
    report.unlink()
    answer = unchanged.recalled("name")
    assert (answer.status, answer.text) == (1, "one error")
    assert report.read_text() == "the report"
    assert "--no_cache judges again" in capsys.readouterr().err


def test_an_answer_is_no_longer_given_when_its_source_has_changed(kept):
    kept[0].write_text("22")
    assert unchanged.recalled("name") is None


def test_an_answer_is_given_for_a_day(kept, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 23 * 3600)
    assert unchanged.recalled("name")
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    assert unchanged.recalled("name") is None
    monkeypatch.setattr(time, "time", lambda: now - 3600)  # the clock was set back
    assert unchanged.recalled("name") is None


def test_our_own_sources_count(kept):
    found = cache.read("name")["evidence"]["files"]
    own = Path(evidence.__file__).parent
    assert all(str(own / name) in found for name in ("api.py", "private/child.py"))


TENSORFLOW = {
    "tf.data.TFRecordDataset([data])": [],
    "tf.data.Dataset.list_files(folder + '/*').interleave(tf.data.TFRecordDataset)": [],
    "tf.data.Dataset.from_tensor_slices([data]).map(tf.io.read_file)": [],
    "tf.io.gfile.glob(folder + '/*')": [],
    "tf.io.gfile.GFile(data).read()": [],
    "tf.io.read_file(tf.strings.join([folder, '/', 'data']))": [],
    "tf.data.Dataset.from_tensors('data').map(lambda n: tf.io.read_file(tf.strings.join([folder, n])))":
        ["ReadFile of a name that StringJoin may have made"],
    "tf.data.TextLineDataset(data).interleave(tf.data.TFRecordDataset)":
        ["TFRecordDataset of a name that TextLineDataset may have made"],
    "tf.data.TFRecordDataset('gs://bucket/data')": ["gs://bucket/data lies elsewhere"],
    "tf.data.TFRecordDataset([data]).cache(folder + '/kept')": ["the op CacheDataset"],
    "tf.data.TFRecordDataset([data]).cache()": [],
    "tf.timestamp()": ["the op Timestamp"],
}  # fmt: skip


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("program", TENSORFLOW)
def test_what_tensorflow_reads_is_noted(tmp_path, program, graph):
    from lab_utils.dry_run.private import reading
    from lab_utils.estimator import tf

    data = tmp_path / "data"
    data.write_text("x")
    if graph and "join([folder, '/'" in program:
        pytest.skip("the name is not known in a graph")
    seen = evidence.Evidence()
    with reading.told(seen), tf.Graph().as_default() if graph else contextlib.nullcontext():
        eval(program, {"tf": tf, "data": str(data), "folder": str(tmp_path)})
    assert bool(seen.doubts) == bool(TENSORFLOW[program]), seen.doubts
    assert all(each in " ".join(seen.doubts) for each in TENSORFLOW[program]), seen.doubts
    if not seen.doubts:
        assert str(data) in seen._there


@pytest.mark.slow
def test_the_command_answers_again_and_judges_again(tmp_path, own_cache):
    (tmp_path / "port.py").write_text(textwrap.dedent(PORT))
    os.utime(tmp_path / "port.py", (1.6e9, 1.6e9))
    time.sleep(2.5)  # a younger file is a doubt

    def run(*flags: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "lab_utils.dry_run", "port.py:right", *flags]
        return subprocess.run(
            [*command, "--stages", "trace,read", "--json", "report.json"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip

    run()  # it makes the folder of compiled modules
    first, again = run(), run()
    assert "Nothing that this dry run read has changed" in again.stderr, first.stderr
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)
    assert "Nothing" not in run("--no_cache").stderr
    with (tmp_path / "port.py").open("a") as file:
        file.write("\n# edited\n")
    assert "Nothing" not in run().stderr
