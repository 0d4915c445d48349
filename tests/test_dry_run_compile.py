"""Compiling for a TPU that is not here: figures, findings, the cache, and the child process."""

import contextlib
import importlib.util
import math
import os
import subprocess
import sys

import numpy as np
import psutil
import pytest
from dry_run_models import CLASSES, MODELS, ROWS, dense, make, reader
from rules.judging import jobs  # noqa: F401
from test_dry_run_lines import HLO

from lab_utils.common.figures import Kind
from lab_utils.dry_run import cache
from lab_utils.dry_run.compile import stage as compile
from lab_utils.dry_run.compile.hlo import parse
from lab_utils.dry_run.compile.hlo import summary as hlo
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.private import process
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.estimator import tf
from lab_utils.runtime import chips, install

RUNNING = process.Running  # which the fixture `jobs` replaces
needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed here"
)


def answering(answers, asked=None):
    """A compiler with an answer for each topology; those that it is asked for go into `asked`."""

    def ask(program, topology):
        (asked if asked is not None else []).append(topology)
        return contextlib.nullcontext(lambda progress: (answers[topology], False))

    return ask


@pytest.fixture(scope="module")
def program():
    return lower_estimator(make(dense), reader((ROWS, CLASSES)), cores=8)


@pytest.fixture(scope="module")
def compiled(program, jobs):  # noqa: F811
    return compile.compile_program(program, "v2:2x2")


@needs_libtpu
def test_memory_and_cost_of_a_step(compiled, program):
    assert compiled.step.fits and not compiled.cached
    memory, cost = compiled.step.memory, compiled.step.cost
    data = sum(each.bytes for each in program.inputs)
    assert memory["arguments"].value > data  # padded to tiles
    # New variables take the old ones' place.
    assert memory["outputs"].value < memory["arguments"].value
    products = 2 * 8 * (6 * 16 + 16 * 3) + 2 * 8 * (6 * 16) + 2 * 2 * 8 * 16 * 3
    assert sum(each.flops for each in compiled.summary.products) == products
    assert cost["flops"].value > products
    assert cost["all_reduce_bytes"].value == 4 * (6 * 16 + 16 + 16 * 3 + 3)
    assert memory["temporaries"].kind == cost["flops"].kind == Kind.COMPILER
    assert cost["peak_flops"].kind == Kind.QUOTED and cost["peak_flops"].source
    assert {each.severity.value for each in compiled.findings} <= {"note"}


@needs_libtpu
def test_loops_count_all_their_rounds(jobs):  # noqa: F811
    model_fn, data = MODELS["recurrent"]
    lowered = lower_estimator(make(model_fn), reader(data), cores=8)
    found = compile.compile_program(lowered, "v2:2x2")
    flops = {each.flops for each in found.summary.products if "lstm_cell" in each.name}
    assert flops == {2.0 * 7 * 8 * 16 * 32}  # 7 words, batch 8, 8 + 8 inputs, 4 gates of 8
    assert found.step.cost["flops"].kind == Kind.DERIVED


@needs_libtpu
def test_out_of_memory(jobs):  # noqa: F811
    batch = np.zeros([8, 2**29], "float32")  # 16 GiB, of which no page is touched
    lowered = FunctionWorkload(lambda x: tf.reduce_sum(tf.sort(x)[:, 5]), batch).lower(1)
    found = compile.compile_program(lowered, "v5e:1x1")
    memory = found.step.memory
    assert not found.step.fits and memory["needed"].value > memory["available"].value
    [finding] = found.findings
    assert finding.rule == "TPU303" and "RESOURCE_EXHAUSTED" in finding.message
    assert "feature [8, 536870912] (16.0 GiB)" in finding.why


def test_out_of_memory_names_the_largest_tensors_as_a_larger_chip_stores_them(program, monkeypatch):
    sizes = "memory required for HLO temporaries (19.26G) exceeds available HBM (7.48G)."
    refusal = {"refused": "program", "message": f"RESOURCE_EXHAUSTED: the total {sizes}"}
    answers, asked = {"v2:2x2": refusal, "v5p:2x2x2": {"hlo": HLO}}, []
    monkeypatch.setattr(compile, "compiler_answer", answering(answers, asked))
    found = compile.compile_program(program, "v2:2x2")
    assert asked == [*answers]
    assert found.step.memory["needed"].value == 19.26 * 2**30
    assert "jit(step)/dot f32[128,512] (256 KiB)" in found.findings[0].why


def test_what_the_compiler_refuses_is_a_finding_in_its_own_words(program, monkeypatch):
    answer = {"refused": "program", "message": "UNIMPLEMENTED: no such custom call"}
    monkeypatch.setattr(compile, "compiler_answer", answering({"v2:2x2": answer}))
    [found] = compile.compile_program(program, "v2:2x2").findings
    assert found.rule == "TPU309" and found.message == answer["message"]
    assert "rejected the train step" in found.why


def test_topologies_that_libtpu_does_not_have(program, monkeypatch):
    with pytest.raises(compile.BadTopology, match="16 cores, but the program was lowered for 8"):
        compile.compile_program(program, "v2:2x4")
    answer = {"refused": "topology", "message": "INVALID_ARGUMENT: not divisible"}
    monkeypatch.setattr(compile, "compiler_answer", answering({"v2:2x2": answer}))
    with pytest.raises(compile.BadTopology, match="not divisible. Accepted: v2:2x2"):
        compile.compile_program(program, "v2:2x2")


def test_without_libtpu_it_says_how_to_get_it(monkeypatch, program):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cache, "read", lambda *_: None)
    with pytest.raises(Unavailable, match="pip install jax==0.10.2 libtpu"):
        compile.compile_program(program, "v2:2x2")
    monkeypatch.setattr(install.platform, "machine", lambda: "arm64")
    with pytest.raises(Unavailable, match="only for Linux on x86_64"):
        compile.compile_program(program, "v2:2x2")


@needs_libtpu
def test_a_killed_parent_leaves_no_child_and_no_folder(program, tmp_path):
    (tmp_path / "program").write_bytes(program.hlo)
    code = f"""
from pathlib import Path
from lab_utils.dry_run.private.process import start_job
hlo = Path({str(tmp_path / "program")!r}).read_bytes()
request = {{"topology": "v2:2x2"}}
with start_job("compile", request, {{"program.hlo": hlo}}) as running:
    running.result(lambda line: print(line, flush=True))
"""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", code]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert "compiling" in parent.stdout.readline()
    children = psutil.Process(parent.pid).children()
    parent.kill()
    parent.wait()
    psutil.wait_procs(children)
    assert len(children) == 1
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("last", "error", "message"),
    [
        ("{}['nonsense']", process.ChildFailed, "KeyError: 'nonsense'"),
        ("import os; os.kill(os.getpid(), 9)", process.NoRoom, r"killed \(signal 9\), most likely"),
        ("raise MemoryError", process.NoRoom, r"not enough room here \(MemoryError\): close other"),
        ("raise OSError(28, 'No space left on device')", process.NoRoom, "not enough room here"),
    ],
)
def test_a_child_that_dies_is_an_error_and_one_without_room_says_nothing_about_the_program(
    last, error, message, monkeypatch, tmp_path
):
    (tmp_path / "starved.py").write_text(last)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(process, "CHILD", "starved")
    monkeypatch.setattr(process, "Running", RUNNING)
    with pytest.raises(error, match=message), process.start_job("compile", {}, {}) as running:
        running.result()


def test_shapes_layouts_and_padding():
    [shape] = parse.shapes("f32[128,74,74,20]{0,3,2,1:T(8,128)}")
    assert shape.padded_dims == (128, 74, 74, 24) and shape.worst_axis == 3
    assert shape.padded_bytes == 128 * 74 * 74 * 24 * 4 and shape.bytes == 128 * 74 * 74 * 20 * 4
    [small] = parse.shapes("bf16[8,3]{1,0:T(8,128)(2,1)}")
    assert small.padded_bytes == 8 * 128 * 2 and small.worst_axis == 1
    [vector] = parse.shapes("f32[100,1024]{1,0:T(8,128)S(1)}")
    assert vector.padded_dims == (104, 1024) and vector.memory_space == 1
    [scalar] = parse.shapes("f32[]{:T(256)}")
    assert scalar.padded_bytes == 1024 and scalar.worst_axis is None
    assert [str(each) for each in parse.shapes("(s32[7]{0}, pred[2,2]{1,0})")] == [
        "s32[7]",
        "pred[2,2]",
    ]


@pytest.mark.parametrize(
    ("size", "out", "window", "pairs"),
    [
        (9, 7, "size=3", 7 * 3),
        (9, 9, "size=3 pad=1_1", 9 * 3 - 2),
        (9, 5, "size=5 pad=2_2 stride=2", 5 * 5 - 2 * 2),
        (5, 11, "size=3 pad=2_2 lhs_dilate=2", 5 * 3),  # the gradient of a stride of 2
        (5, 7, "size=4 pad=4_4 stride=2 lhs_dilate=4 rhs_dilate=6", 10),
        (2048, 2048, "size=2048 stride=2047 lhs_dilate=2048", 2048),  # a product of 2,048 matrices
    ],
)
def test_convolution_flops_leave_out_padding_and_holes(size, out, window, pairs):
    text = f"""
ENTRY %main (x: f32[2,{size},4], k: f32[KERNEL,4,8]) -> f32[2,{out},8] {{
  %x = f32[2,{size},4]{{2,1,0}} parameter(0)
  %k = f32[KERNEL,4,8]{{2,1,0}} parameter(1)
  ROOT %y = f32[2,{out},8]{{2,1,0}} convolution(%x, %k), window={{{window}}}, dim_labels=b0f_0io->b0f
}}
""".replace("KERNEL", window.split()[0].removeprefix("size="))
    [product] = hlo.summarise(text).products
    assert product.flops == 2 * pairs * 2 * 4 * 8


SLICES = """HloModule slices

%writes (p0: f32[64,8,128], p1: s32[], p2: f32[1,8,128]) -> f32[64,8,128] {
  %p0 = f32[64,8,128]{2,1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %p2 = f32[1,8,128]{2,1,0} parameter(2)
  ROOT %put = f32[64,8,128]{2,1,0} dynamic-update-slice(%p0, %p2, %p1, %p1, %p1)
}

%reads (p0.1: f32[64,8,128], p1.1: s32[]) -> f32[1,8,128] {
  %p0.1 = f32[64,8,128]{2,1,0} parameter(0)
  %p1.1 = s32[] parameter(1)
  ROOT %row = f32[1,8,128]{2,1,0} dynamic-slice(%p0.1, %p1.1, %p1.1, %p1.1), dynamic_slice_sizes={1,8,128}
}

ENTRY %main (source: f32[64,8,128], target: f32[64,8,128], i: s32[]) -> f32[64,8,128] {
  %source = f32[64,8,128]{2,1,0} parameter(0)
  %target = f32[64,8,128]{2,1,0} parameter(1)
  %i = s32[]{:S(6)} parameter(2)
  %slice = f32[1,8,128]{2,1,0:T(8,128)PLACE} fusion(%source, %i), kind=kLoop, calls=%reads
  ROOT %done = f32[64,8,128]{2,1,0:T(8,128)PLACE} fusion(%target, %i, %slice), kind=kLoop, calls=%writes
}
"""


# Two reads and two writes of a row, or the source is in HBM only.
@pytest.mark.parametrize(("place", "rows"), [("", 4), ("S(1)", 1)], ids=["HBM", "on the chip"])
def test_slices_move_their_own_size_and_what_stays_on_the_chip_moves_nothing(place, rows):
    summary = hlo.summarise(SLICES.replace("PLACE", place))
    assert summary.bytes == rows * 8 * 128 * 4
    # The compiler counts what is on the chip, too.
    assert summary.cost({"flops": 10.0, "bytes": 1e9})["bytes"] == (summary.bytes if place else 1e9)


def test_chips_and_the_roofline():
    assert chips.cores("v2:16x16") == 512 and chips.cores("v5e:2x4") == 8
    assert chips.cores("v5:2x2x1") == 4 and chips.cores("TPU7x:2x2x1") == 8
    hosts = {
        **{"v2:2x2": 8, "v2:16x16": 8, "v5e:1x1": 1, "v5e:2x2": 4, "v6e:2x2": 4, "v5p:2x2x2": 4},
        **{"v5e:2x4": 8, "v6e:2x4": 8, "v5e:4x4": 4, "v6e:16x16": 4},  # eight chips are one host's
    }
    assert hosts == {topology: chips.cores_per_host(topology) for topology in hosts}
    for refused, says in (
        ("v3-32", "type of slice it is v3:4x4"),
        ("v2", "Accepted: v2:2x2"),
        ("v2:2x2x2", "does not exist: the chips of a v2 form AxB"),
        ("v2:32x32", "does not exist: the largest slice of v2 has 256 chips"),
        ("v4:2x2", "does not exist: the chips of a v4 form AxBxC"),
        ("v5e:3x5x1", "does not exist: the chips of a v5e form AxB"),
        ("v2:3x3", "does not exist: .* are 1 or even"),
    ):
        with pytest.raises(chips.BadTopology, match=says):
            chips.cores(refused)
    chip, _ = chips.parse("v2:2x2")
    bound = chip.roofline(145.5e9, 12.51e9)
    assert bound.bound_by == "HBM traffic"
    assert round(bound.memory_seconds * 1e3) == 35 and round(bound.compute_seconds * 1e3, 1) == 6.3
    assert math.isclose(bound.examples_per_second(8 * 128), 8 * 128 / bound.seconds)
