"""Reading a core's program: the op table, the flow of data, and the learner's own lines."""

import functools
import inspect
import math
import re

import numpy as np
import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader

from lab_utils.common import source
from lab_utils.dry_run import dry_run, graphs, rules
from lab_utils.dry_run.facts import pipeline as pipelines
from lab_utils.dry_run.facts.flow import DATA, RANDOM, VARIABLE, CoreProgram, analyse
from lab_utils.dry_run.frontends.recognise import workload_of
from lab_utils.dry_run.program import Api
from lab_utils.dry_run.records import Mode, Stage, StageResult, Status
from lab_utils.dry_run.rules import host, inputs, training
from lab_utils.dry_run.rules import ops as rules_of_ops
from lab_utils.dry_run.session import Session
from lab_utils.estimator import tf, v1

BATCHES = reader((ROWS, CLASSES))


def PREDICTED(params):
    return BATCHES(params).map(lambda row, label: row)


# What tensorflow-tpu 2.19.1 refused, on x: float32 [8, 16], i: int32 [8]; the corpus of ports holds more.
REFUSED = {
    "StringFormat": lambda x, i: tf.print(x),
    "Print": lambda x, i: v1.Print(x, [x]),
    "RaggedTensorToTensor": lambda x, i: tf.RaggedTensor.from_row_splits(x, i).to_tensor(),
    "MaxPoolWithArgmax": lambda x, i: tf.nn.max_pool_with_argmax(_images(x), 2, 2, "SAME"),
}


def _images(x):
    return tf.reshape(x, [8, 4, 4, 1])


def _graph(function):
    def build(x, i):
        function(x, i)

    signature = tf.TensorSpec([8, 16]), tf.TensorSpec([8], tf.int32)
    return tf.function(build, autograph=False).get_concrete_function(*signature).graph


@pytest.mark.parametrize("op", REFUSED)
def test_op_that_the_tpu_refuses(op):
    graph = _graph(REFUSED[op])
    found = list(rules_of_ops.unsupported(graph.get_operations(), Api.ESTIMATOR, False))
    assert any(op in finding.message and "XLA_TPU_JIT" in finding.message for finding in found)


@pytest.mark.parametrize(
    ("step", "bits"),
    [
        (lambda w, x: w.assign_add(tf.cast(tf.shape(x), tf.float32) * tf.ones([2])), 0),
        (lambda w, x: w.assign_add(v1.tpu.cross_replica_sum(x, [[0, 1]])), 0),
        (lambda w, x: w.assign_add(v1.tpu.cross_replica_sum(x, [[0], [1]])), DATA),
        (lambda w, x: w.assign(w * 2.0), VARIABLE),
        (lambda w, x: w.assign_add(tf.random.normal([2])), RANDOM),
        (
            lambda w, x: w.assign_add(tf.cond(x[0] > 0, lambda: 1.0, lambda: 2.0) * tf.ones([2])),
            DATA,
        ),
        (
            lambda w, x: w.assign_add(
                tf.while_loop(lambda y: y[0] < 3, lambda y: [y + x], [tf.zeros([2])])[0]
            ),
            DATA,
        ),
        (lambda w, x: w.assign_add(tf.function(lambda y: y * 2)(x)), DATA),
        (lambda w, x: w.assign_add(tf.zeros_like(x) + 1), 0),
    ],
)
def test_flow_of_data_to_a_variable(step, bits):
    with tf.Graph().as_default():
        w = v1.get_variable("w", [2], initializer=v1.zeros_initializer(), use_resource=True)
        body = tf.function(lambda x: [step(w, x), x][1:], autograph=False)
        graph = body.get_concrete_function(tf.TensorSpec([2])).graph
        flow = analyse(CoreProgram.of(graph), [graph.inputs[0].name])
    assert flow.variables["w:0"] == bits
    assert ("w:0" in flow.writes) == bool(bits & DATA)


def test_place_of_a_function():
    def model_fn(features, params):
        return features

    assert ", in model_fn: `def model_fn(features, params):`" in str(source.place(model_fn))
    assert source.place(functools.partial(model_fn, params={})) == source.place(model_fn)

    class Model:
        def __call__(self, features):
            return features

    assert "in __call__" in str(source.place(Model()))


class Table(tf.keras.layers.Layer):
    """Looks its words up in Python."""

    def call(self, inputs):
        found = tf.py_function(lambda x: x * 2, [inputs], tf.float32)  # <- here
        return tf.ensure_shape(found, inputs.shape)


def read_front_door(subject, data):
    report = dry_run(subject, data, stages=["read"], progress=False)
    found = {}
    for finding in report.findings:
        found.setdefault(finding.rule, finding)
    return found


def line_of(mark, function):
    lines, first = inspect.getsourcelines(function)
    return next(first + n for n, line in enumerate(lines) if line.rstrip().endswith(mark))


def test_a_keras_models_own_layer_is_read_and_placed():
    model = tf.keras.Sequential([Table(), tf.keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((np.ones([64, 4], "f4"), np.ones([64, 3], "f4")))
    found = read_front_door(model, data.batch(32, drop_remainder=True))
    assert set(found) == {"TPU205"}
    assert f"test_dry_run_read.py:{line_of('<- here', Table)}" in found["TPU205"].where
    right = tf.keras.Sequential([tf.keras.layers.Dense(3)])
    right.compile("sgd", "mse")
    assert read_front_door(right, data.batch(32, drop_remainder=True)) == {}


def test_a_bare_steps_ops_and_types_are_read():
    weights = tf.Variable(tf.ones([4, 3]))

    @tf.function
    def step(features, labels):
        words = tf.strings.as_string(labels)  # <- strings
        wide = tf.cast(features @ weights, tf.float64) * 2  # <- wide
        return tf.reduce_mean(wide) + tf.cast(tf.reduce_sum(tf.strings.length(words)), tf.float64)

    batch = np.ones([64, 4], "f4"), np.ones([64], "i4")
    found = read_front_door(step, batch)
    assert set(found) == {"TPU204", "TPU208"}
    for rule, mark in (("TPU204", "<- strings"), ("TPU208", "<- wide")):
        assert f"test_dry_run_read.py:{line_of(mark, step.python_function)}" in found[rule].where
    assert read_front_door(lambda x, y: tf.reduce_mean(x @ weights), batch) == {}


@pytest.mark.parametrize("folder", ["tensorflow", "keras", "numpy", "six", "absl"])
def test_a_learner_s_folder_may_have_a_framework_s_name(tmp_path, folder):
    file = tmp_path / folder / "models" / "net.py"
    file.parent.mkdir(parents=True)
    file.write_text("def model():\n    raise ValueError('mine')\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ValueError, match="mine") as caught:
        names["model"]()
    place = source.place(caught.value)
    assert (place.file, place.line, place.function) == (str(file), 2, "model")


@pytest.mark.parametrize(("cores", "severity"), [(8, "note"), (16, "error")])
def test_python_in_an_input_pipeline_is_an_error_on_several_hosts(cores, severity):
    def numbers():
        yield from range(4)

    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.from_generator(numbers, tf.int32)  # <- here
        data.map(lambda x: tf.py_function(abs, [x], tf.int32))  # <- there
    places = {(each.place.code, each.severity) for each in host.python([graph], cores, "")}
    assert {code.rpartition("# ")[2] for code, _ in places} == {"<- here", "<- there"}
    assert {found for _, found in places} == {severity}


@pytest.mark.parametrize(
    ("examples", "loop", "found"),
    [
        (lambda: tf.data.Dataset.range(640), 10, [("TPU218", "note")]),
        (lambda: tf.data.Dataset.range(640), 11, [("TPU218", "warning")]),
        (tf.data.Dataset.counter, 11, []),
    ],
    ids=["fills a loop", "shorter than a loop", "endless"],
)
def test_data_without_repeat_are_a_note_where_they_fill_a_loop(examples, loop, found):
    """Some call train once for each epoch."""
    with tf.Graph().as_default() as graph:
        last = examples().batch(64, drop_remainder=True).cardinality().op.inputs[0].op
    pipeline = pipelines.Pipeline(graph, last, [[64]], 64, 1, cores=8)
    batches = pipelines.number_of_batches(pipeline)
    where = source.place(last)
    findings = inputs.not_repeated(pipeline, batches, loop, where, steps=None)
    assert [(each.rule, each.severity) for each in findings] == found


def test_a_column_against_a_row_is_told_where_it_is_written_not_at_its_gradient():
    with tf.Graph().as_default() as graph:
        rows = v1.placeholder(tf.float32, [8, 4])
        weights = v1.get_variable("weights", [4, 1], use_resource=True)
        quotient = tf.squeeze(rows @ weights, 1) / rows[:, :1]
        tf.gradients(quotient, weights)
    program = CoreProgram(graph, {weights.handle.name: "weights"}, off_device=True)
    found = list(training.broadcasts(graph, analyse(program, [rows.name])))
    assert [each.place for each in found] == [source.place(quotient.op)]


@pytest.mark.parametrize("data", [tf.data.Dataset, v1.data.Dataset], ids=["version 2", "version 1"])
def test_elements_are_known_behind_maps(data):
    def mapped(given):
        return given.range(100).map(lambda n: n + 1)

    wanted = [
        (mapped, 100),
        (lambda given: mapped(given).batch(8, drop_remainder=True).map(tf.identity), 12),
        (lambda given: mapped(given).padded_batch(8, []).prefetch(1), 13),
        (lambda given: mapped(given).repeat(3), 300),
        (lambda given: mapped(given).repeat(), math.inf),
        (lambda given: given.zip((mapped(given), mapped(given).repeat(2))), 100),
        (lambda given: mapped(given).filter(lambda n: n > 7), None),
    ]
    for build, count in wanted:
        with tf.Graph().as_default():
            made = tf.data.experimental.to_variant(build(data)).op
            assert pipelines.elements(made) == count


def judged(input_fn, **options):
    report = dry_run(make(dense), input_fn, stages=["trace", "read"], progress=False, **options)
    return report, [said for said in report.not_checked if re.match(r"TPU\d+", said)]


def test_rules_that_input_fn_keeps_from_being_read_are_named():
    """input_fn is called once more for them, and with twice the batch: some bear one call, or check it."""
    calls = []

    def once(params):
        calls.append(1)
        assert len(calls) == 1, "the files are open already"  # once
        return BATCHES(params)

    def checked(params):
        assert params["batch_size"] == 64, "this batch only"  # checked
        return BATCHES(params)

    _, left_out = judged(once, eval_input_fn=BATCHES, predict_input_fn=PREDICTED)
    [said] = left_out
    assert said.startswith("TPU211, TPU214, ") and "TPU237, of training: when it was called" in said
    assert (
        "when it was called again, input_fn raised AssertionError: the files are open already"
        in said
    )
    assert "# once" in said
    report, [said] = judged(checked, eval_input_fn=BATCHES, predict_input_fn=PREDICTED)
    assert said.startswith("TPU214, TPU226, of training: when it was asked for twice")
    assert "this batch only" in said and "# checked" in said and report.ready
    assert judged(BATCHES, eval_input_fn=BATCHES, predict_input_fn=PREDICTED)[1] == []


def test_the_size_of_batches_that_nobody_reads_is_a_note():
    """As of a public benchmark of all-reduce, whose step draws its own examples."""

    def draws(features, labels, mode, params):
        return dense(tf.random.normal([8, 16]), tf.zeros([8], tf.int32), mode, params)

    def small(params):
        return BATCHES({"batch_size": params["batch_size"] // 2})

    for model_fn, severity in ((dense, "error"), (draws, "note")):
        report = dry_run(make(model_fn), small, stages=["trace", "read"], progress=False)
        (found,) = (found for found in report.findings if found.rule == "TPU214")
        assert found.severity == severity
        assert ("the step reads nothing" in found.why) is (severity == "note")


def test_what_a_function_computes_for_nobody_is_no_finding():
    """The gradient of float64 labels, where the loss is a function of its own; of weights it is one."""
    weights = tf.Variable(tf.ones([4, 8]))

    @tf.function
    def cost(labels, logits):
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels, logits))

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = cost(y, tf.matmul(x, tf.cast(weights, x.dtype)))
        weights.assign_sub(tape.gradient(loss, weights))
        return loss

    def found(kind):
        batch = np.ones([8, 4], kind), np.eye(8)
        return [
            item.rule for item in dry_run(step, batch, stages=["read"], progress=False).findings
        ]

    assert found(np.float32) == [] and set(found(np.float64)) == {"TPU208"}


def test_rules_that_other_programs_go_without():
    batch = np.ones([8, 4], np.float32), np.ones([8], np.float32)

    def step(x, y):
        return tf.reduce_mean(x)

    report = dry_run(step, batch, stages=["read"], progress=False)
    [told] = [text for text in report.not_checked if "TPUEstimator" in text]
    assert re.fullmatch(r"[^:]*: \d+ of training, \d+ of evaluation\.", told)
    workload = workload_of(
        step, batch, eval=None, predict=None, serving=None, topology="v2:2x2", of_jax={}
    )
    session = Session(workload, "v2:2x2", 8, result=StageResult(Stage.READ, Status.DONE))
    session.apply_rules()
    left_out = {
        why: ids for (mode, why), ids in session.silent.left_out.items() if mode is Mode.TRAIN
    }
    pages = {id for id, rule in rules.catalogue().items() if rule.stage == Stage.READ}
    assert all(ids < pages for ids in left_out.values())
    of_an_estimator = session.silent.not_asked[Mode.TRAIN]
    assert f"{len(of_an_estimator)} of training" in told and "TPU201" in of_an_estimator
    asked = pages - of_an_estimator
    # Of every program's step; of its dataset, which there is none of here; of a model's scope.
    wanted = (
        "TPU202 TPU203 TPU204 TPU205 TPU206 TPU207 TPU208 TPU211 TPU216 TPU222 TPU228 TPU230 TPU232 "
        "TPU233 TPU234 TPU235 TPU236 TPU237"
    )
    # Of evaluation, of which neither the step nor a dataset is known, and of prediction.
    wanted += " TPU212 TPU213 TPU223 TPU225"
    assert sorted(id for id in asked if id < "TPU240") == sorted(wanted.split())
    reasons = {why for mode, why in session.silent.left_out if mode is Mode.EVAL}
    assert reasons == {
        "there is no validation dataset",
        "the dry run builds only the train step of such a program",
    }
    assert sum(text.startswith("Prediction: ") for text in report.not_checked) == 1
    [of_dataset] = [text for text in report.not_checked if text.endswith("no input pipeline.")]
    assert of_dataset.startswith(
        "TPU211, TPU216, TPU222, TPU228, TPU232, TPU233, TPU237, of training"
    )


def test_the_ops_of_one_branch_are_read_where_the_other_is_unknown(monkeypatch):
    """Its name is told: no op of it can be judged."""

    @tf.function
    def step(x):
        return tf.cond(x[0] > 0, lambda: tf.strings.length(tf.strings.as_string(x)), lambda: 0 * x)

    graph = step.get_concrete_function(tf.TensorSpec([8], tf.int32)).graph
    [branch] = [op for op in graph.get_operations() if op.type in ("If", "StatelessIf")]
    name, original = branch.get_attr("else_branch").name, graphs._tensorflow.graph_of_function

    def lost(other, holder):
        return None if other == name else original(other, holder)

    monkeypatch.setattr(graphs._tensorflow, "graph_of_function", lost)
    ops = list(graphs.everywhere(graph))
    assert "AsString" in {op.type for op in ops}
    assert graphs.unknown_functions(ops) == [name]
    assert graphs.called_functions(branch) == []  # a rule that needs both branches takes neither
