"""Programs of JAX with a main of their own (tests/jax_mains), unchanged, and with a planted fault."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from absl import app, logging  # noqa: F401  whose flags flagsaver must know, before a program imports them
from absl.testing import flagsaver
from reading import findings_of

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")

from lab_utils.dry_run import dry_run  # noqa: E402
from lab_utils.dry_run.frontends import jax_runs  # noqa: E402
from lab_utils.dry_run.target import CannotJudge, load_main  # noqa: E402

PROGRAMS = Path(__file__).parent / "jax_mains"
TOPOLOGY = f"v5e:{jax.device_count() // 4}x4"
# What the program trains with, how many of its results take the place of arguments, examples a step.
JUDGED = {
    "plain_sgd": ("update", 2, 1),
    "optax_mlp": ("train_step", 13, 128),
    "linen_state": ("train_step", 15, 64),
    "nnx_trainer": ("fit_batch", 16, 64),
    "equinox_mlp": ("make_step", 19, 128),
    "pmap_flax": ("p_train_step", 11, 128),
    "shard_map_sgd": ("train_step", 2, 256),
    "named_sharding": ("train_step", 6, 512),
    "scanned_epochs": ("train_epoch", 7, 20),
    "trainer_method": ("step", 2, 32),
    "two_calls": ("loss_fn", 0, 64),
    "no_gradients": ("improve", 1, 512),
    "no_jit": ("loss", 0, 1),
    "accumulated": ("train_step", 11, 256),
    "explicit_axes": ("descend", 2, 64),
    "constrained": ("advance", 2, 96),
    "scan_alone": ("roll", 2, 500),
    "ahead_of_time": ("improve", 2, 96),
    "several_optimizers": ("step", 2, 64),
    "nnx_whole_data": ("fit", 14, 96),
    "mutable_refs": ("improve", 2, 64),
}


pytestmark = [
    pytest.mark.skipif(
        jax.__version_info__ < (0, 8), reason="jax.pmap is not judged before jax 0.8"
    ),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("flax", "equinox", "optax")),
        reason="not installed: flax, equinox, optax",
    ),
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a program up to its step, with one piece of its text replaced."""
    monkeypatch.chdir(tmp_path)

    def run(name, old="", new="", **options):
        text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
        assert old in text
        (tmp_path / f"{name}.py").write_text(text.replace(old, new, 1))
        return load_main(f"{name}.py", [], jax.device_count(), **options)

    # Flags that a program defines go with it: the same program is run again, from another module.
    with flagsaver.flagsaver():
        yield run


def judged(target, stages=("read", "run"), **options):
    options |= {"observed": target.observed, "cache": False, "progress": False}
    return dry_run(target.subject, target.data, TOPOLOGY, stages=stages, **options)


@pytest.mark.parametrize("name", JUDGED)
def test_a_program_is_stopped_at_its_step_whose_state_and_batch_are_known(name, run, capsys):
    from lab_utils.dry_run.frontends.jax import JaxWorkload

    target = run(name)
    step = target.data
    assert isinstance(step, jax_runs.Step)
    workload = JaxWorkload(target.subject, step, TOPOLOGY)
    function, state, examples = JUDGED[name]
    made = workload.known.built()
    assert (step.name, len(made.state), made.examples) == (function, state, examples)
    assert not findings_of(workload)


# Program, a piece of its text, what stands there instead, and the rule that names it.
JOIN = 'grad = jax.lax.pmean(grad, "batch")'
GRADIENTS = "    loss, grads = jax.value_and_grad(loss_fn)(params)\n"
NNX = """@nnx.jit
def fit_batch(model, optimizer, x, y):
    def loss_fn(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss
"""
FAULTS = {
    "summed": ("pmap_flax", JOIN, 'grad = jax.lax.psum(grad, "batch")', "TPU403"),
    "never joined": ("pmap_flax", f"    {JOIN}\n", "", "TPU245"),
    "joined twice": (
        "shard_map_sgd",
        GRADIENTS,
        "    def own_loss(params):\n"
        "        return jnp.mean((jnp.tanh(x @ params['in']) @ params['out'] - y) ** 2)\n"
        "    loss, grads = jax.value_and_grad(own_loss)(params)\n"
        "    loss = jax.lax.pmean(loss, 'data')\n"
        "    grads = jax.lax.pmean(grads, 'data')\n",
        "TPU403",
    ),
    "a sum": ("pmap_flax", "(logits, onehot).mean()", "(logits, onehot).sum()", "TPU403"),
    "a rate that is static": (
        "plain_sgd",
        "@jax.jit\n",
        "import functools\n@functools.partial(jax.jit, static_argnums=2)\n",
        "TPU243",
    ),
    "a number that Equinox takes as static": (
        "equinox_mlp",
        "opt_state, x, x.prod(1, keepdims=True))",
        "opt_state, x, step + 0.5)",
        "TPU243",
    ),
    "a print": (
        "linen_state",
        "    (loss, new), grads",
        "    jax.debug.print('{}', key)\n    (loss, new), grads",
        "TPU241",
    ),
    "a branch": (
        "linen_state",
        "    return state.apply_gradients(",
        "    if loss > 100:\n        loss = loss / 2\n    return state.apply_gradients(",
        "TPU343",
    ),
    "a logarithm of zero": (
        "plain_sgd",
        "jnp.mean((predict(p, x) - y) ** 2))",
        "jnp.log(0 * jnp.mean(predict(p, x))))",
        "TPU402",
    ),
    "a table from outside": (
        "trainer_method",
        "        grads = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))",
        "        x = x + jnp.asarray(np.ones((2**18, 8), np.float32))[:32]\n"
        "        grads = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))",
        "TPU244",
    ),
    "an op that only a CPU has": (
        "trainer_method",
        "(x @ w - y) ** 2))(params",
        "(x @ w - y) ** 2) + jnp.linalg.eigvals(w @ w.T).real.sum())(params",
        "TPU343",
    ),
    "NNX by jax.jit": ("nnx_trainer", "@nnx.jit", "@jax.jit", "TPU408"),
    "NNX by jax.jit, without a result": (
        "nnx_trainer",
        NNX,
        NNX.replace("@nnx.jit", "@jax.jit").replace("    return loss\n", ""),
        "TPU408",
    ),
    "one key for all cores": (
        "pmap_flax",
        "jax.random.split(rng, jax.local_device_count())",
        "jax_utils.replicate(rng)",
        "TPU258",
    ),
    "no update": ("trainer_method", "self.rate * grads", "0 * grads", "TPU408"),
}
# The line where it is not the first that is planted.
LINES = {"joined twice": "grads = jax.lax.pmean(grads, 'data')", "a sum": JOIN}
LINES["one key for all cores"] = "kept = jax.random.bernoulli("
# Named at the def, or its first decorator, as the whole step is at fault.
OF_THE_STEP = ("TPU243", "TPU244", "TPU245", "TPU402", "TPU408")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_with_its_line(fault, run):
    name, old, new, rule = FAULTS[fault]
    report = judged(run(name, old, new))
    assert [each.rule for each in report.findings] == [rule], str(report)
    (found,) = report.findings
    if rule in OF_THE_STEP:
        assert found.place.line == run(name, old, new).data.where.line
    else:
        assert LINES.get(fault, new.splitlines()[0].strip()) in found.place.code
    if fault == "an op that only a CPU has":
        assert "jnp.linalg.eigh" in found.fix and "pure_callback" in found.fix


MAPPED = ("pmap_flax", "shard_map_sgd")
SPLIT = ("explicit_axes", "constrained", "mutable_refs")  # by XLA


@pytest.mark.parametrize("name", [*MAPPED, *SPLIT, "linen_state", "accumulated", "nnx_whole_data"])
def test_a_right_program_runs_on_virtual_cores_without_a_finding(name, run):
    report = judged(run(name))
    assert report.ready and not report.findings, str(report)
    mapped = name in MAPPED
    cores = jax.device_count() if mapped or name in SPLIT else 1
    assert f"3 steps on {cores} virtual core" in report.stages[3].detail
    assert ("compared with one core's" in report.stages[3].detail) is mapped
    losses = [f.value for f in report.stages[3].figures]
    assert len(losses) == 3 and all(value > 0 for value in losses)


def test_several_steps_are_asked_for_by_name(run):
    with pytest.raises(CannotJudge, match=r"--step NAME:\n  d_step \(.*gan.py:18, .*\n  g_step"):
        run("gan")
    target = run("gan", step="g_step")
    assert target.data.name == "g_step" and len(target.data.pairs) == 4
    with pytest.raises(CannotJudge, match="calls no function train.*"):
        run("gan", step="train")


def test_a_step_is_not_carried_out_and_other_functions_are(run, capsys):
    target = run("optax_mlp", "print(epoch", "raise SystemExit(9)\n        print(epoch")
    assert len(target.data.calls) == jax_runs.CALLS
    program = (
        "import jax, jax.numpy as jnp\n"
        "scale = jax.jit(lambda x: (x - x.mean()) / x.std())\n"
        "rows = scale(jnp.arange(8.0)[:, None])\n"
        "assert abs(float(rows.std()) - 1) < 1e-5\n"
        "step = jax.jit(lambda w, x: (w - jax.grad(lambda w: jnp.mean(x @ w))(w), w.sum()))\n"
        "w = jnp.ones((1, 1))\n"
        "for n in range(2):\n"
        "    w, total = step(w, rows)\n"
        "    assert float(w[0, 0]) == 1 and total == 0\n"
    )
    Path("own.py").write_text(program)
    target = load_main("own.py", [], jax.device_count())
    assert target.data.pairs == {0: 0} and len(target.data.calls) == 2


@pytest.mark.parametrize(
    ("program", "may_come"),
    [
        (("plain_sgd",), 1),
        (("plain_sgd", "range(200)", "range(2)"), 0),  # all its batches are seen
        (("scan_alone",), 0),
        (("scanned_epochs",), 0),  # the same data in each call
    ],
    ids=["a long loop", "two rounds", "a scan", "an epoch a call"],
)
def test_batches_that_come_after_the_recorded_calls_are_named_as_not_seen(program, may_come, run):
    texts = run(*program).observed.not_checked
    assert sum("shorter one at the end of an epoch" in text for text in texts) == may_come


def test_steps_of_one_line_for_several_optimizers_are_several(run):
    (other,) = run("several_optimizers").observed.not_covered
    assert "several_optimizers.py:11" in other, "the step of the other one is not judged"


def test_gradients_that_no_step_takes_are_said_with_their_line(run):
    old = "(end, _), heights = lax.scan(roll, start, weights)"
    new = "end, heights = jax.vmap(roll, (None, 0))(start, weights)"
    with pytest.raises(CannotJudge, match=r"gradients at .*scan_alone.py:14, in roll only within"):
        run("scan_alone", old, new)


def test_a_model_that_its_optimizer_holds_too_is_one_argument(run):
    """nnx.jit hands over once what two arguments share."""
    from lab_utils.dry_run.frontends import jax_cores
    from lab_utils.dry_run.frontends.jax import JaxWorkload

    made = "wrt=nnx.Param)\n"
    program = run("nnx_trainer", made, f"{made}        self.optimizer.model = self.model\n")
    report = judged(program)
    assert report.stages[3].status == "done" and not report.findings, str(report)
    workload = JaxWorkload(program.subject, program.data, TOPOLOGY)
    with pytest.raises(jax_cores.Incomparable, match="share an object"):
        workload.comparison(2)


@pytest.mark.parametrize("name", ["jax_platforms", "jax_platform_name"])
def test_a_program_that_asks_for_the_cpu_hears_so(name, run):
    def said(platform):
        asks = f"    jax.config.update({name!r}, {platform!r})\n    params"
        return [
            text
            for text in run("plain_sgd", "    params", asks).observed.not_checked
            if "CPU" in text
        ]

    (told,) = said("cpu")
    assert "plain_sgd.py:" in told and "judged as if it asked for the TPU" in told
    assert not said("tpu,cpu")


def test_a_mesh_of_fewer_devices_than_there_are_is_said(run):
    report = judged(run("shard_map_sgd", "jax.devices())", "jax.devices()[:1])"))
    (failed,) = (stage for stage in report.stages if stage.status == "failed")
    assert f"make the mesh of all {jax.device_count()} devices" in failed.detail


def test_a_function_that_takes_a_random_key_raises_its_own_error(run):
    Path("draws.py").write_text(
        "import jax\n"
        "take = jax.jit(lambda key, n: jax.random.normal(key, (9,))[:n])\n"
        "take(jax.random.key(0), 5)\n"
    )
    with pytest.raises(CannotJudge, match="static integers.*\\n.*draws.py:2"):
        load_main("draws.py", [], jax.device_count())


def test_frozen_weights_are_no_examples_though_one_axis_is_as_long(run):
    from lab_utils.dry_run.frontends.jax import JaxWorkload

    target = run("nnx_whole_data")
    step = JaxWorkload(target.subject, target.data, TOPOLOGY).known.built()
    assert len(step.batch()) == 2, "rows and noise"


def test_what_reads_values_of_a_step_that_was_not_carried_out_may_fail(run):
    target = run("optax_mlp", "print(epoch", "assert loss > 0\n        print(epoch")
    assert target.data.name == "train_step"


CONSTANTS = """
import functools
import jax
import jax.numpy as jnp

@functools.partial(jax.jit, static_argnums=(3, 4))
def update(weights, pictures, scale, only_bias=False, kind="mean"):
    loss, grads = jax.value_and_grad(lambda w: scale * jnp.mean((pictures @ w) ** 2))(weights)
    return weights - 0.1 * grads, loss

weights = jnp.ones((8, 4))
for _ in range(3):
    weights, loss = update(weights, jnp.ones((64, 8)), 0.5, False, "mean")
"""


def test_the_state_is_known_beside_constants_of_several_types(tmp_path, monkeypatch):
    """A number that the step is given is traced; a switch and a name are constants of it."""
    from lab_utils.dry_run.frontends.jax import JaxWorkload

    monkeypatch.chdir(tmp_path)
    (tmp_path / "constants.py").write_text(CONSTANTS)
    target = load_main("constants.py", [], jax.device_count())
    step = JaxWorkload(target.subject, target.data, TOPOLOGY).known.built()
    assert (step.state, step.batch(), step.examples) == ([(0, 0)], {1}, 64)


REPLICATED = """
import functools
import jax
import jax.numpy as jnp

@functools.partial(jax.pmap, axis_name="cores")
def update(weights, pictures):
    grads = jax.grad(lambda w: jnp.mean((pictures @ w) ** 2))(weights)
    grads = jax.lax.pmean(grads, "cores")
    return jax.tree_map(lambda w, g: w - 0.1 * g, weights, grads)

cores = jax.devices()
weights = jax.device_put_replicated(jnp.ones((8, 4)), cores)
for _ in range(3):
    pictures = [jnp.ones((16, 8)) for _ in cores]
    weights = update(weights, jax.device_put_sharded(pictures, cores))
"""


def test_names_that_jax_has_under_another_name_are_given_and_told(tmp_path):
    (tmp_path / "replicated.py").write_text(REPLICATED)
    command = [
        sys.executable,
        "-m",
        "lab_utils.dry_run",
        "--main",
        "replicated.py",
        "--stages",
        "read",
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (
        "JAX: it lacks jax.device_put_replicated, jax.device_put_sharded, jax.tree_map"
        in " ".join(ran.stdout.split())
    )


def test_a_name_that_jax_has_dropped_is_no_fault_of_the_port(run):
    gone = "jax.no_tree_map(abs, [1])\n"
    with pytest.raises(
        CannotJudge, match=r"(?s)cannot be checked here: .*JAX \d.*nothing of the port"
    ):
        run("plain_sgd", "    params", f"    {gone}    params")
    later = run(
        "optax_mlp",
        "params, opt_state, loss = tr",
        f"if start: {gone}            params, opt_state, loss = tr",
    ).observed.not_checked
    assert any("no_tree_map" in told and "nothing of the port" in told for told in later), later


def test_a_program_for_the_hosts_of_a_pod_finds_the_devices_of_this_machine(run):
    old = 'mesh = Mesh(np.array(jax.devices()), ("data",))\n'
    new = "jax.distributed.initialize()\nassert jax.device_count('tpu')\n" + old.replace(
        "()", "('tpu')"
    )
    target = run("shard_map_sgd", old, new)
    assert target.data.name == "train_step" and len(target.data.calls) == jax_runs.CALLS


ONE_EACH = """
import functools
import jax
import jax.numpy as jnp
import numpy as np

@functools.partial(jax.pmap, axis_name="cores")
def fit(row, picture):
    def loss_fn(row):
        return jnp.mean((jnp.ones((6, 1)) * row - picture) ** 2)
    loss, gradient = jax.value_and_grad(loss_fn)(row)
    return row - 0.1 * jax.lax.pmean(gradient, "cores"), loss

cores, random = jax.device_count(), np.random.default_rng(0)
row = jnp.zeros((cores, 4))
for _ in range(3):
    row, loss = fit(row, random.normal(size=(cores, 6, 4)).astype("float32"))
"""


def test_a_step_that_takes_one_example_a_core_is_not_compared(run):
    """As of public Gaussian splatting: a core renders one picture."""
    Path("pictures.py").write_text(ONE_EACH)
    report = judged(load_main("pictures.py", [], jax.device_count()))
    (stage,) = (stage for stage in report.stages if stage.stage == "run")
    assert stage.status == "skipped" and "pictures.py:10" in stage.detail, str(report)


@pytest.mark.parametrize(
    "argnums", [{}, {"batch_argnums": 1}, {"batch_argnums": (1,), "state_argnums": 0}]
)
def test_roles_that_shapes_cannot_tell_are_asked_for(argnums):
    from lab_utils.dry_run.frontends.jax import JaxWorkload
    from lab_utils.dry_run.lower.errors import InputUnfit

    jnp = jax.numpy
    step = jax.jit(lambda w, x, table: w - 0.1 * jax.grad(lambda w: jnp.mean(x @ w @ table))(w))
    call = jnp.ones((8, 4)), jnp.ones((64, 8)), jnp.ones((4, 16))
    workload = JaxWorkload(step, call, "v5e:1x1", **argnums)
    if argnums:
        program = workload.lower(1)
        assert (program.mode, program.per_core_batch) == ("train", 64)
    else:
        with pytest.raises(InputUnfit, match=r"x \(64\), table \(4\).*batch_argnums=1"):
            workload.lower(1)
