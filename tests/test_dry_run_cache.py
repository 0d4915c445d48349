"""What a second dry run of an unchanged port need not do again, and what a change makes it do."""

import importlib.util

import numpy as np
import pytest
from dry_run_models import CLASSES, MODELS, ROWS, dense, make, reader

from lab_utils.dry_run import cache, dry_run, fingerprint
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.lower import bridge as lower
from lab_utils.dry_run.private import process
from lab_utils.estimator import tf

pytestmark = pytest.mark.usefixtures("own_cache")


def lowered(model_fn=dense, data=(ROWS, CLASSES), **arguments):
    return lower_estimator(make(model_fn, **arguments), reader(data), cores=8)


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """How often the bridge was asked for a program, while nothing is in the cache at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    step, asked = lower._Lowering, []
    original = step._compiled
    monkeypatch.setattr(step, "_compiled", lambda *given: asked.append(1) or original(*given))
    return asked


@pytest.mark.parametrize("name", ["control_flow", "recurrent"])
def test_a_step_that_was_lowered_before_is_not_lowered_again(name, compilations):
    """Though their loops and branches are functions whose names count on."""
    model_fn, data = MODELS[name]
    first, again = lowered(model_fn, data), lowered(model_fn, data)
    assert len(compilations) == 1
    assert (first.hlo, first.inputs, first.outputs) == (again.hlo, again.inputs, again.outputs)
    assert first.origin.values.keys() == again.origin.values.keys()


def test_another_step_is_lowered_anew(compilations):
    lowered()
    lowered(params={"cross_shard": False})
    lowered(batch=128)
    lowered(data=(ROWS.astype("float64").astype("float32")[:, :5], CLASSES))
    assert len(compilations) == 4


def digest(make):
    with tf.Graph().as_default() as graph:
        make()
        return fingerprint.of_graph(graph.as_graph_def())


def mapped(scale):
    data = tf.data.Dataset.from_tensor_slices(np.arange(8)).map(lambda n: n * scale)
    return tf.compat.v1.data.make_one_shot_iterator(data.batch(2)).get_next()


def test_a_graph_is_known_again_though_functions_were_counted_meanwhile():
    first = digest(lambda: mapped(2))
    for _ in range(11):
        tf.function(lambda x: x + 1).get_concrete_function(tf.constant(1.0))
    assert digest(lambda: mapped(2)) == first
    assert digest(lambda: mapped(3)) != first


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed here"
)
def test_a_second_dry_run_starts_no_process_and_says_what_it_took_over(monkeypatch, compilations):
    port = make(dense), reader((ROWS, CLASSES))
    options = {"steps": 2, "feed_seconds": 0.1, "progress": False}
    first = dry_run(*port, **options)
    assert "cache" not in str([stage.detail for stage in first.stages])
    lowerings = len(compilations)
    with monkeypatch.context() as patch:
        patch.setattr(process, "started", None)
        again = dry_run(*port, **options)
    assert len(compilations) == lowerings
    _, _, compiled, ran, _ = (stage.detail for stage in again.stages)
    assert "from the cache" in compiled and "from the cache: the same program" in ran
    assert again.findings == first.findings
    assert [f.value for f in again.stages[3].figures] == [f.value for f in first.stages[3].figures]

    started = []
    original = process.started
    patched = lambda job, *given, **more: started.append(job) or original(job, *given, **more)  # noqa: E731
    monkeypatch.setattr(process, "started", patched)
    other = dry_run(port[0], reader((ROWS + 1, CLASSES)), **options)  # other data, the same program
    assert started == ["run"] and "from the cache" in other.stages[2].detail
    started.clear()
    dry_run(*port, cache=False, **options)
    assert started == ["compile", "compile", "run"] and len(compilations) > lowerings


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
    cache.write("entry", entry)
    file = cache.folder() / "entry.json.gz"
    whole = file.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:middle], whole[:middle] + bytes(middle), b"", b"<html>", whole[:-1]):
        file.write_bytes(damaged)
        assert cache.read("entry") is None
    cache.write("entry", entry)
    assert cache.read("entry") == entry
