"""Steps of JAX with a TPU's matmuls: what hurts one, what mends it, and what is left alone."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from lab_utils.dry_run import dry_run

jax = pytest.importorskip("jax")
jnp = jax.numpy
HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(3)
POINTS = (RNG.normal(size=(32, 16)) + 101).astype(np.float32)
LABELS = RNG.integers(0, 4, 32)
CENTRES = RNG.uniform(100, 102, (4, 16)).astype(np.float32)
WEIGHTS = RNG.normal(scale=0.1, size=(16, 4)).astype(np.float32)


def cross_entropy(logits, labels):
    return -jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels].mean()


def distances(precision=None):
    """A loss of large squares whose sum is small."""

    def loss(centres, points, labels):
        between = jnp.matmul(points, centres.T, precision=precision)  # the large products
        squares = (points**2).sum(1, keepdims=True) + (centres**2).sum(1)
        return cross_entropy(2 * between - squares, labels)

    return loss


def linear(dtype):
    def loss(weights, points, labels):
        rows = (points - 101).astype(dtype)
        return cross_entropy((rows @ weights.astype(dtype)).astype(jnp.float32), labels)

    return loss


def descending(loss, **options):
    """A jitted step of gradient descent."""

    def step(weights, points, labels):
        value, gradient = jax.value_and_grad(loss)(weights, points, labels)
        return weights - 0.01 * gradient, value

    return jax.jit(step, **options)


def asked(step, weights=CENTRES, steps=6):
    arguments = (weights, POINTS, LABELS)
    options = {"stages": ["run"], "numerics": True, "steps": steps, "progress": False}
    return dry_run(step, arguments, "v5e:2x4", **options)


def detail(report):
    return next(stage.detail for stage in report.stages if stage.stage == "run")


def test_a_sum_of_large_products_is_told_at_its_line():
    report = asked(descending(distances()))
    [found] = report.findings
    assert found.rule == "TPU409" and "the large products" in found.where
    assert "Precision.HIGHEST" in found.fix and "draw of examples" in found.why
    assert report.numerics.tpu_losses[0] > 5 * report.numerics.losses[0]
    assert "beyond the steps' own noise" in detail(report)
    [drawn] = re.findall(r"svg\+xml;base64,([^\"]+)", report._repr_html_())
    assert base64.b64decode(drawn).count(b"<polyline") == 2


@pytest.mark.parametrize("precision", ["highest", jax.lax.Precision.HIGHEST])
def test_more_passes_at_that_matmul_mend_it(precision):
    report = asked(descending(distances(precision)))
    assert not report.findings
    assert 0 < report.numerics.tpu_loss < 0.01
    assert "within the steps' own noise" in detail(report)


def test_a_precision_around_the_step_mends_it():
    with jax.default_matmul_precision("highest"):
        assert not asked(descending(distances())).findings
    assert [found.rule for found in asked(descending(distances())).findings] == ["TPU409"]


def test_a_step_that_trains_well_is_left_alone():
    report = asked(descending(linear("float32")), WEIGHTS)
    assert not report.findings
    assert report.numerics.losses != report.numerics.tpu_losses
    assert 0 < report.numerics.tpu_weights < report.numerics.other_weights


def test_products_of_bfloat16_are_the_same_on_a_tpu():
    report = asked(descending(linear("bfloat16")), WEIGHTS)
    assert report.numerics.tpu_losses == report.numerics.losses
    assert report.numerics.tpu_weights == 0 < report.numerics.other_weights


def test_a_variance_that_is_no_matmuls_is_left_alone():
    def loss(weights, points, labels):
        rows = (points - 101) @ weights + 100
        variance = (rows**2).mean(0) - rows.mean(0) ** 2
        return ((variance - 0.25) ** 2).mean()

    report = asked(descending(loss), np.eye(16, dtype=np.float32))
    assert not report.findings and 0 < report.numerics.tpu_loss < report.numerics.other_loss


def test_updates_that_are_lost_in_bfloat16_are_told():
    def loss(weights, points, labels):
        return cross_entropy(
            ((points - 101).astype("bfloat16") @ weights).astype("float32"), labels
        )

    @jax.jit
    def step(weights, points, labels):
        value, gradient = jax.value_and_grad(loss)(weights, points, labels)
        return weights - jnp.bfloat16(1e-4) * gradient, value

    [found] = asked(step, jnp.ones((16, 4), "bfloat16")).findings
    assert found.rule == "TPU408" and "is bfloat16" in found.fix


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_what_a_key_draws_is_the_same_in_each_run(kind):
    @jax.jit
    def step(state, points, labels):
        weights, key = state
        key, used = jax.random.split(key)

        def loss(weights):
            kept = jax.random.bernoulli(used, 0.5, points.shape)
            return cross_entropy(jnp.where(kept, points - 101, 0) @ weights, labels)

        value, gradient = jax.value_and_grad(loss)(weights)
        return (weights - 0.1 * gradient, key), value

    report = asked(step, (WEIGHTS, jax.random.key(0, impl=kind)))
    assert not report.findings
    assert len(set(report.numerics.losses)) == 6  # each step drops others
    assert 0 < report.numerics.tpu_loss < 0.01


MAPPED = """
import jax, json, sys
from jax.sharding import NamedSharding, PartitionSpec as P
import test_dry_run_numerics_jax as cases

mesh = jax.sharding.Mesh(cases.np.array(jax.devices()), ("batch",))
kind = sys.argv[1]
loss = cases.distances("highest" if "mended" in sys.argv else None)
arguments = (cases.CENTRES, cases.POINTS, cases.LABELS)

def step(weights, points, labels):
    value, gradient = jax.value_and_grad(loss)(weights, points, labels)
    if kind != "sharded":
        value, gradient = jax.lax.pmean((value, gradient), "batch")
    return weights - 0.01 * gradient, value

if kind == "sharded":
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("batch"))
    step = jax.jit(step, in_shardings=(whole, split, split))
elif kind == "shard_map":
    specs = {"in_specs": (P(), P("batch"), P("batch")), "out_specs": P()}
    step = jax.jit(jax.shard_map(step, mesh=mesh, check_vma=False, **specs))
else:
    step = jax.pmap(step, "batch")
    arguments = (cases.np.stack([cases.CENTRES] * 8),
                 cases.POINTS.reshape(8, 4, 16), cases.LABELS.reshape(8, 4))
options = {"stages": ["run"], "numerics": True, "steps": 3, "progress": False}
report = cases.dry_run(step, arguments, "v5e:2x4", **options)
print(json.dumps([[[f.rule, f.where] for f in report.findings], report.numerics.losses]))
"""
KERAS = """
import jax, json, keras, sys
import test_dry_run_numerics_jax as cases

class Distances(keras.layers.Layer):
    def build(self, shape):
        between = keras.initializers.RandomUniform(100, 102, seed=0)
        self.centres = self.add_weight(shape=(4, shape[-1]), initializer=between)

    def call(self, points):
        with jax.default_matmul_precision(sys.argv[1]):
            between = keras.ops.matmul(points, keras.ops.transpose(self.centres))
        squares = keras.ops.sum(points**2, 1, keepdims=True)
        return 2 * between - squares - keras.ops.sum(self.centres**2, 1)

keras.distribution.set_distribution(keras.distribution.DataParallel())
model = keras.Sequential([Distances()])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
options = {"stages": ["run"], "numerics": True, "steps": 3, "progress": False}
report = cases.dry_run(model, (cases.POINTS, cases.LABELS), "v5e:2x4", **options)
print(json.dumps([[[f.rule, f.where] for f in report.findings], report.numerics.losses]))
"""


def told(tmp_path, program, *arguments, **variables):
    """Findings and losses, from a process of its own."""
    file = tmp_path / "program.py"
    file.write_text(program)
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    paths = {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}
    command = [sys.executable, str(file), *arguments]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | flags | paths | variables,
        check=False,
    )
    assert not ran.returncode, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["sharded", "shard_map", "pmap"])
def test_a_step_of_several_cores_is_told_of(kind, tmp_path):
    findings, losses = told(tmp_path, MAPPED, kind)
    [(rule, where)] = findings
    assert rule == "TPU409" and "the large products" in where
    assert len(losses) == 3


def test_a_mended_step_of_several_cores_is_not(tmp_path):
    findings, losses = told(tmp_path, MAPPED, "shard_map", "mended")
    assert not findings and len(losses) == 3


@pytest.mark.parametrize(("precision", "rules"), [("default", ["TPU409"]), ("highest", [])])
def test_keras_on_jax(precision, rules, tmp_path):
    findings, losses = told(tmp_path, KERAS, precision, KERAS_BACKEND="jax")
    assert [rule for rule, _ in findings] == rules
    assert all("between = keras.ops.matmul" in where for _, where in findings)
    assert len(losses) == 3


PROGRAM = """
import jax
import test_dry_run_numerics_jax as cases

step, weights = cases.descending(cases.distances()), cases.CENTRES
with jax.default_matmul_precision("PRECISION"):
    for _ in range(5):
        weights, loss = step(weights, cases.POINTS + 0, cases.LABELS + 0)
"""


@pytest.mark.parametrize(("precision", "is_hurt"), [("default", True), ("highest", False)])
def test_a_precision_around_the_loop_of_a_program_is_seen(precision, is_hurt, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM.replace("PRECISION", precision))
    command = [sys.executable, "-m", "lab_utils.dry_run", "--main", "train.py", "--numerics"]
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    ran = subprocess.run(
        [*command, "--topology", "v5e:2x4", "--stages", "run"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
    )
    assert ("TPU409" in ran.stdout) == is_hurt
    assert "With a TPU's matmuls" in " ".join(ran.stdout.split()), ran.stdout + ran.stderr
