"""The estimated time of a step, and how long exchanges take on the links."""

from types import SimpleNamespace

import dry_run_reports as made
import pytest

from lab_utils.common.figures import Figure, Kind
from lab_utils.common.source import Place
from lab_utils.dry_run.compile.forecast import axes_of, forecast, seconds_of
from lab_utils.dry_run.compile.hlo.parse import members
from lab_utils.dry_run.compile.hlo.summary import Exchange, Summary, summarise
from lab_utils.dry_run.records import AxisExchanges, LineCost
from lab_utils.dry_run.report import words
from lab_utils.runtime import chips
from lab_utils.runtime.links import exchange_seconds

GB = 10**9


@pytest.mark.parametrize(
    ("name", "published"), [("v2", 0.70), ("v3", 0.94), ("v4", 1.05), ("v5e", 1.5)]
)
def test_the_clock_that_follows_from_the_peak_is_the_published_one(name, published):
    assert chips.CHIPS[name].clock / 1e9 == pytest.approx(published, rel=0.01)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    parts = ("reduce-scatter", "all-gather")
    both = sum(exchange_seconds(kind, GB, 8, "v5e:4x2") for kind in parts)
    assert exchange_seconds("all-reduce", GB, 8, "v5e:4x2") == pytest.approx(both)


def test_the_ends_of_a_whole_axis_are_joined_which_halves_the_time():
    whole, half = chips.CHIPS["v5e"].link * 2 * 2, chips.CHIPS["v5e"].link * 2
    seconds = exchange_seconds("all-gather", GB, 256, "v5e:16x16")
    assert seconds == pytest.approx(GB * 255 / 256 / whole)
    assert exchange_seconds("all-gather", GB, 64, "v5e:8x8") == pytest.approx(GB * 63 / 64 / half)


def test_a_group_of_some_cores_lies_along_one_axis():
    along = exchange_seconds("all-gather", GB, 4, "v5e:4x4")
    assert along == pytest.approx(GB * 3 / 4 / chips.CHIPS["v5e"].link)


def test_cores_of_one_chip_need_no_link():
    assert exchange_seconds("all-reduce", GB, 2, "v2:2x2") == 0
    assert exchange_seconds("all-reduce", GB, 1, "v5e:1x1") == 0
    assert exchange_seconds("all-reduce", GB, 8, "v2:2x2") > 0


@pytest.mark.parametrize(
    ("kind", "group", "topology", "hops"),
    [
        ("all-gather", 4, "v5e:4x4", 3),  # from one end of a row to the other
        ("all-reduce", 8, "v5e:2x4", 2 * (1 + 3)),  # a scatter and a gather, over both axes
        ("all-gather", 256, "v5e:16x16", 8 + 8),  # half of each ring
        ("all-to-all", 4, "v6e:2x2", 1 + 1),
        ("collective-permute", 8, "v5e:2x4", 1),
    ],
)
def test_the_smallest_array_takes_a_microsecond_for_each_hop(kind, group, topology, hops):
    assert exchange_seconds(kind, 4, group, topology) == pytest.approx(hops * 1e-6)
    assert exchange_seconds(kind, GB, group, topology) > 1e-3


def test_each_round_of_a_loop_takes_its_hops():
    looped = Exchange("all-gather", 100 * 4096, (), False, rounds=100)
    assert seconds_of(looped, "v5e:2x2") == pytest.approx(100 * 2e-6)


@pytest.mark.parametrize(
    ("groups", "first"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", (0, 1, 2, 3)),
        ("[2,4]<=[8]", (0, 1, 2, 3)),
        ("[4,2]<=[2,4]T(1,0)", (0, 4)),
        ("mesh['data'=4,'model'=2] {'model'}", (0, 1)),
        ("mesh['data'=4,'model'=2] {'data'}", (0, 2, 4, 6)),
        ("mesh['a'=2,'b'=1,'c'=4], device_ids=([4,2]T(1,0)) {'c'}", (0, 2, 4, 6)),
        ("mesh['a'=2,'b'=1,'c'=4], device_ids=([4,2]T(1,0)) {'a'}", (0, 1)),
        ("{}", ()),
    ],
)
def test_the_cores_of_a_group_are_read_in_each_form(groups, first):
    assert members(f"all-gather(%x), channel_id=1, replica_groups={groups}, dims={{0}}") == first


def test_the_cores_of_a_permutation_are_those_that_pass_an_array_on():
    pairs = "{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}"
    assert members(f"collective-permute(%x), source_target_pairs={pairs}") == (0, 2, 4, 6)


@pytest.mark.parametrize(
    ("cores", "axes"),
    [((0, 1), "model"), ((0, 2, 4, 6), "data"), ((0, 3), "data and model"), ((), "data and model")],
)
def test_a_group_of_cores_lies_over_axes_of_the_mesh(cores, axes):
    assert axes_of(cores, {"data": 4, "one": 1, "model": 2}) == axes


def test_without_a_mesh_there_are_only_groups_of_cores():
    assert axes_of((), {}) == "all cores" and axes_of((0, 1, 2, 3), {}) == "groups of 4 cores"


MODULE = """HloModule m, is_scheduled=true

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %main (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  %s = f32[1024]{0} all-reduce-start(%p), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%sum
  %n = f32[1024]{0} negate(%p), backend_config={"estimated_cycles":"3000"}
  %d = f32[1024]{0} all-reduce-done(%s)
  %w = f32[1024]{0} all-reduce(%d), channel_id=2, replica_groups={}, to_apply=%sum
  ROOT %r = f32[1024]{0} add(%w, %n), backend_config={"estimated_cycles":"1000"}
}
"""


def test_what_is_started_before_goes_on_beside_and_the_rest_is_waited_for():
    summary = summarise(MODULE)
    assert summary.cycles == 4000 and summary.collectives == {"all-reduce": 2 * 4096}
    assert summary.exchanges == [
        Exchange("all-reduce", 4096, tuple(range(8)), True),
        Exchange("all-reduce", 4096, (), False),
    ]
    time = forecast(summary, "v5e:4x2")
    assert time.computing == pytest.approx(4000 / chips.CHIPS["v5e"].clock)
    assert time.waiting == time.beside == exchange_seconds("all-reduce", 4096, 8, "v5e:4x2")
    assert time.seconds == pytest.approx(max(time.computing, time.beside) + time.waiting)


def test_what_another_unit_of_the_chip_exchanges_goes_on_beside():
    """As libtpu has it for tpu7x: a SparseCore is called, and waited for later."""
    called = """%called (q: f32[1024]) -> f32[128] {
  %q = f32[1024]{0} parameter(0)
  ROOT %c = f32[128]{0} reduce-scatter(%q), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%sum
}

ENTRY"""
    start = (
        "%s = ((f32[1024]{0}), f32[128]{0}) call-start(%p), "
        'async_execution_thread="sparsecore", to_apply=%called'
    )
    module = MODULE.replace("ENTRY", called, 1).replace(
        "%s = f32[1024]{0} all-reduce-start(%p)", start
    )
    module = module.replace(
        "%d = f32[1024]{0} all-reduce-done(%s)", "%d = f32[128]{0} call-done(%s)"
    )
    exchanges = summarise(module).exchanges
    assert exchanges[0] == Exchange("reduce-scatter", 4096, tuple(range(8)), True)


FSDP = """HloModule fsdp, is_scheduled=true

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %main (w: f32[1024,8192], x: f32[8,8192]) -> f32[1024,8192] {
  %w = f32[1024,8192]{1,0} parameter(0)
  %x = f32[8,8192]{1,0} parameter(1)
  %g = f32[8192,8192]{1,0} all-gather(%w), replica_groups=[2,4]<=[8], dimensions={0}
  %m = f32[8192,8192]{1,0} negate(%g), backend_config={"estimated_cycles":"1500000"}
  ROOT %r = f32[1024,8192]{1,0} reduce-scatter(%m), replica_groups=[1,8]<=[8], dimensions={0}, to_apply=%sum
}
"""


def test_a_step_with_split_state_takes_what_is_computed_by_hand():
    """8192 times 8192 float32 are 268 MB: gathered over 4 chips in a row, and reduced over 2 by 4 chips.

    A v5e's link carries 50 GB/s, and no axis of 2 or 4 chips is a ring: 3/4 of the bytes go over one link,
    and 7/8 of them over two axes.
    """
    size, link = 8192 * 8192 * 4, 50e9
    time = forecast(summarise(FSDP), "v5e:2x4", {"data": 2, "fsdp": 4})
    gathers, reduces = size * 3 / 4 / link, size * 7 / 8 / (2 * link)
    assert time.computing == pytest.approx(1e-3, rel=0.01)  # 1,500,000 cycles at 1.5 GHz
    assert time.waiting == pytest.approx(gathers + reduces) and time.beside == 0
    first, second = time.by_axis
    assert (first.over, first.bytes) == ("fsdp", {"all-gather": size})
    assert first.seconds == pytest.approx(gathers)
    assert (second.over, second.bytes) == ("data and fsdp", {"reduce-scatter": size})
    assert second.seconds == pytest.approx(reduces)
    assert str(first) == "4.03 ms over fsdp (all-gather of 268 MB)"


SLICED = """HloModule sliced, is_scheduled=true

%take (whole: f32[512,64], at: s32[]) -> f32[64,64] {
  %whole = f32[512,64]{1,0} parameter(0)
  %at = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %slice = f32[64,64]{1,0} dynamic-slice(%whole, %at, %zero), dynamic_slice_sizes={64,64}
}

ENTRY %main (p: f32[64,64], n: s32[]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  %n = s32[] parameter(1)
  %g = f32[512,64]{1,0} all-gather(%p), replica_groups=[1,8]<=[8], dimensions={0}
  %same = f32[512,64]{1,0} copy(%g)
  %core = u32[] partition-id()
  %id = s32[] convert(%core)
  ROOT %f = f32[64,64]{1,0} fusion(%same, %id), kind=kLoop, calls=%take
}
"""


@pytest.mark.parametrize(
    ("old", "new", "in_part"),
    [
        ("", "", True),
        ("fusion(%same, %id)", "fusion(%same, %n)", False),  # a step's number, not the core's
        ("dynamic-slice(%whole", "negate(%whole", False),
    ],
)
def test_an_array_of_which_a_core_keeps_its_own_part_is_marked(old, new, in_part):
    (exchange,) = summarise(SLICED.replace(old, new)).exchanges
    assert exchange.kept_in_part is in_part


def test_without_cycles_there_is_no_forecast():
    assert forecast(Summary(), "v2:2x2") is None


def speed_of(step, report):
    return " ".join(words.speed_sentences(step, report))


def estimated_step(seconds, on_chip=False):
    """The train step of the made reports, whose bound is 34.9 ms, with an estimated time."""
    step = made.train_step()
    step.cost.cycles = Figure("cycles", 700e6 * seconds, "cycles", Kind.ESTIMATED)
    step.cost.estimated_seconds = Figure("estimated", seconds, "s", Kind.ESTIMATED)
    step.cost.estimated_rate = Figure("examples", 128 / seconds, "examples/s", Kind.ESTIMATED)
    step.on_chip = on_chip
    return step


def test_the_estimate_heads_the_sentence_and_the_bound_stands_below():
    report = SimpleNamespace(cores=8, topology="v2:2x2")
    sentence = speed_of(estimated_step(0.08), report)
    assert sentence.startswith(
        "The train step takes about 80.0 ms, as the TPU compiler estimates it"
    )
    assert sentence.index("1,600 examples/s a core, 12,800") < sentence.index("less than 34.9 ms")
    low, high = words.times_of_estimates()
    assert f"{80 * low:.1f} ms to {80 * high:.0f} ms" in sentence and "none of them" not in sentence


def test_a_step_shorter_than_the_hosts_work_has_no_rate():
    sentence = speed_of(estimated_step(2e-5), SimpleNamespace(cores=8, topology="v2:2x2"))
    assert "examples/s" not in sentence and "The work of the host for a step" in sentence


def test_a_chip_without_a_published_training_is_named():
    report = SimpleNamespace(cores=4, topology="v5p:2x2x1")
    assert "none of them a training on v5p" in speed_of(estimated_step(0.08), report)


@pytest.mark.parametrize(("on_chip", "why"), [(True, "the chip's own memory"), (False, "neither")])
def test_no_bound_far_below_the_estimate_is_shown_as_a_speed(on_chip, why):
    report = SimpleNamespace(cores=8, topology="v2:2x2")
    sentence = speed_of(estimated_step(0.2, on_chip), report)
    assert "34.9 ms" not in sentence and "says little" in sentence and why in sentence


def test_the_interval_is_that_of_the_published_programs():
    low, high = words.times_of_estimates()
    rows = [row for row in words.published() if row.bound == "compiled"]
    assert all(hasattr(row, "of_estimate") for row in rows)
    assert min(1 / row.of_estimate for row in rows) == low <= 1 < high < 2 * low


def test_the_sentence_says_what_exchanges_take_and_what_the_core_waits_for():
    report, step = SimpleNamespace(cores=8, topology="v5e:2x4"), estimated_step(0.08)
    assert "exchanges" not in speed_of(step, report)
    step.exchanges = [AxisExchanges("data", 0.03, {"all-gather": 3 * GB})]
    step.cost.link_seconds = Figure("links", 0.03, "s", Kind.DERIVED)
    step.cost.exchange_seconds = Figure("waiting", 0.02, "s", Kind.DERIVED)
    sentence = speed_of(step, report)
    assert "take 30.0 ms on the links: 30.0 ms over data (all-gather of 3.00 GB)" in sentence
    assert "waits for 20.0 ms of it" in sentence
    step.cost.exchange_seconds = None
    assert "The core waits for none" in speed_of(step, report)


def test_a_line_has_its_share_of_the_time_in_which_a_core_computes():
    step = estimated_step(0.08)
    step.cost.exchange_seconds = Figure("exchanges", 0.02, "s", Kind.DERIVED)
    cycles = step.cost.cycles.value
    costs = ((0.75 * cycles, 3e9, 5e9), (0.002 * cycles, 0.0, 0.0))
    step.lines = [LineCost(Place("model.py", n), *cost) for n, cost in enumerate(costs, 1)]
    first, last = words.line_shares(step)
    assert (first.percent, last.percent) == ("75%", "<1%")
    assert first.costs == "45.0 ms, 3.00 GB, 5.00 GFLOP"
    step.cost.cycles = step.cost.estimated_seconds = None
    assert words.line_shares(step)[0].share == 0


def test_every_view_shows_the_lines_as_bars():
    report = made.ready()
    step = report.compiled[0] = estimated_step(0.08)
    step.lines = [LineCost(Place("model.py", 7), 0.5 * step.cost.cycles.value, 0.0, 0.0)]
    assert " 50% ██████ " in str(report) and "width:50.0%" in report._repr_html_()
    assert "model.py:7" in str(report) and "model.py:7" in report._repr_html_()
    assert dict(words.bases(report)).keys() >= {"estimated times", "bounds", "lines"}
