"""Steps with a TPU's matmuls: what is rounded, what is told of it, and programs that are left alone."""

import base64
import json
import re
from importlib import resources

import jsonschema
import numpy as np
import pytest
from dry_run_models import CLASSES, ROWS, make, reader, run_program, train_spec
from rules import RIGHT, WRONG, rights, wrong_run  # noqa: F401

from lab_utils.dry_run import dry_run
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.records import Numerics
from lab_utils.dry_run.run import numerics, precision
from lab_utils.estimator import tf, v1

jax = pytest.importorskip("jax")
jnp = jax.numpy
SCHEMA = resources.files("lab_utils.dry_run.report").joinpath("schema.json")


def _hlo(function, *shapes, dtype="float32"):
    from lab_utils.dry_run.private import jax as _jax

    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return _jax.hlo_of(jax.jit(function).lower(*arguments).as_text())


def _on_tpu(function, *arrays):
    from lab_utils.dry_run.private import jax as _jax

    hlo = precision.as_on_tpu(_hlo(function, *(array.shape for array in arrays)))
    devices = jax.devices("cpu")[:1]
    executable = _jax.compile_hlo(hlo, devices, load=True)
    return np.asarray(_jax.execute(executable, [[jnp.asarray(a)] for a in arrays], devices)[0][0])


def _bfloat16(array):
    return np.asarray(jnp.asarray(array).astype(jnp.bfloat16).astype(jnp.float32))


RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal(shape).astype(np.float32) for shape in ((8, 16), (16, 4)))


def test_a_matmul_takes_operands_rounded_to_bfloat16():
    """The digits are those of a TPU, as published in github.com/jax-ml/jax/issues/9973."""
    x = np.array([[0.3744, 0.1656], [0.4707, 0.1663]], np.float32)
    y = np.array([[0.3946, 0.1186], [0.1569, 0.3145]], np.float32)
    wanted = np.array([[0.17405128, 0.09669876], [0.21180916, 0.10805416]], np.float32)
    np.testing.assert_array_equal(_on_tpu(jnp.dot, x, y), wanted)


def test_more_passes_give_more_digits():
    exact = A.astype(np.float64) @ B
    off = [
        np.abs(_on_tpu(lambda a, b, p=p: jnp.dot(a, b, precision=p), A, B) - exact).max()
        for p in ("default", "high", "highest")
    ]
    assert 1e-3 < off[0] < 0.1
    assert 1e-7 < off[1] < 1e-3 * off[0] * 10
    assert off[2] < 1e-6


def test_a_convolution_is_rounded_too():
    image, kernel = A.reshape(1, 8, 4, 4), B.reshape(2, 2, 4, 4)

    def convolve(x, k):
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=layout)

    wanted = convolve(_bfloat16(image), _bfloat16(kernel))
    np.testing.assert_allclose(_on_tpu(convolve, image, kernel), wanted, rtol=1e-5, atol=1e-6)
    assert np.abs(_on_tpu(convolve, image, kernel) - convolve(image, kernel)).max() > 1e-4


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("ij,j->i", [(8, 16), (16,)]),
        ("ij,jk->ik", [(1, 16), (16, 4)]),
        ("bj,bj->b", [(8, 16), (8, 16)]),
        ("ij,jk->ik", [(8, 1), (1, 4)]),
    ],
)
def test_products_of_vectors_stay_in_float32(formula, shapes):
    assert not precision.products(_hlo(lambda a, b: jnp.einsum(formula, a, b), *shapes))


def test_bfloat16_operands_stay_as_they_are():
    assert not precision.products(_hlo(jnp.dot, (8, 16), (16, 4), dtype="bfloat16"))


def test_a_matmul_in_a_loop_is_rounded():
    def loop(a, b):
        return jax.lax.fori_loop(0, 3, lambda _, x: jnp.tanh(x @ b @ b.T), a)

    assert len(precision.products(_hlo(loop, (8, 16), (16, 4)))) == 2


def test_another_order_keeps_examples_and_labels_together():
    features = np.arange(24).reshape(3, 2, 4)
    batches = [[feature, feature * 10] for feature in features]
    dealt = numerics.in_another_order(batches)
    assert [batch[0].shape for batch in dealt] == [(2, 4)] * 3
    assert all((batch[0] * 10 == batch[1]).all() for batch in dealt)
    assert sorted(np.ravel([batch[0] for batch in dealt])) == list(range(24))
    assert (np.stack([batch[0] for batch in dealt]) != features).any()


def test_a_report_tells_and_draws_it():
    [wrong] = [port for port in WRONG if port.rule == "TPU409"]
    port = wrong.make(True)
    stages = ("trace", "read", "run")
    report = dry_run(
        port.estimator, port.input_fn, stages=stages, numerics=True, steps=4, progress=False
    )
    [found] = report.findings
    assert found.rule == "TPU409" and "tf.matmul" in found.where
    assert len(report.numerics.tpu_losses) == 4
    assert report.numerics.tpu_losses[0] > 2 * report.numerics.losses[0]
    assert "beyond the steps' own noise" in " ".join(str(report).split())
    page = report._repr_html_()
    [drawn] = re.findall(r"svg\+xml;base64,([^\"]+)", page)
    assert base64.b64decode(drawn).count(b"<polyline") == 2 and "dashed" in page
    written = json.loads(report.to_json())
    jsonschema.validate(written, json.loads(SCHEMA.read_text()))
    assert len(written["numerics"]["losses"]) == 4
    assert any("beyond matmuls" in said for said in report.not_checked)


def test_without_being_asked_nothing_is_run_for_it():
    [wrong] = [port for port in WRONG if port.rule == "TPU409"]
    port = wrong.make(True)
    report = dry_run(port.estimator, port.input_fn, stages=["trace", "run"], progress=False)
    assert report.numerics is None and not report.findings
    assert any("numerics=True" in said for said in report.not_checked)


def test_steps_that_are_not_run_are_told():
    [wrong] = [port for port in WRONG if port.rule == "TPU409"]
    port = wrong.make(True)
    report = dry_run(port.estimator, port.input_fn, stages=["trace"], numerics=True, progress=False)
    assert report.numerics is None
    assert any("numerics=True asks for" in said for said in report.not_checked)


FALLING = [2.0, 1.6, 1.2, 0.8]
HURT = {
    "another first loss": Numerics(FALLING, [3.0, 2.6, 2.2, 1.8], FALLING),
    "a loss that stalls": Numerics(FALLING, [2.0, 1.95, 1.9, 1.9], FALLING),
    "a loss that is lost": Numerics(FALLING, [2.0, float("nan"), 1.0, 1.0], FALLING),
    "other weights": Numerics([], [], [], 0.7, 0.1),
}
UNHURT = {
    "last digits": Numerics(FALLING, [2.001, 1.602, 1.199, 0.81], FALLING, 0.02, 0.0),
    "less than noise": Numerics(FALLING, [2.4, 1.6, 1.2, 0.8], [1.0, 2.0, 0.5, 0.9], 0.7, 0.9),
    "a loss that hardly falls": Numerics([2.0, 1.99], [2.001, 2.001], [2.0, 1.99]),
    "no loss in float32": Numerics([float("nan")], [float("nan")], [float("nan")]),
    "nothing to see": Numerics([], [], []),
}


@pytest.mark.parametrize("case", HURT)
def test_what_matters_is_told(case):
    assert numerics.hurt(HURT[case])


@pytest.mark.parametrize("case", UNHURT)
def test_what_does_not_matter_is_not(case):
    assert not numerics.hurt(UNHURT[case])


@pytest.mark.rotating(20)
@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.__name__)
def test_a_right_port_is_not_hurt(right):
    port = right()
    if port.estimator is None:
        pytest.skip("a program with a main of its own")
    stages = ("trace", "run")
    report = dry_run(port.estimator, port.input_fn, stages=stages, numerics=True, progress=False)
    assert not [found for found in report.findings if found.rule == "TPU409"], report.numerics
    assert report.numerics or any(
        "rounding" in said or "run so" in said for said in report.not_checked
    )


POINTS = np.random.default_rng(0).normal(size=(256, 16)).astype(np.float32)
KINDS = np.random.default_rng(0).integers(0, 4, 256).astype(np.int32)


class Uncorrelated(tf.keras.layers.Layer):
    """Adds how far the columns, moved by 100, are from having no covariance."""

    def call(self, rows):
        moved = rows + 100.0
        squares = tf.matmul(moved, moved, transpose_a=True)  # of large numbers
        mean = tf.reduce_mean(moved, 0)
        count = tf.cast(tf.shape(rows)[0], tf.float32)
        covariance = squares / count - mean[:, None] * mean
        self.add_loss(tf.reduce_mean((covariance - tf.eye(4)) ** 2))
        return rows


class OfOneVariance(tf.keras.layers.Layer):
    """The same of the variances only, E[x^2] - E[x]^2, which are no matmul's."""

    def call(self, rows):
        moved = rows + 100.0
        variance = tf.reduce_mean(moved**2, 0) - tf.reduce_mean(moved, 0) ** 2
        self.add_loss(tf.reduce_mean((variance - 0.25) ** 2))
        return rows


def trained(*layers, rate=0.01):
    """The report on a Keras model of these layers."""
    keras = tf.keras
    model = keras.Sequential([keras.layers.Input((16,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(rate), loss)
    return asked(model)


def asked(subject):
    examples = tf.data.Dataset.from_tensor_slices((POINTS, KINDS))
    batches = examples.batch(64, drop_remainder=True).repeat()
    options = {"stages": ("trace", "run"), "numerics": True, "steps": 4, "progress": False}
    return dry_run(subject, batches, "v2:2x2", **options)


def test_a_keras_model_that_takes_differences_of_large_products_is_told_at_the_line():
    report = trained(tf.keras.layers.Dense(4), Uncorrelated(), rate=0.001)
    [found] = [found for found in report.findings if found.rule == "TPU409"]
    assert "of large numbers" in found.where


@pytest.mark.parametrize("more", [[], [OfOneVariance()]], ids=["two layers", "a variance"])
def test_a_keras_model_whose_matmuls_hurt_nothing_is_not(more):
    layers = tf.keras.layers
    report = trained(layers.Dense(32, "relu"), layers.Dense(4), *more)
    assert not [found for found in report.findings if found.rule == "TPU409"]
    assert 0 < report.numerics.tpu_loss < report.numerics.other_loss


def test_updates_that_are_lost_in_bfloat16_are_told_with_the_variable():
    layers = tf.keras.layers
    few_digits = {"dtype": "bfloat16", "kernel_initializer": "ones", "use_bias": False}
    logits = layers.Activation("linear", dtype="float32")
    report = trained(layers.Dense(4, **few_digits), logits, rate=1e-4)
    [found] = report.findings
    assert found.rule == "TPU408" and "kernel is bfloat16" in found.fix


@pytest.mark.parametrize("precise", [False, True])
def test_a_plain_function(precise):
    weights = tf.Variable(np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32))

    def step(points, kinds):
        with tf.GradientTape() as tape:
            if precise:
                logits = tf.matmul(points, weights)
            else:
                logits = tf.matmul(points + 1000, weights) - 1000 * tf.reduce_sum(weights, 0)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(kinds, logits)
            loss = tf.nn.compute_average_loss(losses)
        gradient = tape.gradient(loss, weights)
        gradient = tf.distribute.get_replica_context().all_reduce("sum", gradient)
        weights.assign_sub(0.01 * gradient)
        return loss

    report = asked(step)
    assert len(report.numerics.tpu_losses) == 4
    found = [found for found in report.findings if found.rule == "TPU409"]
    assert bool(found) != precise
    assert all("points + 1000" in each.where for each in found)


def test_random_numbers_of_each_run_are_told():
    program = lower_estimator(make(noisy), reader((ROWS, CLASSES)), cores=2)
    assert program.random
    ran = run_program(program, steps=2, on_tpu=True)
    assert ran.numerics is None
    assert any("random numbers" in said and "rounding" in said for said in ran.not_compared)


def noisy(features, labels, mode, params):
    noise = tf.random.normal(tf.shape(features))
    logits = v1.layers.dense(features + noise, 3)
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    return train_spec(mode, loss, params)
