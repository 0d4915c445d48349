"""Which slice and which batch: the table of several compilations, its hours and its money, and the search."""

import importlib.util
import json
import math

import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader
from rules.judging import jobs  # noqa: F401

from lab_utils.common.figures import Figure, Kind
from lab_utils.dry_run import __main__ as command
from lab_utils.dry_run import choose, compare_topologies, largest_batch
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.private import process
from lab_utils.dry_run.records import CompiledStep, Cost, Memory
from lab_utils.dry_run.report import words
from lab_utils.dry_run.report.comparison import Comparison, Trial
from lab_utils.runtime import chips

GIB = 2**30
needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed here"
)


def compiled(seconds, used=GIB, limit=8 * GIB):
    """A train step of so many seconds and bytes; without a time where it does not fit."""

    def size(value):
        return Figure("size", float(value), "bytes", Kind.COMPILER)

    step = CompiledStep("train step", memory=Memory(temporaries=size(used), available=size(limit)))
    if used > limit:
        step.memory.needed = size(used)
    else:
        step.cost = Cost(estimated_seconds=Figure("time", seconds, "s", Kind.ESTIMATED))
    return step


def trial(topology, seconds, batch=64, **others):
    return Trial(topology, batch, compiled(seconds), **others)


def table(trials, **others):
    return Comparison("a port", "slice", trials, **others)


def test_the_most_examples_a_second_are_named():
    shown = table([trial("v2:2x2", 0.1), trial("v6e:2x4", 0.01), trial("v6e:1x1", 0.01)])
    assert shown.best.topology == "v6e:2x4" and shown.exit_status == 0
    assert "v6e:2x4 has the most examples per second: 51,200" in shown.sentence


def test_hours_are_an_interval_and_only_where_a_training_was_published():
    low, high = words.times_of_estimates()
    assert trial("v2:2x2", 0.36).hours(1000) == pytest.approx((0.1 * low, 0.1 * high))
    assert trial("v5p:2x2x1", 0.36).hours(1000) is None
    shown = table([trial("v2:2x2", 0.36), trial("v5p:2x2x1", 0.36)], steps=1000)
    assert "hours for 1,000 steps" in shown.table()[0]
    assert "No hours for v5p: none of the published programs" in str(shown)


def test_a_terminal_s_columns_are_no_wider_than_they_must_be():
    row = trial("v2:2x2", 0.36, price=4.0)
    shown = table([row], steps=100_000, currency="USD")
    lines = str(shown).splitlines()
    (last,) = (number for number, line in enumerate(lines) if line.startswith("v2:2x2  "))
    assert max(map(len, lines[last - 2 : last + 1])) < 120  # of 146 in one line
    told = " ".join(lines[last - 2 : last]).split()
    assert sorted(told) == sorted(" ".join(shown.table()[0]).split())


def test_of_steps_shorter_than_the_hosts_work_there_are_no_hours():
    shown = table([trial("v2:2x2", 1e-5), trial("v6e:1x1", 2e-5)], steps=1000)
    assert shown.trials[0].hours(1000) is None
    assert "the smallest slice is as good as any" in shown.sentence
    assert "No training reaches such a rate" in str(shown)
    assert "No training reaches" not in str(table([trial("v2:2x2", 0.1)]))


def test_money_is_that_of_the_hours():
    rows = [trial("v2:2x2", 0.36, price=4.0), trial("v6e:1x1", 0.36, price=1.0)]
    shown = table(rows, steps=1000, currency="EUR")
    heading, first, _ = shown.table()
    low, high = words.times_of_estimates()
    assert heading[-2:] == ["EUR an hour", "EUR in all"]
    assert first[-2] == "4.00"
    assert [float(part) for part in first[-1].split(" to ")] == pytest.approx(
        [0.4 * low, 0.4 * high], rel=0.01
    )
    # Eight cores do eight times as much as one, for four times the money.
    assert "v2:2x2 costs least per example:" in shown.sentence


def test_why_there_is_no_time_stands_below_the_table():
    large = Trial("v2:2x2", 64, compiled(1, used=9 * GIB), "does not fit: it needs 9 GiB of 8 GiB")
    shown = table([large])
    assert shown.best is None and shown.exit_status == 2
    assert "v2:2x2: does not fit: it needs 9 GiB of 8 GiB." in str(shown)


def test_each_view_shows_every_row():
    shown = table([trial("v2:2x2", 0.1), Trial("v6e:1x1", why="a batch of 64 cannot be split")])
    fragment, content = shown._repr_html_(), json.loads(shown.to_json())
    for text in (str(shown), fragment, shown.page()):
        assert "v2:2x2" in text and "v6e:1x1: a batch of 64 cannot be split." in text
    assert [row["topology"] for row in content["trials"]] == ["v2:2x2", "v6e:1x1"]
    figure = shown.figure()
    assert "v2:2x2: 5,120" in figure.alt
    (axes,) = figure.axes
    assert axes.xaxis.get_major_formatter()(2_500_000, 0) == "2,500,000"


@pytest.mark.parametrize("prices", [{"v5e": "cheap"}, {"v5e": math.inf}, {"gpu": 1}, "a text", 7])
def test_a_price_list_that_is_none_is_refused(prices, tmp_path):
    if not isinstance(prices, dict):
        (tmp_path / "prices.yaml").write_text(str(prices))
        prices = tmp_path / "prices.yaml"
    with pytest.raises(ValueError, match="a price list has lines such as"):
        compare_topologies(None, None, ["v2:2x2"], prices=prices)


@pytest.mark.parametrize("content", [b"v5e: 1 # \xfc", b"[" * 5000])
def test_a_price_list_that_cannot_be_read_is_named(content, tmp_path):
    (tmp_path / "prices.yaml").write_bytes(content)
    with pytest.raises(ValueError, match="the price list .*prices.yaml cannot be read"):
        compare_topologies(None, None, ["v2:2x2"], prices=tmp_path / "prices.yaml")


def test_prices_are_of_a_chip():
    assert choose._price("v2:2x2", {"v2": 1.5}) == 6 and choose._price("v6e:2x4", {"v6e": 2}) == 16
    assert choose._price("v2:2x2", {"v6e": 2}) is None


def searched(own, memory_of, limit):
    """The trials of a search that begins at `own`, where a batch takes memory_of(batch) bytes."""
    trials, batch = {}, own
    while batch and len(trials) < choose.COMPILATIONS:
        assert batch not in trials
        trials[batch] = Trial("v2:2x2", batch, compiled(0.1, memory_of(batch), limit))
        batch = choose.next_batch(trials)
    return trials


@pytest.mark.parametrize("own", [1, 3, 8, 64, 128, 1000])
@pytest.mark.parametrize("largest", [1, 2, 5, 13, 100, 517, 3000])
def test_the_search_finds_the_largest_batch_that_fits(own, largest):
    if largest > 16 * own or own > 16 * largest:
        pytest.skip("further away than eight compilations reach")
    trials = searched(own, lambda batch: 100 + batch, 100 + largest)
    found = max(batch for batch, each in trials.items() if each.seconds is not None)
    assert 0.85 * largest <= found + 8 and found <= largest


def test_the_search_ends_where_memory_grows_in_jumps():
    trials = searched(64, lambda batch: 100 if batch <= 200 else 10_000, 500)
    found = max(batch for batch, each in trials.items() if each.seconds is not None)
    assert 128 <= found <= 200


def test_the_search_stays_below_a_batch_at_which_the_compiler_ended():
    trials = {64: Trial("v6e:1x1", 64, compiled(0.1, 100, 1000))}
    trials[128] = Trial("v6e:1x1", 128, why="not judged", is_judged=False)
    trials[1024] = Trial("v6e:1x1", 1024, compiled(0.1, 1600, 1000))
    batch = choose.next_batch(trials)  # memory points at about 600
    assert 64 < batch < 128
    trials[batch] = Trial("v6e:1x1", batch, compiled(0.1, 150, 1000))
    shown = Comparison("a port", "batch", [trials[batch] for batch in sorted(trials)])
    assert f"the largest one that fits is {batch:g} per core." in shown.sentence
    assert "Whether 128 per core fits is not known" in shown.sentence
    told = [row.get("judged", True) for row in json.loads(shown.to_json())["trials"]]
    assert told == [True, True, False, True]


@pytest.mark.parametrize(
    ("last", "limit", "why"),
    [
        (
            "import os; os.kill(os.getpid(), 11)",
            None,
            "not judged: the TPU compiler itself ended (the process that runs JAX was ended by signal 11)",
        ),
        (
            "raise MemoryError",
            None,
            "not judged: there is not enough room here (MemoryError): close other programs",
        ),
        ("import time; time.sleep(3600)", 0.1, "not judged: not compiled within 0.1 s."),
    ],
)
def test_a_compiler_without_an_answer_says_nothing_of_the_batch(
    last, limit, why, own_cache, monkeypatch, tmp_path
):
    (tmp_path / "dying.py").write_text(last)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(process, "CHILD", "dying")
    monkeypatch.setattr(choose, "COMPILATIONS", 2)
    port, data = make(dense, batch=64), reader((ROWS, CLASSES))
    shown = largest_batch(port, data, limit=limit, progress=False)
    assert [(each.batch, each.is_judged) for each in shown.trials] == [(4, False), (8, False)]
    assert shown.best is None and why in str(shown) and "does not fit" not in str(shown)
    (slice_,) = compare_topologies(port, data, ["v2:2x2"], limit=limit, progress=False).trials
    assert not slice_.is_judged and slice_.why.startswith(why.rstrip("."))


def test_a_step_that_fits_with_no_batch_has_no_best():
    trials = searched(4, lambda batch: 1000, 500)
    shown = Comparison("a port", "batch", list(trials.values()))
    assert min(trials) == 1 and shown.best is None and "no estimated time" in shown.sentence


@needs_libtpu
def test_the_same_training_on_several_slices(jobs):  # noqa: F811
    shown = compare_topologies(
        make(dense, batch=64),
        reader((ROWS, CLASSES)),
        ["v2:2x2", "v6e:1x1", "v5e:8x16"],
        progress=False,
        prices={"v6e": 2.0, "currency": "EUR", "source": "made up"},
    )
    first, chip, too_many = shown.trials
    assert (first.batch, chip.batch) == (8, 64) and first.seconds and chip.seconds
    assert "cannot be split over 128 cores" in too_many.why
    assert (first.price, chip.price) == (None, 2.0)
    assert "TPUEstimator is known to run on v2 and v3" in str(shown) and "made up" in str(shown)


@needs_libtpu
def test_what_a_jax_step_s_arguments_are_can_be_said(jobs):  # noqa: F811
    """Of four rows and 64 examples, the shapes do not tell which is the batch."""
    jax = pytest.importorskip("jax")

    @jax.jit
    def step(weights, table, examples):
        def loss(weights):
            return ((examples @ weights) ** 2).mean() + table.sum()

        return weights - 0.1 * jax.grad(loss)(weights)

    shapes = (8, 8), (4, 8), (64, 8)
    arguments = tuple(jax.ShapeDtypeStruct(sizes, "float32") for sizes in shapes)
    (unknown,) = compare_topologies(step, arguments, ["v5e:1x1"], progress=False).trials
    assert "batch_argnums=1" in unknown.why
    (told,) = compare_topologies(
        step, arguments, ["v5e:1x1"], batch_argnums=2, state_argnums=0, progress=False
    ).trials
    assert told.batch == 64 and told.seconds


@needs_libtpu
def test_the_largest_batch_of_a_port(jobs, monkeypatch):  # noqa: F811
    monkeypatch.setattr(choose, "COMPILATIONS", 3)
    shown = largest_batch(make(dense, batch=64), reader((ROWS, CLASSES)), progress=False)
    assert [each.batch for each in shown.trials] == [8, 16, 64]
    assert "The largest batch that was compiled, 64 per core, fits too." in str(shown)


def test_the_best_batch_need_not_be_the_largest():
    rows = [trial("v2:2x2", 0.1, batch=64), trial("v2:2x2", 0.3, batch=128)]
    rows.append(Trial("v2:2x2", 256, compiled(1, used=9 * GIB), "does not fit"))
    sentence = Comparison("a port", "batch", rows).sentence
    assert sentence.startswith(
        "A batch of 64 per core gives the most examples per second on v2:2x2"
    )
    assert sentence.endswith(
        "Of the batches that were compiled, the largest one that fits is 128 per core."
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--topology", "v2:2x2", "--topology", "v9:2x2"], "not a TPU topology"),
        (["--topology", "all", "--largest_batch"], "on one topology"),
        (["--prices", "prices.yaml"], "several topologies"),
        (["--topology", "all", "--train_steps", "-5"], "1 or more, not -5"),
    ],
)
def test_flags_that_make_no_sense_together_are_refused(words, told, capsys):
    with pytest.raises(SystemExit):
        command.parsed(["a:b", *words])
    assert told in capsys.readouterr().err


def test_all_are_what_people_can_get():
    flags = command.parsed(["a:b", "--topology", "all", "--limit", "9"])
    assert flags.compares and flags.topologies == list(chips.POPULAR)
    assert not command.parsed(["a:b"]).compares


def test_a_program_is_run_with_the_devices_of_the_largest_slice(monkeypatch):
    """jax.pmap keeps to the devices that the program had: with one, no slice of eight was judged."""
    asked = []

    def load_main(name, arguments, cores, step):
        asked.append(cores)
        raise CannotJudge("that was all")

    monkeypatch.setattr(command, "load_main", load_main)
    for topologies in (["v5e:1x1", "v6e:2x4", "v5p:2x2x1"], ["v5p:2x2x1"], []):
        words = [word for topology in topologies for word in ("--topology", topology)]
        assert command.main(["--main", "train.py", *words]) == 2
    assert asked == [8, 4, chips.DEFAULT_CORES]
