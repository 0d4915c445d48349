"""Eight virtual cores: whether they agree, and whether they find the loss that one core finds."""

import importlib.util

import numpy as np
import pytest
from dry_run_models import CLASSES, MODELS, ROWS, classify, dense, make, reader, train_spec, v1

from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.run.stage import run_program
from lab_utils.estimator import tf

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed here"
)
DATA = reader((ROWS, CLASSES))


def run(model_fn, data=DATA, *, compare=True, steps=3, **arguments):
    estimator = make(model_fn, **arguments)
    one = lower_estimator(estimator, data, cores=1) if compare else None
    return run_program(lower_estimator(estimator, data, cores=8), one_core=one, steps=steps)


def linear(loss_of, optimizer=None):
    def model_fn(features, labels, mode, params):
        logits = v1.layers.dense(features, 3)
        rate = v1.train.GradientDescentOptimizer(0.01)
        return train_spec(mode, loss_of(logits, labels), params, optimizer or rate)

    return model_fn


def test_a_right_port_agrees_with_one_core():
    result = run(dense)
    assert (
        result.findings == []
        and result.notes == result.not_compared == []
        and result.disagreements == []
    )
    assert len(result.losses) == 3 and len(result.losses[0]) == 8
    assert len(set(result.losses[0])) == 8  # each core has its own examples
    means = [np.mean(losses) for losses in result.losses]
    np.testing.assert_allclose(means, result.one_core_losses, rtol=1e-5)


def test_without_cross_shard_optimizer_the_cores_drift():
    result = run(dense, compare=False, params={"cross_shard": False})
    [found] = result.findings
    assert found.rule == "TPU401" and "dense/kernel" in found.why
    assert result.disagreements[0].step == 1
    assert {"dense/kernel", "dense/kernel/Adam"} <= {e.variable for e in result.disagreements}


def test_batch_statistics_differ_by_right_and_random_numbers_are_not_compared():
    model_fn, data = MODELS["batch_norm"]
    result = run(model_fn, reader(data), steps=2)
    assert result.findings == [] and result.one_core_losses == []
    assert any("moving_mean" in note for note in result.notes)
    result = run(MODELS["dropout"][0], steps=2)
    assert result.findings == [] and "random" in result.not_compared[0]


@pytest.mark.parametrize("kind", ["summed loss", "summed gradients"])
def test_a_sum_where_a_mean_belongs_gives_another_loss(kind):
    def summed(logits, labels):
        return (
            8 * classify(logits, labels) if logits.shape[0] == 8 else 64 * classify(logits, labels)
        )

    def model_fn(features, labels, mode, params):
        loss = classify(v1.layers.dense(features, 3), labels)
        optimizer = v1.train.GradientDescentOptimizer(0.05)
        optimizer = v1.tpu.CrossShardOptimizer(optimizer, reduction="weighted_sum")
        return train_spec(mode, loss, {"use_tpu": False}, optimizer)

    result = run(linear(summed) if kind == "summed loss" else model_fn)
    [found] = result.findings
    assert found.rule == "TPU403"
    assert ("step 1" in found.why) == (kind == "summed loss")


def test_a_loss_or_a_variable_that_is_not_finite():
    loss = linear(lambda logits, labels: tf.math.log(tf.reduce_min(logits) - 1e9))
    assert [each.rule for each in run(loss, compare=False, steps=1).findings] == ["TPU402"]
    gradient = linear(lambda logits, labels: tf.reduce_mean(tf.sqrt(0 * logits)))
    [found] = run(gradient, compare=False, steps=1).findings
    assert found.rule == "TPU405" and "dense/" in found.why and "step 1" in found.why


def test_the_same_batch_for_all_cores_and_input_that_ends():
    def same(params):
        data = tf.data.Dataset.from_tensor_slices((ROWS[:8], CLASSES[:8])).repeat(16)
        return data.batch(params["batch_size"], drop_remainder=True)

    result = run(linear(classify), same, compare=False)
    rules = {each.rule: each for each in result.findings}
    assert rules.keys() == {"TPU404", "TPU407"}
    assert "core 0" in rules["TPU404"].why and "2 batches" in rules["TPU407"].why
    assert len(result.losses) == 2


def test_a_step_that_changes_nothing():
    optimizer = v1.train.GradientDescentOptimizer(0.0)
    result = run(linear(classify, optimizer), compare=False, steps=2)
    assert [each.rule for each in result.findings] == ["TPU408"]


def test_gradients_gathered_over_more_steps_than_were_run_are_no_fault():
    """The sums over the cores lie in a branch, of which TensorFlow knew another body before."""

    def model_fn(features, labels, mode, params):
        loss = classify(v1.layers.dense(features, 3), labels)
        step, kernels = v1.train.get_global_step(), v1.trainable_variables()
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        zeros = v1.zeros_initializer()
        held = [
            v1.get_variable(f"held_{n}", each.shape, initializer=zeros, trainable=False)
            for n, each in enumerate(kernels)
        ]
        added = [
            sum_.assign_add(g) for sum_, g in zip(held, tf.gradients(loss, kernels), strict=True)
        ]

        def apply():
            with tf.control_dependencies(
                [optimizer.apply_gradients(zip(held, kernels, strict=True))]
            ):
                return tf.group(*[each.assign(tf.zeros_like(each)) for each in held])

        with tf.control_dependencies(added):
            done = tf.cond(tf.equal(step % 4, 3), apply, tf.no_op)
        with tf.control_dependencies([done]):
            train_op = v1.assign_add(step, 1).op
        return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    result = run(model_fn, compare=False)
    assert result.findings == []
    assert any("held_0 did" in note for note in result.notes)
    assert len(run(model_fn, compare=False, steps=4).losses) == 4
