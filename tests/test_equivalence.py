"""The equivalence ladder: the same model twice climbs it whole; each usual slip is named at its rung."""

import dataclasses
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from lab_utils.equivalence import JaxPort, ladder, train_apart
from lab_utils.equivalence.replicas import _furthest_apart
from lab_utils.estimator import tf, tpu, v1

STEPS = 10


def small_model_fn(features, labels, mode, params):
    logits = v1.layers.dense(v1.layers.dense(features, 8, activation=tf.nn.relu), 3)
    if mode == "infer":
        predictions = {"logits": logits, "probabilities": tf.nn.softmax(logits)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = v1.train.AdamOptimizer(0.01)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.fixture
def small(tmp_path):
    config = tf.estimator.RunConfig(str(tmp_path), tf_random_seed=1)
    return tf.estimator.Estimator(small_model_fn, config=config, params={})


@pytest.fixture(scope="module")
def batches():
    rng = np.random.default_rng(5)
    return [
        (rng.normal(size=(12, 6)).astype("float32"), rng.integers(0, 3, 12).astype("int32"))
        for _ in range(STEPS)
    ]


def small_keras(units=8, activation="relu", rate=0.01, epsilon=1e-8, dropout=0.0):
    layers = [
        keras.Input((6,)),
        keras.layers.Dense(units, activation=activation),
        keras.layers.Dropout(dropout),
        keras.layers.Dense(3),
    ]
    found = keras.Sequential(layers)
    found.compile(
        keras.optimizers.Adam(rate, epsilon=epsilon),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return found


def test_the_same_model_climbs_the_whole_ladder_and_is_left_as_it_was(small, batches):
    port = small_keras()
    before = [each.numpy() for each in port.weights]
    found = ladder(small, port, batches)
    assert found.holds and len(found.losses) == STEPS, found
    assert len(set(found.losses)) == STEPS  # it trains
    for then, now in zip(before, port.weights, strict=True):
        np.testing.assert_array_equal(then, now.numpy())
    assert not list(Path(small.model_dir).iterdir())


@pytest.mark.parametrize(
    ("slip", "rung", "says"),
    [
        ({"units": 9}, 0, r"dense/kernel is \[6, 8\] in the Estimator, .* is \[6, 9\] in Keras"),
        ({"activation": "gelu"}, 1, "outputs differ"),
        ({"epsilon": 1e-2}, 2, "the update of"),
        ({"dropout": 0.5}, 2, r"draws random numbers in Keras \(StatelessRandomUniformV2\)"),
    ],
)
def test_a_slip_is_named_at_its_rung(small, batches, slip, rung, says):
    found = ladder(small, small_keras(**slip), batches)
    assert [each.holds for each in found.rungs] == [True] * rung + [False] + [None] * (3 - rung)
    assert re.search(says, found.rungs[rung].says), found


def test_weights_are_those_of_the_checkpoint_and_may_be_paired_by_name(small, batches):
    small.train(lambda: tf.data.Dataset.from_tensors(batches[0]).repeat(), steps=3)
    port = small_keras()
    paths = [each.path for each in port.trainable_weights]
    ours = ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    names = dict(zip(reversed(ours), reversed(paths), strict=True))
    found = ladder(
        small, port, batches, names=names, prediction="probabilities", output=keras.ops.softmax
    )
    assert found.holds, found
    fresh = ladder(fresh_copy(), port, batches[:1])
    assert abs(found.losses[0][0] - fresh.losses[0][0]) > 1e-3


def fresh_copy():
    return tf.estimator.Estimator(
        small_model_fn, config=tf.estimator.RunConfig(tf_random_seed=1), params={}
    )


def test_errors_say_what_to_do(small, batches):
    with pytest.raises(ValueError, match="at least one"):
        ladder(small, small_keras(), [])
    with pytest.raises(ValueError, match="predicts logits, probabilities, not 'scores'"):
        ladder(small, small_keras(), batches, prediction="scores")
    port = keras.Sequential([keras.Input((6,)), *(keras.layers.Dense(n) for n in (8, 3, 3))])
    with pytest.raises(ValueError, match="call compile first"):
        ladder(small, port, batches)
    port.compile("sgd", "mse")
    assert "only Keras has" in ladder(small, port, batches).rungs[0].says


def linear_model_fn(features, labels, mode, params):
    weights = v1.get_variable("weights", [6, 3], initializer=v1.zeros_initializer())
    logits = features @ weights
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == "eval":

        def metric_fn(labels, logits):
            return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}

        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    assert not params["use_tpu"], "the optimizer is not wrapped"
    optimizer = v1.train.GradientDescentOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def test_copies_without_an_all_reduce_drift_apart_and_their_mean_step_is_that_of_the_joint_model(
    tmp_path, capsys
):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(96, 6)).astype("float32")
    labels = np.int32(features[:, 0] > 0)

    def input_fn(params):
        data = tf.data.Dataset.from_tensor_slices((features, labels)).repeat()
        return data.batch(params["batch_size"], drop_remainder=True)

    estimator = tpu.TPUEstimator(
        linear_model_fn,
        config=tpu.RunConfig(model_dir=str(tmp_path)),
        params={"rate": 0.5},
        use_tpu=False,
        train_batch_size=32,
        eval_batch_size=96,
    )
    found = train_apart(estimator, input_fn, input_fn, cores=4, steps=3)
    assert found.weight == "weights" and found.values.shape == (4, 4)
    # A step of gradient descent is linear: the first one of the joint model is the mean of the copies'.
    assert found.values[1].mean() == pytest.approx(found.joint_values[1], rel=1e-5)
    spread = np.ptp(found.values, axis=1)
    assert spread[0] == 0 and spread[1] > 1e-4 and spread[3] > spread[1]
    assert found.metrics["accuracy"].shape == (4,) and found.joint_metrics["accuracy"] > 0.8
    assert not list(tmp_path.iterdir())
    found.draw()
    assert "with an all-reduce" in capsys.readouterr().out


def test_a_keras_model_on_jax_climbs_the_ladder_too(request):
    """The first test again, in a process whose Keras is on JAX."""
    pytest.importorskip("jax")
    test = (
        f"{__file__}::{test_the_same_model_climbs_the_whole_ladder_and_is_left_as_it_was.__name__}"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", test],
        cwd=request.config.rootpath,
        env=os.environ | {"TESTS_ON_JAX": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]


def small_step(rate=0.01, decay=1.0):
    """The small model in JAX, with Adam as optax has it, whose epsilon is TensorFlow's."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    adam = optax.adam(rate, eps=1e-8)

    def logits_of(weights, features):
        hidden = jax.nn.relu(features @ weights["dense/kernel"] + weights["dense/bias"])
        return hidden @ weights["dense_1/kernel"] + weights["dense_1/bias"]

    def loss_of(weights, features, labels):
        logits = logits_of(weights, features)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, features, labels):
        loss, gradients = jax.value_and_grad(loss_of)(state["weights"], features, labels)
        updates, slots = adam.update(gradients, state["slots"])
        weights = jax.tree.map(lambda w, u: decay * w + u, state["weights"], updates)
        return {"weights": weights, "slots": slots}, loss

    shapes = {"dense/kernel": (6, 8), "dense/bias": 8, "dense_1/kernel": (8, 3), "dense_1/bias": 3}
    weights = {name: jax.numpy.ones(shape) for name, shape in shapes.items()}
    state = {"weights": weights, "slots": adam.init(weights)}
    return JaxPort(step, lambda state, x: logits_of(state["weights"], x), state, untrained="")


def test_a_step_in_jax_climbs_the_ladder_and_its_state_is_left_as_it_was(small, batches):
    port = small_step()
    found = ladder(small, port, batches)
    assert found.holds and len(set(found.losses)) == STEPS, found
    np.testing.assert_array_equal(port.state["weights"]["dense/bias"], np.ones(8))


def test_a_step_in_jax_with_a_slip_is_named_at_its_rung(small, batches):
    found = ladder(small, small_step(decay=0.999), batches)
    assert [each.holds for each in found.rungs] == [True, True, False, None], found
    assert "the update of dense" in found.rungs[2].says


def test_a_state_without_the_entry_is_refused(small, batches):
    port = dataclasses.replace(small_step(), untrained="averages")
    with pytest.raises(ValueError, match="the state has weights, slots, but no entry 'averages'"):
        ladder(small, port, batches)


def test_the_weight_that_is_shown_moves_on_every_core():
    """A unit that gives 0 for all examples of one core stands still there."""
    still, moves = [0.0, 0.0, 0.0], [0.0, 0.1, 0.2]
    copies = [(still, moves), ([0.0, 5.0, 9.0], [0.0, 0.3, 0.5])]
    values = [
        [{"weight": np.array([first[step], second[step]])} for first, second in copies]
        for step in range(3)
    ]
    assert _furthest_apart(values, ["weight"]) == ("weight", (1,))
