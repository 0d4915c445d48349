"""Stage 1: the genuine TPUEstimator graphs, and what its exceptions become."""

import inspect
import types

import pytest
from dry_run_models import CLASSES, ROWS, classify, dense, make, reader, tpu, train_spec, v1

from lab_utils.dry_run import dry_run, remote
from lab_utils.dry_run.advice import moved
from lab_utils.dry_run.facts.traces import trace
from lab_utils.dry_run.workload import Inputs
from lab_utils.estimator import tf

DATA = reader((ROWS, CLASSES))


def report_of(estimator, data=DATA, **inputs):
    return dry_run(estimator, data, stages=["trace"], progress=False, **inputs)


def findings(model_fn=dense, data=DATA, **arguments):
    return report_of(make(model_fn, **arguments), data).findings


def test_a_right_port_builds_all_three_graphs_and_has_no_findings():
    traces = trace(make(dense), Inputs(DATA), cores=8)
    assert [each.mode for each in traces] == ["train", "eval", "predict"]
    assert findings() == []
    train = traces[0]
    assert train.per_core_batch == 8
    assert train.features.shape == [8, 6]
    assert any(op.type == "CrossReplicaSum" for op in train.core_graph.get_operations())
    assert traces[2].labels is None


def test_the_estimator_and_its_model_dir_are_left_alone(tmp_path):
    estimator = make(dense, params={"mine": 1}, config=tpu.RunConfig(model_dir=str(tmp_path)))
    before = dict(estimator.__dict__)
    trace(estimator, Inputs(DATA), cores=8)
    assert estimator.__dict__ == before
    assert estimator.params == {"mine": 1}
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=[1, 2])
def loops(request):
    """The version of control flow; with version 1 the body of a loop is part of the session's graph."""
    if request.param == 1:
        v1.disable_control_flow_v2()
    yield request.param
    v1.enable_control_flow_v2()


def test_a_hook_that_fetches_a_tensor_of_the_loop_is_named(loops):
    def model_fn(features, labels, mode, params):
        loss = classify(v1.layers.dense(features, 3), labels)
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        fetched = {"loss": loss} if mode == "train" else {"step": v1.train.get_global_step()}
        hooks = [v1.train.LoggingTensorHook(fetched, every_n_iter=10)]  # the hook
        hooks.append(v1.train.SessionRunHook())
        if mode != "train":
            score = (lambda labels: {"labels": v1.metrics.mean(labels)}, [labels])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=score, evaluation_hooks=hooks)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)

    [found] = findings(model_fn, eval_batch_size=64)
    assert found.rule == "TPU115" and "# the hook" in found.place.code
    assert ("not fetchable" if loops == 1 else "equal to current graph") in found.message


def test_a_consequence_is_told_only_where_its_cause_is_not():
    """With version 1 control flow TPUEstimator itself asks for the CrossShardOptimizer, as read does."""

    def model_fn(features, labels, mode, params):
        loss = classify(v1.layers.dense(features, 3), labels)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    v1.disable_control_flow_v2()
    try:
        only_trains = make(model_fn, use_tpu=True, eval_on_tpu=False, predict_batch_size=None)
        [alone] = report_of(only_trains).findings
        both = dry_run(only_trains, DATA, stages=["trace", "read"], progress=False)
    finally:
        v1.enable_control_flow_v2()
    assert (alone.rule, alone.because_of) == ("TPU199", "TPU201")
    assert [found.rule for found in both.findings] == ["TPU201"]


def test_a_graph_that_could_not_be_built_names_the_rule_to_fix_first():
    def model_fn(features, labels, mode, params):
        return dense(tf.reshape(features, [7, 6]), labels, mode, params)

    port = make(model_fn, eval_batch_size=None, predict_batch_size=None)
    report = dry_run(port, DATA, stages=["trace", "read", "compile"], progress=False)
    [said] = [said for said in report.not_checked if said.startswith("TPU115, ")]
    assert said.endswith("of training: its graph could not be built: fix TPU199 first.")
    assert report.stages[2].detail.endswith("could not be built: fix TPU199 first")


class Asking(v1.train.SessionRunHook):
    """Asks in before_run as the test says."""

    def __init__(self, ask):
        self.ask = ask

    def before_run(self, context):
        return self.ask(context)


def with_hook(hook_of):
    """An Estimator that only trains, with the hook that hook_of(loss) gives."""

    def model_fn(features, labels, mode, params):
        loss = classify(v1.layers.dense(features, 3), labels)
        return train_spec(mode, loss, params, training_hooks=[hook_of(loss)])

    only_trains = {"eval_batch_size": None, "predict_batch_size": None, "eval_on_tpu": False}
    return make(model_fn, use_tpu=True, **only_trains)


def test_summaries_of_the_model_cannot_be_saved_by_a_hook(tmp_path):
    """And the hook, which begins, writes nothing where the program keeps its model."""

    def saver(loss):
        merged = v1.summary.merge([v1.summary.scalar("loss", loss)])
        return v1.train.SummarySaverHook(10, output_dir=tmp_path / "run", summary_op=merged)

    [found] = report_of(with_hook(saver)).findings
    assert found.rule == "TPU115" and "SummarySaverHook(" in found.place.code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ask", "fetches"),
    [
        (lambda loss: lambda context: None, False),
        (lambda loss: lambda context: v1.train.SessionRunArgs({"step": v1.train.get_global_step()}), False),
        (lambda loss: lambda context: v1.train.SessionRunArgs({"loss": (loss, loss.op)}), True),
        (lambda loss: lambda context: v1.train.SessionRunArgs("no_such_tensor:0"), True),
        (lambda loss: lambda context: context.session.graph.get_tensor_by_name("loss_of:0"), True),
        (lambda loss: lambda context: context.session.run(loss), True),
    ],
)  # fmt: skip
def test_what_a_hook_of_ones_own_asks_for_is_looked_at(ask, fetches):
    report = report_of(with_hook(lambda loss: Asking(ask(loss))))
    assert [found.rule for found in report.findings] == ["TPU115"] * fetches
    assert not [said for said in report.not_checked if "the hook" in said]


def test_a_hook_that_needs_a_session_is_told_and_charged_with_nothing():
    def ask(context):
        context.session.run(v1.train.get_global_step())  # the line

    report = report_of(with_hook(lambda loss: Asking(ask)))
    assert report.findings == []
    [said] = [said for said in report.not_checked if said.startswith("TPU115, of training: ")]
    assert "hook Asking" in said and "runs no session" in said and "# the line" in said


def test_nothing_is_printed(capfd):
    findings(lambda features, labels, mode, params: v1.summary.scalar("a", 1.0))
    captured = capfd.readouterr()
    assert captured.out == ""
    assert [line for line in captured.err.splitlines() if "temporary folder" not in line] == []


def test_modes_without_a_batch_size_are_left_out_or_probed():
    estimator = make(dense, eval_batch_size=None, predict_batch_size=None)
    traces = trace(estimator, Inputs(DATA), cores=8)
    assert [(each.mode, each.probe) for each in traces] == [("train", False), ("eval", True)]
    with_own = report_of(estimator, eval_input_fn=DATA)
    assert [each.rule for each in with_own.findings] == ["TPU107"]


# Programs that other people wrote.


def only_trains(features, labels, mode, params):
    if mode != "train":
        raise ValueError("this program trains only")
    return train_spec(mode, classify(v1.layers.dense(features, 3), labels), params)


def test_batch_sizes_set_by_habit_are_no_fault_of_a_program_that_only_trains():
    estimator = make(only_trains, eval_batch_size=64, predict_batch_size=64)
    traces = trace(estimator, Inputs(DATA), cores=8)
    assert [each.mode for each in traces] == ["train"] and report_of(estimator).findings == []
    [evaluation, _] = traces[0].not_checked
    assert "ValueError: this program trains only (at " in evaluation and "only_trains" in evaluation
    report = report_of(make(only_trains), eval_input_fn=DATA)
    assert [found.rule for found in report.findings] == ["TPU199"]


def test_data_in_a_bucket_are_not_this_program_s_fault(monkeypatch):
    monkeypatch.setattr(remote, "_reachable", lambda scheme: False)

    def input_fn(params):
        if not tf.io.gfile.glob("gs://nobody/train-*"):
            raise AssertionError
        return DATA(params)

    def fails(pattern):
        raise tf.errors.PermissionDeniedError(None, None, f"no credentials to read {pattern}")

    monkeypatch.setattr(tf.io.gfile, "glob", fails)
    report = report_of(make(dense), input_fn)
    assert report.findings == [] and report.verdict == "could not run"
    said = [line for line in report.not_checked if "the data are at gs://nobody" in line]
    assert said[0].startswith("TPU115, ") and "of training: " in said[0]


def test_a_global_batch_in_a_reshape_is_named_beside_the_message():
    def model_fn(features, labels, mode, params):
        return dense(tf.reshape(features, [64, 6]), labels, mode, params)

    [found] = findings(model_fn, eval_batch_size=None, predict_batch_size=None)
    assert found.rule == "TPU199" and 'params["batch_size"]' in found.why


def test_a_saver_in_model_fn_is_called_so():
    def model_fn(features, labels, mode, params):
        spec = dense(features, labels, mode, params)
        v1.train.Saver()
        return spec

    report = dry_run(make(model_fn), DATA, stages=["trace", "read"], progress=False)
    assert {found.rule for found in report.findings} >= {"TPU204"}
    saver = next(found for found in report.findings if found.rule == "TPU204")
    assert "train.Saver" in saver.why and "scaffold_fn" in saver.fix


def test_a_name_that_python_dropped_stops_the_trace_at_its_line():
    def model_fn(features, labels, mode, params):
        return inspect.getargspec(dense)  # the line

    report = dry_run(make(model_fn), DATA, stages=["trace"], progress=False)
    [result, *_] = report.stages
    assert result.status == "failed" and "getargspec" in result.detail
    assert "in model_fn: `return inspect.getargspec(dense)  # the line`" in result.detail


def test_a_step_takes_the_batches_of_all_cores_where_the_number_of_examples_is_unknown():
    def evaluation(params):
        rows = tf.data.Dataset.from_tensor_slices((ROWS[:250], CLASSES[:250]))
        rows = rows.filter(lambda row, label: True)
        return rows.batch(params["batch_size"], drop_remainder=True)

    config = tpu.RunConfig(model_dir="nowhere", tpu_config=tpu.TPUConfig(
        10, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2))  # fmt: skip
    report = dry_run(
        make(dense, config=config),
        DATA,
        eval_input_fn=evaluation,
        stages=["trace", "read"],
        progress=False,
    )
    [found] = [each for each in report.findings if each.rule == "TPU225"]
    assert "58" in found.why, "250 rows are counted: three batches of 64, and the rest"


# Sizes of the whole batch beside those of a core's share.


def test_a_number_that_equals_the_global_batch_for_another_reason_is_not_called_so():
    def model_fn(features, labels, mode, params):
        if mode == "infer":
            large = tf.tile(features, [1, 2**20])  # for predict_batch_size=256: 6 GB
            return tpu.TPUEstimatorSpec(mode, predictions={"large": large})
        return dense(features, labels, mode, params)

    [found] = findings(model_fn, predict_batch_size=256)
    assert found.rule == "TPU199" and "is too large" in found.why
    assert "global batch" not in found.why and "predict_batch_size" in found.fix


@pytest.mark.parametrize("how", ["a closure", "an attribute", "neither"])
def test_a_host_function_that_holds_a_tensor_of_one_cores_share_is_told_so(how):
    def model_fn(features, labels, mode, params):
        spec = dense(features, labels, mode, params)
        if mode != "eval":
            return spec
        rows, model = features[:, 0], types.SimpleNamespace(rows=features[:, 0])

        def by_closure(labels):
            return {"mean": v1.metrics.mean(tf.cast(labels, tf.float32) - rows)}

        def by_attribute(labels):
            return {"mean": v1.metrics.mean(tf.cast(labels, tf.float32) - model.rows)}

        def neither(labels):
            return {"mean": v1.metrics.mean(tf.cast(labels, tf.float32) - tf.zeros([8]))}

        function = {"a closure": by_closure, "an attribute": by_attribute}.get(how, neither)
        metrics = (function, [labels])
        return tpu.TPUEstimatorSpec(mode, loss=spec.loss, eval_metrics=metrics)

    [found] = findings(model_fn, eval_batch_size=64)
    assert found.rule == ("TPU199" if how == "neither" else "TPU118")
    assert "v1.metrics.mean" in found.place.code and "global batch" not in found.why
    assert how == "neither" or "by_" in found.why


# Names of TensorFlow that lie elsewhere.


@pytest.mark.parametrize(
    ("use", "home"),
    [
        (lambda: v1.estimator.tpu.CrossShardOptimizer, "tf.compat.v1.tpu.CrossShardOptimizer"),
        (lambda: tf.tpu.cross_replica_sum, "tf.compat.v1.tpu.cross_replica_sum"),
        (lambda: tf.tpu.RunConfig, "tf.compat.v1.estimator.tpu.RunConfig"),
        (lambda: v1.tpu.TPUEstimatorSpec, "tf.compat.v1.estimator.tpu.TPUEstimatorSpec"),
        (lambda: tf.tpu.initialize_tpu_system, "tf.tpu.experimental.initialize_tpu_system"),
        (lambda: tf.train.AdamOptimizer, "tf.compat.v1.train.AdamOptimizer"),
        (lambda: tf.placeholder, "tf.compat.v1.placeholder"),
        (lambda: tf.tpu.nothing_of_that_name, ""),
    ],
)
def test_a_name_is_named_where_it_is(use, home):
    with pytest.raises(AttributeError) as caught:
        use()
    said = moved(str(caught.value))
    assert said == (f"Write {home}, where the name is now." if home else "")


def test_a_name_that_model_fn_looks_for_elsewhere_is_named():
    def model_fn(features, labels, mode, params):
        return v1.estimator.tpu.CrossShardOptimizer  # the line

    [found, *_] = findings(model_fn, eval_batch_size=None, predict_batch_size=None)
    assert found.rule == "TPU199" and "# the line" in found.place.code
    assert "tf.compat.v1.tpu.CrossShardOptimizer" in found.fix


def test_a_model_fn_that_forgets_to_return_its_spec_is_told_so():
    def model_fn(features, labels, mode, params):
        dense(features, labels, mode, params)

    [found, *_] = findings(model_fn, eval_batch_size=None, predict_batch_size=None)
    assert found.rule == "TPU199" and "model_fn returns None" in found.fix
