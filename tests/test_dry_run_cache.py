"""What a second dry run of an unchanged port need not do again, and what a change makes it do."""

import gzip
import importlib.util

import pytest
from dry_run_models import CLASSES, MODELS, ROWS, dense, make, reader
from rules.judging import jobs  # noqa: F401

from lab_utils.dry_run import cache, dry_run
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.private import process

pytestmark = pytest.mark.usefixtures("own_cache")


def lowered(model_fn=dense, data=(ROWS, CLASSES), **arguments):
    return lower_estimator(make(model_fn, **arguments), reader(data), cores=8)


@pytest.mark.parametrize("name", ["control_flow", "recurrent"])
def test_a_step_is_lowered_to_the_same_program_again(name):
    """Though its loops and branches are functions that TensorFlow counts: the cache knows it by its bytes."""
    model_fn, data = MODELS[name]
    assert lowered(model_fn, data).hlo == lowered(model_fn, data).hlo
    assert lowered(model_fn, data).hlo != lowered(model_fn, data, batch=128).hlo


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed here"
)
def test_a_second_dry_run_starts_no_process_and_says_what_it_took_over(jobs, monkeypatch):  # noqa: F811
    started, original = [], process.start_job

    def counted(job, *arguments, **options):
        started.append(job)
        return original(job, *arguments, **options)

    def judged(rows, cached=True):
        port, options = make(dense), {"stages": ["compile", "run"], "steps": 2, "progress": False}
        report = dry_run(port, reader((rows, CLASSES)), "v2:1x1", cache=cached, **options)
        jobs_of_this, started[:] = [*started], []
        return report, jobs_of_this, [stage.detail for stage in report.stages[2:4]]

    monkeypatch.setattr(process, "start_job", counted)
    first, jobs_of_first, details = judged(ROWS)
    assert jobs_of_first == ["compile", "run"] and "cache" not in str(details)
    again, jobs_of_again, (compiled, ran) = judged(ROWS)
    assert not jobs_of_again and again.findings == first.findings
    assert "from the cache" in compiled and "from the cache: the same program" in ran
    assert [f.value for f in again.stages[3].figures] == [f.value for f in first.stages[3].figures]
    _, jobs_of_other, (compiled, _) = judged(ROWS + 1)  # other data, the same program
    assert jobs_of_other == ["run"] and "from the cache" in compiled
    assert "compile" in judged(ROWS, cached=False)[1]
    for path in cache.folder().iterdir():  # {} has the keys of no result, and counts as none
        cache.write(path.name.removesuffix(".json.gz"), {})
    again, jobs_of_again, _ = judged(ROWS)
    assert jobs_of_again == ["compile", "run"] and again.findings == first.findings


def test_a_user_without_a_home_has_no_cache_and_no_error(monkeypatch):
    """As in a container that runs with any user id."""

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", nobody)
    cache.write("entry", {"a": 1})
    assert cache.read("entry") is None


def test_a_shared_folder_is_read_after_the_own_one_and_never_written(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "instructor"))
    cache.write("both", {"from": "instructor"})
    cache.write("one", {"from": "instructor"})
    monkeypatch.setenv(cache.SHARED, str(tmp_path / "instructor"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "learner"))
    cache.write("both", {"from": "learner"})
    assert cache.read("both") == {"from": "learner"} and cache.read("one") == {"from": "instructor"}
    (cache.folder() / "both.json.gz").write_bytes(b"damaged")
    assert cache.read("both") == {"from": "instructor"}
    cache.write("two", {})
    assert len(list((tmp_path / "instructor").rglob("*.gz"))) == 2
    monkeypatch.setenv(cache.SHARED, str(tmp_path / "missing"))
    assert cache.read("one") is None


def test_a_damaged_entry_counts_as_none_and_is_replaced(tmp_path, monkeypatch):
    """As disks damage files: an end that is missing, sectors of zeros, other files' content."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entry = {"numbers": [number / 7 for number in range(500)]}
    for damage in (
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2] + bytes(len(whole) // 2),
        lambda whole: b"<html>",
        lambda whole: gzip.compress(b"{}"),
        lambda whole: gzip.compress(b"[1, 2]"),
        lambda whole: gzip.compress(b'{"name": "another", "entry": {}}'),
        lambda whole: gzip.compress(b'{"name": "entry", "entry": 3}'),
        lambda whole: gzip.compress(b"[" * 100_000),
    ):
        cache.write("entry", entry)
        assert cache.read("entry") == entry
        file = cache.folder() / "entry.json.gz"
        file.write_bytes(damage(file.read_bytes()))
        assert cache.read("entry") is None
    cache.write("entry", entry)
    assert cache.read("entry", [{"hlo"}, {"numbers"}]) == entry
    assert cache.read("entry", [{"hlo"}, {"numbers", "cost"}]) is None, "another kind's"
