"""Eight virtual cores: whether they agree, and whether they find the loss that one core finds."""

import importlib
import importlib.util

import numpy as np
import pytest
from dry_run_models import (
    CLASSES,
    MODELS,
    ROWS,
    classify,
    dense,
    make,
    reader,
    run_program,
    tpu,
    train_spec,
    v1,
)
from rules.judging import jobs  # noqa: F401

from lab_utils.common.source import Place
from lab_utils.dry_run import dry_run
from lab_utils.dry_run.frontends.estimator import EstimatorWorkload, lower_estimator
from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.frontends.keras import KerasWorkload
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.run import stage as run_stage
from lab_utils.dry_run.workload import Call, Inputs, Observed
from lab_utils.estimator import tf

tpu_ops = importlib.import_module("tensorflow.python.tpu.ops.tpu_ops")
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed here"),
    pytest.mark.usefixtures("jobs"),
]
DATA = reader((ROWS, CLASSES))


def run(model_fn, data=DATA, *, compare=True, steps=3, **arguments):
    estimator = make(model_fn, **arguments)
    one = lower_estimator(estimator, data, cores=1) if compare else None
    return run_program(lower_estimator(estimator, data, cores=8), one_core=one, steps=steps)


def test_a_right_port_agrees_with_one_core():
    result = run(dense)
    assert result.findings == result.notes == result.not_compared == []
    assert len(result.losses) == 3 and len(result.losses[0]) == 8
    assert len(set(result.losses[0])) == 8  # each core has its own examples
    means = [np.mean(losses) for losses in result.losses]
    np.testing.assert_allclose(means, result.one_core_losses, rtol=1e-5)


def test_batch_statistics_are_compared_roughly_and_random_numbers_as_they_come_not_at_all():
    model_fn, data = MODELS["batch_norm"]
    result = run(model_fn, reader(data), steps=2)
    assert result.findings == [] and "roughly" in result.not_compared[0]
    assert len(result.one_core_losses) == 1 and len(result.losses) == 2
    assert any("moving_mean" in note for note in result.notes)
    result = run(MODELS["dropout"][0], steps=2)
    assert result.findings == [] and "random" in result.not_compared[0]


def noisy(reduce):
    """Dropout, noise of each kind along the batch and along another axis, and `reduce` for the loss."""

    def model_fn(features, labels, mode, params):
        count = features.shape[0]
        net = features + 0.1 * tf.random.normal([count, 6]) + tf.random.uniform([6])
        net = v1.layers.dropout(v1.layers.dense(net, 16), 0.5, training=True)
        net += tf.transpose(tf.random.truncated_normal([16, count]))
        net += tf.cast(tf.random.uniform([count, 1], 0, 3, tf.int32), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, v1.layers.dense(net, 3))
        return train_spec(mode, reduce(losses), params)  # the sum

    return model_fn


@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_sum], ids=["mean", "sum"])
def test_random_numbers_are_the_same_for_an_example_on_many_cores_and_on_one(reduce):
    workload = EstimatorWorkload(make(noisy(reduce)), Inputs(reader((ROWS, CLASSES))))
    many, one = workload.lower_alike(8, 64)
    assert many.random == one.random == []
    result = run_program(many, steps=2, one_core=one)
    assert result.not_compared == [] and len(set(result.losses[0])) == 8
    share = 8 if reduce is tf.reduce_sum else 1
    np.testing.assert_allclose(
        share * np.mean(result.losses[0]), result.one_core_losses[0], rtol=1e-5
    )
    assert [found.rule for found in result.findings] == (["TPU403"] if share == 8 else [])
    assert all("# the sum" in found.place.code for found in result.findings)


def test_a_step_of_ones_own_draws_the_same_for_an_example_but_what_it_draws_for_a_cores_share():
    weights = tf.Variable(tf.ones([6, 3]))
    rows = np.random.default_rng(0).normal(size=[64, 6]).astype(np.float32)

    def step(rows):
        return tf.reduce_mean(tf.square(tf.nn.dropout(rows @ weights, 0.5)))

    many, one = FunctionWorkload(step, rows).lower_alike(8, 64)
    assert many.random == one.random == []
    result = run_program(many, steps=1, one_core=one)
    np.testing.assert_allclose(np.mean(result.losses[0]), result.one_core_losses[0], rtol=1e-5)
    many, _ = FunctionWorkload(
        lambda rows: step(rows) + tf.reduce_sum(tf.random.normal([8, 4])), rows
    ).lower_alike(8, 64)
    assert len(many.random) == 1


def lower_with_groups(groups, cores):
    def step(rows):
        return tf.reduce_sum(v1.tpu.cross_replica_sum(v1.tpu.cross_replica_sum(rows, groups)))

    return FunctionWorkload(step, np.ones([32, 2], np.float32)).lower(cores)


@pytest.mark.parametrize("groups", [[[0, 1]], [[0, 1], [2, 3], [4, 5], [6, 7]]])
def test_cores_that_groups_name_are_told_beside_the_sums_over_all(groups):
    assert lower_with_groups(groups, 8).named_cores == 2 * len(groups)
    last = 2 * len(groups) - 1
    with pytest.raises(CannotLower, match=f"names the cores 0 to {last}, but this") as caught:
        lower_with_groups(groups, 1)  # to compare
    assert caught.value.only_here and "groups" in caught.value.where.code


class TwoOptimizers(tf.keras.Model):
    """The second is of another class than the one that compile is given."""

    def __init__(self, share, norm):
        super().__init__()
        self.share, self.slow = share, tf.keras.optimizers.SGD(0.5)
        self.first, self.second = (tf.keras.layers.Dense(n) for n in (8, 1))
        self.norm = norm()

    def call(self, rows):
        return self.second(self.norm(self.first(rows), training=True))[:, 0]

    def train_step(self, data):
        rows, wanted = data
        with tf.GradientTape() as tape:
            loss = self.share(tf.square(self(rows) - wanted))
        parts = self.first.trainable_variables, self.second.trainable_variables
        for part, gradients, optimizer in zip(
            parts, tape.gradient(loss, parts), (self.optimizer, self.slow), strict=True
        ):
            optimizer.apply_gradients(zip(gradients, part, strict=True))
        return {"mse": loss}


@pytest.mark.parametrize(
    ("share", "rules"),
    [(tf.nn.compute_average_loss, []), (tf.reduce_mean, ["TPU403"])],
    ids=["of all", "own mean"],
)
@pytest.mark.parametrize("norm", ["LayerNormalization", "BatchNormalization"])
def test_gradients_of_an_own_train_step_are_summed_as_under_a_strategy(share, rules, norm):
    rows = np.random.default_rng(0).normal(size=[192, 6]).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((rows, rows[:, 0])).batch(64, drop_remainder=True)
    model = TwoOptimizers(share, getattr(tf.keras.layers, norm))
    model.compile(tf.keras.optimizers.RMSprop(1e-3))
    workload = KerasWorkload(model, data)
    many, one = workload.lower(8), workload.lower(1)
    assert bool(many.batch_statistics) == (norm == "BatchNormalization")
    result = run_program(many, steps=2, one_core=one)
    assert [found.rule for found in result.findings] == rules


def test_a_sum_is_seen_beside_batch_statistics():
    def model_fn(features, labels, mode, params):
        net = v1.layers.batch_normalization(v1.layers.dense(features, 8), training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, v1.layers.dense(net, 3))
        return train_spec(mode, tf.reduce_sum(losses), params)

    assert [found.rule for found in run(model_fn, steps=2).findings] == ["TPU403"]


def test_layer_normalisation_is_no_statistic_of_the_batch():
    def model_fn(features, labels, mode, params):
        net = v1.layers.dense(features, 8)
        mean, variance = tf.nn.moments(net, [-1], keepdims=True)
        net = tf.nn.batch_normalization(net, mean, variance, None, None, 1e-6)
        return train_spec(mode, classify(v1.layers.dense(net, 3), labels), params)

    assert lower_estimator(make(model_fn), DATA, cores=8).batch_statistics == []


# Numbers that a program has written in.


def summed(features, number):
    return v1.tpu.cross_replica_sum(tf.reduce_mean(features, 0)) / number


def of_all_cores(number):
    """Features around the mean of all cores, which the program makes with a number of its own."""

    def model_fn(features, labels, mode, params):
        return dense(features - summed(features, number), labels, mode, params)

    return model_fn


def own_gradients(number, scale=1.0):
    """Gradients that the program divides itself, or not; `scale` stands where a transformer has one."""

    def model_fn(features, labels, mode, params):
        logits = v1.layers.dense(features, 3) * scale
        loss, variables = classify(logits, labels), v1.trainable_variables()
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.MomentumOptimizer(0.01, 0.9))
        gradients = [each / number for each in tf.gradients(loss, variables)]
        step = v1.train.get_or_create_global_step()
        train_op = optimizer.apply_gradients(zip(gradients, variables, strict=True), step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def part_of_the_batch(number):
    def model_fn(features, labels, mode, params):
        logits = v1.layers.dense(features, 3)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return train_spec(mode, tf.reduce_sum(losses) * (1 / number), params)

    return model_fn


def normalised_over_all(average, moments=tf.nn.moments):
    """Statistics of all cores: with `average` of their variances, else of the squares."""

    def model_fn(features, labels, mode, params):
        net = tf.expand_dims(features, 1) * tf.range(1.0, 4.0)[:, None]  # [batch, 3, features]
        count = v1.tpu.cross_replica_sum(1.0)
        mean, variance = moments(net, [0, 1])
        squares = variance if average else variance + tf.square(mean)
        mean, squares = (v1.tpu.cross_replica_sum(each) / count for each in (mean, squares))
        variance = squares if average else squares - tf.square(mean)
        net = tf.nn.batch_normalization(net, mean, variance, None, None, 1e-3)
        return dense(tf.reduce_mean(net, 1), labels, mode, params)

    return model_fn


def by_hand(rows, axes):
    return tf.reduce_mean(rows, axes), tf.math.reduce_variance(rows, axes)


@pytest.mark.parametrize(
    ("model_fn", "number"),
    [
        (of_all_cores(8), "8 at"),
        (of_all_cores(1), None),
        (own_gradients(8), "8 at"),
        (own_gradients(1), None),
        (own_gradients(1, scale=0.125), None),
        (part_of_the_batch(16), "0.0625 at"),
        (part_of_the_batch(32), None),
        (normalised_over_all(average=False), ""),
        (normalised_over_all(average=True), None),
        (normalised_over_all(average=False, moments=by_hand), ""),
        (normalised_over_all(average=True, moments=by_hand), None),
    ],
)
def test_a_number_may_be_that_of_the_cores_and_is_named_then(model_fn, number):
    rows = ROWS + np.float32(np.arange(256)[:, None] // 16)  # the cores' means are apart
    estimator = make(model_fn, batch=128, eval_batch_size=None, predict_batch_size=None)

    def data(params):
        pairs = tf.data.Dataset.from_tensor_slices((rows, CLASSES)).repeat()
        return pairs.batch(params["batch_size"], drop_remainder=True)

    report = dry_run(estimator, data, stages=["run"], progress=False, cache=False)
    assert [each.rule for each in report.findings] == ([] if number is not None else ["TPU403"])
    said = [each for each in report.not_checked if "TPU403" in each]
    assert [number in each and "stands for" in each for each in said] == [True] * bool(number)


@pytest.mark.parametrize(("number", "rules"), [(8.0, []), (1.0, ["TPU403"])])
def test_a_number_of_cores_in_a_loop_of_ones_own(number, rules):
    layer, optimizer = tf.keras.layers.Dense(3), tf.keras.optimizers.SGD(0.1, momentum=0.9)
    layer.build([None, 6])
    optimizer.build(layer.trainable_variables)

    def step(rows, labels):
        with tf.GradientTape() as tape:
            loss = classify(layer(rows), labels) / number
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        return loss

    data = tf.data.Dataset.from_tensor_slices((ROWS, CLASSES)).batch(64, drop_remainder=True)
    report = dry_run(step, data, stages=["run"], progress=False, cache=False)
    assert [each.rule for each in report.findings] == rules


def of_share(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size=64)


def of_own_count(losses):
    """As each core's own mean over the examples that count, of which it has another number."""
    counts = tf.cast(losses < 1.1, tf.float32)
    return tf.reduce_sum(losses * counts) / tf.reduce_sum(counts) * (losses.shape[0] / 64)


@pytest.mark.parametrize(
    ("reduce", "penalty", "rules"),
    [
        (of_share, lambda term: term, ["TPU403"]),
        (of_share, tf.nn.scale_regularization_loss, []),
        (of_own_count, tf.nn.scale_regularization_loss, []),
    ],
    ids=["in full", "scaled", "own averages"],
)
def test_a_small_penalty_of_each_core_is_told_from_averages_of_their_own_examples(
    reduce, penalty, rules
):
    tf.keras.utils.set_random_seed(1)
    layer, optimizer = tf.keras.layers.Dense(3), tf.keras.optimizers.SGD(0.1)
    layer.build([None, 6])
    optimizer.build(layer.trainable_variables)

    def step(rows, labels):
        with tf.GradientTape() as tape:
            loss = reduce(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, layer(rows)))
            loss += penalty(1e-4 * tf.nn.l2_loss(layer.kernel))  # the term
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        return loss

    data = tf.data.Dataset.from_tensor_slices((ROWS, CLASSES)).batch(64, drop_remainder=True)
    report = dry_run(step, data, stages=["run"], progress=False, cache=False)
    assert [each.rule for each in report.findings] == rules and report.verdict == "ready"
    assert all("# the term" in each.place.code for each in report.findings)
    if reduce is of_own_count:
        [run] = [each for each in report.stages if each.stage == "run"]
        assert "its own number of examples" in run.detail


# Data with fewer batches than the run has steps.

FEW = tf.data.Dataset.from_tensor_slices((ROWS, ROWS[:, 0])).take(128)


def few_batches(params):
    data = tf.data.Dataset.from_tensor_slices((ROWS[:128], CLASSES[:128]))
    return data.batch(params["batch_size"], drop_remainder=True)  # two


def mean_of(rows, wanted):
    return tf.reduce_mean(rows[:, 0] - wanted)


@pytest.mark.parametrize(
    ("loop", "calls", "needed"),
    [(2, None, 2), (10, None, 3), (10, {"steps": 2}, 2), (2, {"max_steps": 100}, 3)],
)
def test_a_job_of_tpu_estimator_needs_as_many_batches_as_it_asks_for(loop, calls, needed):
    config = tpu.RunConfig(tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
    workload = EstimatorWorkload(make(dense, config=config), Inputs(few_batches))
    if calls:
        call = Call(Mode.TRAIN, workload.estimator, few_batches, calls, Place("train.py", 1))
        workload.observed = Observed(calls=[call], judged={Mode.TRAIN: call})
    result = run_program(workload.lower(8), steps=3)
    assert result.steps == 2 and result.notes == []
    found = [(each.rule, f"asked for {needed}" in each.why) for each in result.findings]
    assert found == ([("TPU407", True)] if needed > 2 else [])


@pytest.mark.parametrize("kind", ["keras", "a loop", "an example"])
def test_an_epoch_of_keras_or_of_a_loop_is_read_again(kind):
    data = FEW.shuffle(128).batch(64, drop_remainder=True)
    if kind == "keras":
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        workload = KerasWorkload(model, data)
    else:
        workload = FunctionWorkload(mean_of, data if kind == "a loop" else next(iter(data)))
    result = run_program(workload.lower(8), steps=5)
    assert result.steps == 5 and result.findings == []
    assert "The data end after" in result.notes[0]


@pytest.mark.parametrize("batch", [64, 200], ids=["the same again", "no whole batch"])
def test_one_batch_for_ever_is_found_in_a_loop_too_and_data_without_a_batch(batch):
    data = FEW.batch(batch, drop_remainder=True).take(1).repeat()
    result = run_program(FunctionWorkload(mean_of, data).lower(8), steps=3)
    assert [each.rule for each in result.findings] == ["TPU404" if batch == 64 else "TPU407"]


# What this machine can afford.


def test_the_cost_of_a_step_is_told_from_its_program():
    small, large = (lower_estimator(make(dense), DATA, cores=8, global_batch=n) for n in (64, 128))
    flops, written = run_stage.cost(small)
    # Two layers, [8, 6] x [6, 16] and [8, 16] x [16, 3]: forward, and two products each on the way back.
    assert flops == 3 * (2 * 8 * 6 * 16 + 2 * 8 * 16 * 3)
    twice, more = run_stage.cost(large)
    assert twice == 2 * flops and written < more < 2 * written
    model_fn, data = MODELS["recurrent"]
    looped, _ = run_stage.cost(lower_estimator(make(model_fn), reader(data), cores=8))
    # A step of the cell, seven words, and two products each on the way back, whose loop is another.
    assert looped > 3 * 7 * 2 * 8 * 16 * 32


def test_what_is_run_shrinks_to_the_budget(monkeypatch):
    program = lower_estimator(make(dense), DATA, cores=8, global_batch=128)
    flops, _ = run_stage.cost(program)
    for most, plan in (
        (run_stage.MOST_FLOP, run_stage.Plan(8, 16, 3)),
        (2 * flops * 8 * 3 / 4, run_stage.Plan(8, 4, 3)),
        (2 * flops * 2 * 2 / 16, run_stage.Plan(2, 1, 2)),
        (0, None),
    ):
        monkeypatch.setattr(run_stage, "MOST_FLOP", most)
        assert run_stage.affordable(program, 3) == plan
    monkeypatch.undo()
    monkeypatch.setattr(run_stage, "MOST_BYTES", 0)
    assert run_stage.affordable(program, 3) is None
