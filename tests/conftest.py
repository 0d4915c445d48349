"""What several tests share, made once in a run: a few small pictures, converted and trained on."""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import lanes
import pytest
from PIL import Image

from lab_utils import datasets
from lab_utils.common import files, proxies, scratch
from lab_utils.convert import Manifest, convert, read_manifest
from lab_utils.datasets import photos

# What a person's shell has set for other work would change what is judged and what is said.
for name in (
    *("JAX_ENABLE_X64", "KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"),
    *("TPU_NAME", "TPU_WORKER_ID", "XLA_FLAGS", "LIBTPU_INIT_ARGS", "MPLBACKEND"),
    *("PYTHONWARNINGS", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "LAB_UTILS_SHARED_CACHE"),
):
    os.environ.pop(name, None)
if "TESTS_ON_JAX" in os.environ:  # a process of tests whose Keras is on JAX: it takes one backend
    os.environ["KERAS_BACKEND"] = "jax"
proxies.spare_local()

# As lab_utils.flowers.task has it, so that runs in this process equal those in one of their own.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# The checks of lab 11 look at eight devices of JAX, which it makes once in a process.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
with contextlib.suppress(ModuleNotFoundError):
    import jax

    jax.config.update("jax_num_cpu_devices", 8)

CLASSES = ("daisy", "roses", "tulips")
EACH = 9  # pictures of a class; one of them is a PNG


# TensorFlow reads them once for the whole process, some of them long after `import tensorflow`.
OF_THE_PROCESS = ("TF_USE_LEGACY_KERAS", "TF_CPP_MIN_LOG_LEVEL")


@pytest.fixture(autouse=True)
def environment_and_folder_are_put_back():
    """What a test or a learner's answer sets in the process must not reach the tests after it."""
    variables, folder = dict(os.environ), Path.cwd()
    yield
    variables |= {name: os.environ[name] for name in OF_THE_PROCESS if name in os.environ}
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)


@pytest.fixture(scope="session", autouse=True)
def temporary_files_go_with_the_tests(tmp_path_factory):
    """Those of labs, kernels, other children and frameworks; pytest's own stay where it keeps them."""
    tmp_path_factory.getbasetemp()
    with scratch.folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(scope="session", autouse=True)
def jupyter_needs_no_home(tmp_path_factory):
    """Tests that start a kernel pass for a user without a home, too, as containers with any user id have."""
    if os.path.expanduser("~") == "~":
        for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            os.environ.setdefault(name, str(tmp_path_factory.mktemp(name.lower())))


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """`once(name, fill)`: a folder that the first of the tests' processes fills; the others wait for it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def filled(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name} is filled"
        with files.locked(shared / f"{name}.lock", wait=900):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return filled


@pytest.fixture(scope="session")
def tiny_photos(once) -> Path:
    """A folder of 27 small pictures in class sub-folders, as somebody's own photographs would be."""

    def draw(folder: Path) -> None:
        for name in CLASSES:
            (folder / name).mkdir()
            pictures = sorted((datasets.bundled().folder / name).iterdir())[:EACH]
            for index, source in enumerate(pictures):
                with Image.open(source) as image:
                    image.thumbnail((48, 48))
                    image.save(folder / name / f"{name} {index}.{'jpg' if index else 'png'}")

    return once("tiny photos", draw)


@pytest.fixture(scope="session")
def tiny_csv(tiny_photos, once) -> datasets.Photos:
    """The split of `tiny_photos`: 15 pictures to train on, 12 to evaluate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(photos, "EVAL_SHARE", 0.4)
        folder = once("csv", lambda to: datasets.from_folder(tiny_photos, to))
    return datasets.Photos.at(tiny_photos, folder)


@pytest.fixture(scope="session")
def tiny_records(tiny_csv, once) -> Manifest:
    """`tiny_csv` as TFRecords, in three shards and two."""
    lists = tiny_csv.train_csv, tiny_csv.eval_csv, tiny_csv.labels_file
    shards = {"train_shards": 3, "eval_shards": 2}
    folder = once("records", lambda to: convert(*lists, to / "made", **shards))
    return read_manifest(str(folder / "made"))


@pytest.fixture(scope="session")
def run_flags(tiny_records) -> list[str]:
    """Flags of a training run of seconds, all but --output_dir."""
    flags = {
        "train_data_path": f"{tiny_records.folder}/train-*",
        "eval_data_path": f"{tiny_records.folder}/eval-*",
        "train_steps": 8,
        "train_batch_size": 4,
        "eval_batch_size": 5,
        "eval_steps_between": 4,
        "image_size": 32,
        "learning_rate": 0.002,  # so few steps leave the statistics of batch normalisation near their start
    }
    return [f"--{name}={value}" for name, value in flags.items()]


@pytest.fixture(scope="session")
def finished_run(run_flags, once) -> tuple[Path, dict]:
    """A run that reached its last step: its output_dir (copy it before changing it) and its result."""

    def train(folder: Path) -> None:
        from lab_utils.flowers import settings, task

        result = task.run(settings.parse([*run_flags, f"--output_dir={folder / 'run'}"]))
        (folder / "returned").write_text(json.dumps(result))

    folder = once("finished", train)
    return folder / "run", json.loads((folder / "returned").read_text())


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    """An empty cache for the dry runs of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


# The longest tests, which several processes begin with: none waits for one of them at the end.
LONGEST = (
    "test_a_solution_gives_the_outputs_that_it_shows[08",
    "test_a_solution_gives_the_outputs_that_it_shows[09",
    "test_a_solution_gives_the_outputs_that_it_shows[07",
    "test_photographs_become_a_page_and_a_second_run_goes_on",
    "test_places.py::test_the_first_cell_leaves_the_places_packages_as_they_are",
    "accepted_or_told_what_is_wrong_with_them[some-08",
    "test_a_solution_gives_the_outputs_that_it_shows",
)


def pytest_collection_modifyitems(config, items):
    """Takes those whose turn it is (lanes.py), long ones first; otherwise the order stays."""
    named = bool(config.option.keyword) or any("::" in each for each in config.args)
    items[:], left = lanes.choose(items, named)
    config.hook.pytest_deselected(items=left)
    last = len(LONGEST)
    items.sort(
        key=lambda item: next((n for n, part in enumerate(LONGEST) if part in item.nodeid), last)
    )


def pytest_report_header():
    """What repeats the choice of this run."""
    return f"ROTATION={lanes.rotation()} (tests/lanes.py)"


CORPUS = {
    "test_wrong_port_is_found_at_its_place[": "wrong ports found at their place",
    "test_the_fix_clears_the_finding[": "fixed ports without a finding",
    "test_wrong_port_when_compiled_run_or_fed[": "ports judged correctly when compiled, run or fed",
    "test_code_of_a_page[": "blocks of code of the rule pages judged correctly",
    "test_right_port_yields_nothing[": "right ports without a finding",
    "test_program_is_ready[": "whole programs without an error or a warning",
    "test_planted_fault_is_named_at_its_line[": "faults planted in whole programs named at their line",
}


def pytest_terminal_summary(terminalreporter):
    """Prints the score of the corpus and of the answers to the labs, whichever process ran them."""
    reports = [
        each
        for some in terminalreporter.stats.values()
        for each in some
        if isinstance(each, pytest.TestReport)
    ]
    if len(reports) > 100:
        terminalreporter.section("seconds by kind, as the processes counted them")
        path = Path(os.environ.get("DURATIONS", lanes.ROOT / ".pytest_cache" / "durations.json"))
        terminalreporter.write_line("\n".join(lanes.durations(reports, path)))
    if failed := terminalreporter.stats.get("failed"):
        again = f"ROTATION={lanes.rotation()}"
        terminalreporter.write_line(f"{len(failed)} failed; {again} chooses the same tests again")
    passed, failed = (terminalreporter.stats.get(status, []) for status in ("passed", "failed"))
    lines = []
    for test, what in CORPUS.items():
        right, wrong = (sum(test in each.nodeid for each in some) for some in (passed, failed))
        if right + wrong:
            lines.append(f"{what}: {right} of {right + wrong}")
    recorded = (pair for each in [*passed, *failed] for pair in each.user_properties)
    lines += sorted(value for name, value in recorded if name == "score")
    if lines:
        terminalreporter.section("scores")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture(autouse=True)
def search_path():
    """A test leaves sys.path as it was: processes that others start would find its modules there."""
    before = list(sys.path)
    yield
    sys.path[:] = before
