"""The cost of a compiled step by the learner's lines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils.common.source import Place
from lab_utils.dry_run.compile.figures import by_line
from lab_utils.dry_run.compile.hlo.summary import summarise
from lab_utils.dry_run.records import CompiledStep
from lab_utils.dry_run.report.report import Report

ROOT = Path(__file__).parents[1]
SESSION = """
import os
import numpy as np
import keras
from lab_utils.estimator import tf
if os.environ["KERAS_BACKEND"] == "tensorflow":
    keras = tf.keras
layers = [keras.layers.Dense(64, name="small"), keras.layers.Dense(256, name="large")]
model = keras.Sequential(layers)
model.compile("sgd", "mse")
model.build((None, 32))
from lab_utils.dry_run import dry_run
rows = np.ones([64, 32], "f"), np.ones([64, 256], "f")
data = tf.data.Dataset.from_tensor_slices(rows).batch(64)
report = dry_run(model, data, stages=["compile"])
[step] = [step for step in report.compiled if step.lines]
print(*(line.place for line in step.lines), sep="\\n")
"""

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
  %square.1 = f32[128,128]{1,0:T(8,128)} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
operand_precision={high,high}, metadata={op_name="jit(step)/square" stack_frame_id=3}
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
RESULT, FEATURES, WEIGHTS, SQUARE = 4 * 128 * 512, 4 * 128 * 256, 4 * 256 * 512, 4 * 128 * 128


@pytest.fixture
def summary():
    return summarise(HLO)


def lines_of(text, known=()):
    return by_line(summarise(text).costs, lambda op: dict(known).get(op, Place()))


def test_bytes_flops_and_cycles_stand_at_the_learners_line(summary):
    loop, product = sorted(lines_of(HLO), key=lambda line: line.cycles)
    # Line 7, where the learner calls the layer: the prefetch of the weights, the product, the sum over cores.
    assert (product.place.file, product.place.line) == ("/home/me/step.py", 7)
    assert product.cycles == 1000
    assert product.flops == 2 * 128 * 256 * 512
    assert product.bytes == WEIGHTS + (FEATURES + RESULT) + 2 * RESULT
    # Line 9: four rounds, each of which reads and writes the result, and multiplies it by itself.
    assert (loop.place.line, loop.cycles) == (9, 400)
    assert loop.bytes == 4 * (2 * RESULT + 2 * RESULT + SQUARE)
    assert loop.flops == summary.loop_flops / 3 * 4 == 4 * 2 * 128 * 128 * 512


def test_shares_of_the_products_and_what_the_arrays_take(summary):
    fused, square = 2 * 128 * 256 * 512, 4 * 2 * 128 * 128 * 512
    assert {each.name: each.flops for each in summary.products} == {
        "dot.1": fused,
        "jit(step)/square": square,
    }
    assert summary.small_edge_share == 0
    assert summary.buffers[0].shape.padded_bytes == WEIGHTS == summary.buffers[0].shape.bytes


def test_the_sum_over_cores_and_what_takes_an_arguments_place(summary):
    assert summary.collectives == {"all-reduce": RESULT}
    assert summary.aliased == [1]


@pytest.mark.parametrize(
    "metadata",
    ["", 'source_file="/x/site-packages/tensorflow/python/framework/ops.py" source_line=12'],
    ids=["none", "the framework's"],
)
def test_an_op_is_looked_up_where_the_module_names_no_line_of_the_learners(metadata):
    """TensorFlow names its own ops.py for some steps."""
    text = HLO.replace("stack_frame_id=2", metadata).replace("stack_frame_id=3", metadata)
    lines = {"dot": 3, "tanh": 4, "square": 4}
    known = {f"jit(step)/{op}": Place("model.py", line) for op, line in lines.items()}
    assert {each.place.line for each in lines_of(text, known)} == {3, 4}
    text = HLO.replace("stack_frame_id=2", 'source_file="/home/of/train.py" source_line=12')
    assert {each.place.line for each in lines_of(text)} == {12, 9}


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_a_layer_that_was_made_before_is_named_in_place_of_its_line(backend, tmp_path):
    """As in a notebook: what Keras' own layers compute stood under no line."""
    file = tmp_path / "session.py"
    file.write_text(SESSION)
    environment = os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert {"layer small", "layer large"} <= set(ran.stdout.splitlines())


def test_lines_are_in_every_view_and_come_back_from_json():
    step = CompiledStep("train step", lines=lines_of(HLO))
    report = Report("step.py", "v5e:1x1", 1, compiled=[step])
    for view in (str(report), report._repr_html_()):
        assert "step.py:7" in view and "1,000" in view
    written = json.loads(report.to_json())["compiled"][0]["lines"]
    assert [line["cycles"] for line in written] == [line.cycles for line in step.lines]
