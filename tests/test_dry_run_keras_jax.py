"""Keras 3 on JAX as a subject: its faults at their lines, and right programs that are Ready."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from rules import keras_jax_frames, wrong_keras_jax
from rules.snippets import snippets

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Stage

HERE = pathlib.Path(__file__).parent
PORTS = wrong_keras_jax.PORTS
HEAD = "import os\nos.environ['KERAS_BACKEND'] = 'jax'\n"
PROGRAM = """
import keras, numpy as np
keras.distribution.set_distribution(keras.distribution.DataParallel())
rows = np.random.rand(200, 16).astype("float32")
model = keras.Sequential([
    keras.Input((16,)),
    keras.layers.Dense(512, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dropout(0.5),
    keras.layers.Dense(1),
])
model.compile("adam", "mse", metrics=["mae"])
model.evaluate(rows, rows[:, 0], verbose=0)
stop = keras.callbacks.EarlyStopping(patience=2)
history = model.fit(rows, rows[:, 0], 40, 3, callbacks=[stop], validation_split=0.2)
print(history.history["loss"])
model.fit(rows, rows[:, 0], epochs=9)
"""
DATA = """
import keras, numpy as np, sys
import tensorflow as tf
from lab_utils.dry_run import dry_run
from lab_utils.dry_run.feed import stage
stage.MOST_SECONDS = 0.1
rows = np.random.rand(100, 8).astype("float32")

class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        part = rows[32 * number : 32 * number + 32]
        return part, part[:, 0]

def generator(count):
    for _ in range(count):
        yield rows[:32], rows[:32, 0]

data = {
    "arrays": (rows[:32], rows[:32, 0]),
    "with weights": (rows[:32], rows[:32, 0], rows[:32, 0]),
    "tf.data": tf.data.Dataset.from_tensor_slices((rows, rows[:, 0])).batch(32),
    "PyDataset": Batches(),
    "endless": generator(10**9),
    "ends": generator(20),
}
for name, each in data.items():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("adam", "mse")
    stages = ["trace", "read", "feed"]
    report = dry_run(model, each, "v5e:2x4", stages=stages, progress=False)
    read, feed = report.stages[1], report.stages[4]
    found = " ".join(f"{f.rule}-{f.severity}" for f in report.findings)
    framework = f"{report.framework} on {report.backend}"
    print(f"{name}: {framework}; {read.status}, {feed.status}; {found}; {feed.detail}")
for wrong in (3, [], None):
    try:
        dry_run(model, wrong, progress=False)
    except TypeError as error:
        print("refused:", error)
"""
NAMES = """
import keras, inspect
import numpy as np
from lab_utils.dry_run.private import keras as names
keras.distribution.set_distribution(keras.distribution.DataParallel())
model = keras.Sequential([keras.layers.Dense(2)])
model.compile("adam", "mse")
rows = np.zeros([10, 3], "float32")
options = {"batch_size": 4, "steps_per_epoch": None, "class_weight": None}
adapter = names.adapter(rows, rows[:, :2], None, shuffle=True, **options)
assert (adapter.num_batches, adapter.partial_batch_size) == (3, 2), "DataAdapter"
batch = next(iter(adapter.get_jax_iterator()))
assert batch[0].shape == (4, 3), "get_jax_iterator"
assert names.without_validation(rows, rows, None, 0.5)[0].shape == (5, 3), "train_validation_split"
with names.one_copy():
    names.build(model, batch)
    assert keras.distribution.DeviceMesh((1,), ["batch"], ["tpu:0"]).backend_mesh, "_to_backend_device"
kernel = model.trainable_variables[0]
assert len(model.optimizer.variables) == 6, "_symbolic_build"
assert names.built_sharding(kernel).mesh.shape == {"batch": 1}, "_layout"
assert len(names.layers(model)) >= 2, "_flatten_layers"
layout = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((1,), ["batch"]))
parallel = keras.distribution.ModelParallel(layout_map=layout)
assert names.layout_map(parallel) is layout, "_layout_map"
assert list(inspect.signature(model.train_step).parameters) == ["state", "data"], "train_step"
print("as before")
"""
# Which rules stand under NOT CHECKED where a fact cannot be had, a line a fact.
FACTS = """
import json, keras, numpy as np, re
from unittest import mock
from lab_utils.dry_run import dry_run
from lab_utils.dry_run.facts.base import fact
from lab_utils.dry_run.facts.jax import JaxFacts, KerasJaxFacts
from lab_utils.dry_run.unavailable import Unavailable
mesh = keras.distribution.DeviceMesh((1, 1), ["batch", "model"], ["cpu:0"])
layouts = keras.distribution.LayoutMap(mesh)
layouts["dense.*kernel"] = (None, "model")
parallel = keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
keras.distribution.set_distribution(parallel)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
rows = np.zeros([8, 4], "float32"), np.zeros([8, 1], "float32")

def left_out():
    told = dry_run(model, rows, "v5e:1x1", stages=["read"], progress=False).not_checked
    found = re.findall(r"((?:TPU\\d+, )+)of training: (.*)\\.", chr(10).join(told))
    return {id: why for ids, why in found for id in re.findall(r"TPU\\d+", ids)}

print(json.dumps(["", left_out()]))
for name in {**vars(JaxFacts), **vars(KerasJaxFacts)}:
    def absent(facts):
        raise Unavailable(f"no {name} today")
    if isinstance(getattr(KerasJaxFacts, name), fact):
        with mock.patch.object(KerasJaxFacts, name, property(absent)):
            print(json.dumps([name, left_out()]))
"""
_OF_JAXPR = {"TPU240", "TPU241", "TPU242", "TPU244", "TPU245", "TPU246", "TPU247", "TPU258"}
_OF_TRACES = {*_OF_JAXPR, "TPU243", "TPU253", "TPU408"}
_OF_VARIABLES = {"TPU251", "TPU254", "TPU255", "TPU259"}
WITHOUT = {
    "": set(),
    "step": _OF_TRACES,
    "built_variables": {*_OF_TRACES, *_OF_VARIABLES},
    "traced": _OF_JAXPR,
    "trained": {"TPU259"},
    "rate": {"TPU259"},
    "jaxpr": _OF_JAXPR - {"TPU244"},
    "state": {"TPU242", "TPU245", "TPU246"},
    "followed": {"TPU245", "TPU246", "TPU258"},
    "has_strings": {"TPU106", "TPU119", "TPU250", "TPU257", *_OF_TRACES, *_OF_VARIABLES},
    "lacks": {"TPU236"},
    "beyond_32_bits": {"TPU257"},
    "batch": {"TPU106", "TPU243", "TPU250"},
    "batches_in_epoch": {"TPU243", "TPU250"},
    "rest": {"TPU243", "TPU250"},
    "effects": {"TPU253"},
    "layers": {"TPU251", "TPU255", "TPU256"},
    "layers_with_weights": {"TPU255"},
    "variables": _OF_VARIABLES - {"TPU259"},
    "devices": {"TPU252"},
    "early": {"TPU254"},
    "patterns": {"TPU251"},
    "paths": {"TPU251"},
}
PAGES = [each for each in snippets() if each.rule in keras_jax_frames.FRAMES]


@pytest.fixture(scope="module")
def judge():
    """Asks a process of Keras on JAX for the report on a port, or on the code of a page."""
    pytest.importorskip("libtpu")
    process = subprocess.Popen(
        [sys.executable, "-m", "rules.keras_jax_worker"],
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(stages=("trace", "read"), **request):
        print(json.dumps({"stages": list(stages)} | request), file=process.stdin, flush=True)
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait()


def stages_for(rule):
    """Those that show a rule."""
    stage = rules.rule(rule).stage
    return ("trace", "read") if stage in (Stage.TRACE, Stage.READ) else ("read", str(stage))


def costs(name):
    """The compiler and the virtual cores take seconds a port; what cannot be traced comes to neither."""
    stage = rules.rule(PORTS[name].rule).stage
    slow = stage in (Stage.COMPILE, Stage.RUN) and PORTS[name].rule != "TPU343"
    return pytest.param(name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "fixed"])
@pytest.mark.parametrize("name", map(costs, PORTS))
def test_a_fault_is_found_at_its_line(name, wrong, judge):
    port = PORTS[name]
    told = judge(stages_for(port.rule), port=name, wrong=wrong)
    own = [where for rule, _, where, _, _ in told["findings"] if rule == port.rule]
    assert "11 The same port in JAX" not in told["report"], "lab 10 is that of Keras"
    if wrong:
        assert any(place in where for where in own for place in port.places()), told["text"]
    else:
        assert not own, told["text"]
        assert all(severity == "note" for _, severity, *_ in told["findings"]), told["text"]


@pytest.mark.parametrize("page", PAGES, ids=lambda each: f"{each.rule}-{each.side}-{each.number}")
def test_code_of_a_page(page, judge):
    stages = stages_for(page.rule)
    told = judge(stages, page=page.rule, side=page.side, number=page.number)
    found = {rule for rule, *_ in told["findings"]}
    assert (page.rule in found) == (page.side == "Wrong"), told["text"]


def test_the_names_of_keras_have_not_moved():
    variables = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", NAMES], cwd=HERE.parent, env=os.environ | variables, text=True,
        capture_output=True,
    )  # fmt: skip
    moved = f"see lab_utils/dry_run/private/keras.py: {ran.stderr[-1500:]}"
    assert ran.stdout.strip().endswith("as before"), moved


def in_a_process(text, *arguments, **variables):
    """What a Python program of this text, or a module with arguments, writes."""
    ran = subprocess.run(
        [sys.executable, *(arguments or ["-c", text])],
        env=os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(HERE.parent)} | variables,
        capture_output=True,
        text=True,
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


def on_one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("chosen_outside", [True, False])
def test_a_program_is_judged_by_its_own_main(chosen_outside, tmp_path):
    """A predict or an evaluation before fit is carried out; what follows the first fit is named."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM if chosen_outside else HEAD + PROGRAM)
    variables = {"KERAS_BACKEND": "jax"} if chosen_outside else {}
    stages = "trace,read" if chosen_outside else "trace,read,compile,run,feed"
    options = ["--main", str(path), "--topology", "v5e:2x4", "--stages", stages, "--no_cache"]
    status, told = in_a_process("", "-m", "lab_utils.dry_run", *options, **variables)
    told = on_one_line(told)
    assert status == 0, told
    assert "asks JAX for the CPU" not in told, "it is the dry run that does"
    assert "Keras 3 on JAX; " in told and "Only the first training was judged" in told
    if not chosen_outside:
        assert "8 cores of v5e:2x4" in told and "compiled for the mesh batch=8" in told
        assert "Not checked:" not in told, "the stage trace leaves nothing out"
        assert '`keras.layers.Dense(512, activation="relu"),`' in told, "a line for each layer"


BUILT_LATE = """
import jax, keras, numpy as np
rows = np.random.rand(64, 16).astype("float32")
model = keras.Sequential([
    keras.layers.Normalization(mean=0.5, variance=1.0),
    keras.layers.Dense(1),
])
model.compile("adam", "mse")
with jax.default_matmul_precision("highest"):
    model.fit(rows, rows[:, 0], batch_size=32)
"""


@pytest.mark.parametrize("built", [False, True])
def test_a_layer_that_keeps_what_it_computes_is_built_before_fit(built, tmp_path):
    """Keras' own fit raises UnexpectedTracerError where it is not."""
    path = tmp_path / "train.py"
    begins = "Sequential([keras.Input((16,)), " if built else "Sequential(["
    path.write_text(HEAD + BUILT_LATE.replace("Sequential([", begins))
    options = ["--main", str(path), "--topology", "v5e:2x4", "--stages", "trace,read", "--no_cache"]
    status, told = in_a_process("", "-m", "lab_utils.dry_run", *options)
    told = on_one_line(told)
    if built:
        assert status == 0 and "TPU" not in told.partition("READ")[2].partition("NOTE")[0], told
    else:
        found, _, not_checked = told.partition("NOT CHECKED")
        assert status == 1 and "TPU343" in found and "TPU242" not in found, told
        assert "TPU242" in not_checked and "fix TPU343 first" in not_checked, told
        assert "begin it with keras.Input(shape)" in told, told


OP_BY_OP = """
import keras, numpy as np
rows = np.random.rand(64, 8).astype("float32")

class Dropped(keras.layers.Layer):
    def call(self, x, training=False):
        if not training:
            return x
        return x * keras.ops.floor(0.8 + keras.random.uniform(keras.ops.shape(x)))

model = keras.Sequential([keras.Input((8,)), Dropped(), keras.layers.Dense(1)])
model.compile("adam", "mse", jit_compile=False)
model.fit(rows, rows[:, 0], batch_size=32)
"""


def test_what_keras_does_not_compile_is_not_said_to_stop_fit(tmp_path):
    """Random numbers without a seed cannot be traced, and need not be where Keras runs op by op."""
    path = tmp_path / "train.py"
    path.write_text(HEAD + OP_BY_OP)
    options = [
        "--main",
        str(path),
        "--topology",
        "v5e:2x4",
        "--stages",
        "read,compile",
        "--no_cache",
    ]
    status, told = in_a_process("", "-m", "lab_utils.dry_run", *options)
    told = on_one_line(told)
    line = f"train.py:{(HEAD + OP_BY_OP).partition('keras.random')[0].count(chr(10)) + 1}, in call"
    assert line in told.partition("NOT CHECKED")[2], "what stops it once Keras compiles it"
    assert status == 1 and "TPU256" in told and "TPU343" not in told, told


OLDER = {
    "model.trainable_variables": """
import jax, keras
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
jax.jit(lambda variables: variables[0] + 1)(model.trainable_variables)
""",
    "keras.ops": """
import keras, tensorflow as tf
inputs = keras.Input((8,))
class Noise(keras.layers.Layer):
    def call(self, x):
        return x + tf.random.normal(tf.shape(x))
Noise()(inputs)
""",
}


@pytest.mark.parametrize("remedy", OLDER)
def test_what_older_programs_of_keras_do_is_said_with_the_remedy(remedy, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(HEAD + OLDER[remedy])
    status, told = in_a_process("", "-m", "lab_utils.dry_run", "--main", str(path))
    told = on_one_line(told)
    assert status == 2 and f"train.py:{len(OLDER[remedy].splitlines()) + 2}" in told, told
    assert remedy in told.rpartition("train.py:")[2], told


def test_what_fit_takes_is_read_as_fit_reads_it():
    status, told = in_a_process(DATA, KERAS_BACKEND="jax")
    told = re.sub(r"measured for [\d.]+ \w+", "measured", told)
    lines = [line for line in told.splitlines() if ": Keras" in line or "refused" in line]
    assert lines[:6] == [
        "arrays: Keras 3 on JAX; done, skipped; ; there is only an example batch, no input pipeline",
        "with weights: Keras 3 on JAX; done, skipped; ; there is only an example batch, no input pipeline",
        "tf.data: Keras 3 on JAX; done, done; TPU243-note; measured",
        "PyDataset: Keras 3 on JAX; done, done; TPU243-note; measured",
        "endless: Keras 3 on JAX; done, done; ; measured",
        "ends: Keras 3 on JAX; done, skipped; ; cannot be checked here: the generator has ended, and "
        "it can be read only once",
    ], told
    assert len(lines) == 9 and all("fit does not accept" in line for line in lines[6:]), told


def test_without_a_fact_exactly_the_rules_that_need_it_are_named():
    status, told = in_a_process(FACTS, KERAS_BACKEND="jax")
    assert status == 0, told
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("[")]
    assert {name: set(ids) for name, ids in lines} == WITHOUT
    assert all(set(ids.values()) <= {f"no {name} today"} for name, ids in lines), told
