"""The cost of a compiled step by the learner's lines, and the step as a trace."""

import json
import math
import random

import pytest

from lab_utils.common.source import Place
from lab_utils.dry_run.compile.hlo import frames
from lab_utils.dry_run.compile.hlo.summary import summarise
from lab_utils.dry_run.compile.lines import by_line, spans
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import CompiledStep, Span
from lab_utils.dry_run.report.report import Report

# As libtpu writes it, shortened: a prefetch, a fused product, a loop of four rounds, a sum over cores.
HLO = """HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }

FileNames
1 "/home/me/step.py"
2 "/x/site-packages/flax/linen/linear.py"

FunctionNames
1 "Net.step"
2 "Dense.__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=0}
2 {file_name_id=2 function_name_id=2 line=300 end_line=300 column=0 end_column=0}
3 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=1}

%fused (a: f32[128,256], b: f32[256,512]) -> f32[128,512] {
  %a = f32[128,256]{1,0:T(8,128)} parameter(0)
  %b = f32[256,512]{1,0:T(8,128)S(1)} parameter(1)
  ROOT %dot.1 = f32[128,512]{1,0:T(8,128)} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (state: (s32[], f32[128,512])) -> (s32[], f32[128,512]) {
  %state = (s32[], f32[128,512]{1,0:T(8,128)}) parameter(0)
  %count = s32[] get-tuple-element(%state), index=0
  %x = f32[128,512]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %tanh.1 = f32[128,512]{1,0:T(8,128)} tanh(%x), metadata={op_name="jit(step)/tanh" stack_frame_id=3}, \
backend_config={"window_config":{"estimated_cycles":"100"}}
  ROOT %tuple.1 = (s32[], f32[128,512]{1,0:T(8,128)}) tuple(%count, %tanh.1)
}

%condition (state: (s32[], f32[128,512])) -> pred[] {
  %state.1 = (s32[], f32[128,512]{1,0:T(8,128)}) parameter(0)
  %count.1 = s32[] get-tuple-element(%state.1), index=0
  %four = s32[] constant(4)
  ROOT %less = pred[] compare(%count.1, %four), direction=LT
}

ENTRY %main (x: f32[128,256], w: f32[256,512]) -> f32[128,512] {
  %x.1 = f32[128,256]{1,0:T(8,128)} parameter(0)
  %w = f32[256,512]{1,0:T(8,128)} parameter(1)
  %copy-start = (f32[256,512]{1,0:T(8,128)S(1)}, f32[256,512]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%w)
  %zero = s32[] constant(0)
  %copy-done = f32[256,512]{1,0:T(8,128)S(1)} copy-done(%copy-start)
  %fusion.1 = f32[128,512]{1,0:T(8,128)} fusion(%x.1, %copy-done), kind=kOutput, calls=%fused, \
metadata={op_name="jit(step)/dot" stack_frame_id=2}, \
backend_config={"window_config":{"estimated_cycles":"1000"}}
  %all-reduce.1 = f32[128,512]{1,0:T(8,128)} all-reduce(%fusion.1), channel_id=1, replica_groups={{0,1}}, \
use_global_device_ids=true, metadata={op_name="jit(step)/dot" stack_frame_id=2}
  %tuple.2 = (s32[], f32[128,512]{1,0:T(8,128)}) tuple(%zero, %all-reduce.1)
  %while.1 = (s32[], f32[128,512]{1,0:T(8,128)}) while(%tuple.2), condition=%condition, body=%body
  ROOT %result = f32[128,512]{1,0:T(8,128)} get-tuple-element(%while.1), index=1
}
"""
RESULT, FEATURES, WEIGHTS = 4 * 128 * 512, 4 * 128 * 256, 4 * 256 * 512


@pytest.fixture
def summary():
    return summarise(HLO)


def test_bytes_flops_and_cycles_stand_at_the_learners_line(summary):
    loop, product = sorted(by_line(summary.work, lambda op: Place()), key=lambda line: line.cycles)
    # Line 7, where the learner calls the layer: the prefetch of the weights, the product, the sum over cores.
    assert (product.place.file, product.place.line) == ("/home/me/step.py", 7)
    assert product.cycles == 1000
    assert product.flops == 2 * 128 * 256 * 512
    assert product.bytes == WEIGHTS + (FEATURES + RESULT) + 2 * RESULT
    # Line 9: four rounds, each of which reads and writes the result.
    assert (loop.place.line, loop.cycles, loop.bytes, loop.flops) == (9, 400, 4 * 2 * RESULT, 0)


def test_the_sum_over_cores_and_what_takes_an_arguments_place(summary):
    (told,) = summary.collectives
    assert (told.kind, told.bytes) == ("all-reduce", RESULT)
    assert summary.aliased == [1]


def test_an_op_is_looked_up_where_the_module_names_no_line():
    text = HLO.replace(" stack_frame_id=2", "").replace(" stack_frame_id=3", "")
    known = {"jit(step)/dot": Place("model.py", 3), "jit(step)/tanh": Place("model.py", 4)}
    lines = by_line(summarise(text).work, lambda op: known.get(op, Place()))
    assert {each.place.line for each in lines} == {3, 4}


def test_a_trace_holds_every_instruction_in_turn(summary, tmp_path):
    program = Program("step", "train", 2, 64, b"", [], [])
    report = Report("step.py", "v5e:1x1", 1, compiled=[CompiledStep("train step")])
    with pytest.raises(ValueError, match="no compiled step"):
        report.write_trace(tmp_path / "none.json")
    report.spans = spans(summary, program)
    report.write_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    assert [each["cat"] for each in events] == ["copy-start", "fusion", "all-reduce", "tanh"]
    assert sum(each["dur"] for each in events) * 1000 == 1400  # cycles
    assert all(a["ts"] + a["dur"] == b["ts"] for a, b in zip(events, events[1:], strict=False))
    assert events[-1]["args"]["rounds"] == 4


def test_a_long_trace_follows_perfettos_rules(tmp_path):
    """As its importer of JSON reads them: microseconds, rounded to nanoseconds; what overlaps must nest.

    Perfetto's own trace processor is in no package: the one on PyPI downloads it.
    """
    drawn = random.Random(0)
    cycles = [drawn.choice([0.0, float(drawn.randrange(10**6))]) for _ in range(20_000)]
    made = [
        Span(f"op.{n}", "fusion", "jit(f)", Place(), each, 8, 0.0, 1)
        for n, each in enumerate(cycles)
    ]
    report = Report("step.py", "v5e:1x1", 1, compiled=[CompiledStep("train step")])
    report.spans = made
    report.write_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["displayTimeUnit"] == "ns"
    named, *events = trace["traceEvents"]
    assert (named["ph"], named["name"]) == ("M", "process_name") and len(events) == len(cycles)
    end = 0
    for each, length in zip(events, cycles, strict=True):
        assert (each["ph"], each["pid"], each["tid"]) == ("X", named["pid"], 1)
        start, duration = (math.floor(each[key] * 1000 + 0.5) for key in ("ts", "dur"))
        assert start == end and duration == length, "one after another, without a gap or an overlap"
        end = start + duration
        assert all(isinstance(value, str | int | float) for value in each["args"].values())
    assert end == sum(cycles)


def test_lines_are_in_every_view_and_come_back_from_json(summary):
    step = CompiledStep("train step", lines=by_line(summary.work, lambda op: Place()))
    report = Report("step.py", "v5e:1x1", 1, compiled=[step])
    for view in (str(report), report._repr_html_()):
        assert "step.py:7" in view and "1,000" in view
    written = json.loads(report.to_json())["compiled"][0]["lines"]
    assert [line["cycles"] for line in written] == [line.cycles for line in step.lines]


def test_a_line_of_the_framework_is_not_the_learners():
    """TensorFlow names its own ops.py for some steps: the op's name then leads to the learner's line."""
    said = 'metadata={op_name="x" source_file="%s" source_line=12}'
    assert frames.line_of(said % "/x/site-packages/tensorflow/python/framework/ops.py", {}) == (
        "",
        0,
    )
    assert frames.line_of(said % "/home/of/train.py", {}) == ("/home/of/train.py", 12)
