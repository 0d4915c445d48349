"""The dry run from end to end: what becomes of a stage that cannot run, and the three kinds of port."""

import contextlib

import dry_run_reports as made
import numpy as np
import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader
from rules.judging import jobs  # noqa: F401

from lab_utils.common.figures import Figure, Kind
from lab_utils.common.source import Place
from lab_utils.dry_run import Report, api, dry_run, session, stages
from lab_utils.dry_run.compile import stage as compile
from lab_utils.dry_run.compile.figures import Compiled
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.feed import stage as feed_stage
from lab_utils.dry_run.lower import explain
from lab_utils.dry_run.records import Mode, Stage
from lab_utils.dry_run.report import words
from lab_utils.dry_run.run import stage as run_stage
from lab_utils.dry_run.run.virtual import VirtualRun
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import first_line
from lab_utils.dry_run.workload import Observed, Trace
from lab_utils.estimator import tf, tpu
from lab_utils.runtime import chips

input_fn = reader((ROWS, CLASSES))


def examples() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(({"x": ROWS}, CLASSES))


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    monkeypatch.setattr(feed_stage, "MOST_SECONDS", 0.1)


@pytest.fixture
def port(tmp_path):
    """A small TPUEstimator, as a learner has it: with use_tpu=False and a model_dir."""
    config = tpu.RunConfig(
        model_dir=str(tmp_path / "model"),
        tpu_config=tpu.TPUConfig(iterations_per_loop=10),
        save_checkpoints_steps=10,
    )
    return make(dense, config=config)


@contextlib.contextmanager
def _input():
    yield lambda: examples().batch(32), 32


class MadeSubject:
    """A port whose stages do what the test says; by default all goes well and nothing is lowered."""

    most_steps, observed = None, Observed()
    framework, backend, labs = "a made-up framework", "TensorFlow", {}
    name, feed_place = "a made-up port", Place("made.py", 1, function="input_fn")

    def trace(self, cores):
        return [Trace(Mode.TRAIN, cores, 64)]

    def facts(self, traces, cores):
        return [Facts(Mode.TRAIN)]

    def lower(self, cores, mode="train", batch=None):
        raise RuntimeError("lowering broke\nand said more")

    def feed(self, cores):
        return _input()


@pytest.fixture
def subject(monkeypatch):
    made_up = MadeSubject()
    found = {Stage.READ: [made.finding("TPU202", Stage.READ)]}
    monkeypatch.setattr(session, "apply_rules", lambda facts, stage, silent: found.get(stage, []))
    monkeypatch.setattr(api, "workload_of", lambda *arguments, **inputs: made_up)
    return made_up


def status(report: Report) -> dict[str, str]:
    return {stage.stage: stage.status for stage in report.stages}


def test_a_stage_that_breaks_loses_nothing_of_the_others(subject):
    report = dry_run(None, None, progress=False)
    assert [*status(report).values()] == ["done", "done", "failed", "failed", "done"]
    assert [finding.rule for finding in report.findings] == ["TPU202"]
    assert report.feed["examples_per_second"].value > 0
    assert report.stages[2].detail.startswith("RuntimeError: lowering broke")
    assert any("compile, run (failed)" in item for item in report.not_checked)
    assert report.verdict == "findings"
    subject.facts = lambda traces, cores: []
    report = dry_run(None, None, progress=False)
    assert (report.verdict, report.exit_status) == ("could not run", 2)


def test_without_the_compiler_the_rest_still_runs_and_the_verdict_says_so(subject, monkeypatch):
    @contextlib.contextmanager
    def missing(*arguments, **options):
        raise Unavailable("install jax and libtpu: pip install jax")
        yield

    subject.facts = lambda traces, cores: []
    subject.lower = lambda *arguments, **options: made.program()
    monkeypatch.setattr(compile, "compiling", missing)
    monkeypatch.setattr(run_stage, "cost", lambda hlo: (0.0, 0.0))
    monkeypatch.setattr(run_stage, "running", missing)
    report = dry_run(None, None, progress=False)
    assert status(report)["compile"] == status(report)["run"] == "skipped"
    assert report.verdict == "ready" and "as far as was checked" in report.verdict_sentence
    assert any("compile, run" in item and "pip install" in item for item in report.not_checked)


def test_the_required_rate_is_that_of_a_hosts_cores_in_the_estimated_time_or_else_at_the_bound():
    step = made.train_step()
    at_most = feed_stage.required_rate(step, "v3:4x4")
    assert at_most.value == pytest.approx(3663 * 8, rel=1e-3) and at_most.name.endswith("at most")
    one_host, two_hosts = (feed_stage.required_rate(step, f"v5e:{size}") for size in ("2x4", "4x4"))
    assert one_host.value == 2 * two_hosts.value  # eight chips on one host, four on each of several
    step.cores = 1  # a step without a mesh
    assert feed_stage.required_rate(step, "v5e:2x4").value == one_host.value / 8
    step.cores = None
    step.cost.estimated_seconds = Figure("estimated time", 0.07, "s", Kind.ESTIMATED)
    step.cost.estimated_rate = Figure("estimated", 1800.0, "examples/s", Kind.ESTIMATED)
    estimated = feed_stage.required_rate(step, "v3:4x4")
    assert (estimated.value, estimated.kind) == (1800 * 8, Kind.ESTIMATED)
    step.cost.estimated_seconds = Figure("estimated time", 1e-6, "s", Kind.ESTIMATED)
    with pytest.raises(
        feed_stage.Skip, match="estimated time of .* shorter than the time that the host needs"
    ):
        feed_stage.required_rate(step, "v3:4x4")
    with pytest.raises(feed_stage.Skip, match="not compiled"):
        feed_stage.required_rate(None, "v3:4x4")


@pytest.fixture
def cores_that_run(subject, monkeypatch):
    """A function that runs a step of `flops`, 1,024 examples a core, whose collectives name `named` cores:
    the report and (cores, batch per core, steps) of each run.
    """

    def run_of(topology, flops, named):
        ran = []

        def lower(cores, mode="train", batch=None):
            program = made.program()
            program.cores, program.per_core_batch = cores, (batch or 1024 * cores) // cores
            program.named_cores = named
            return program

        @contextlib.contextmanager
        def run(program, *, steps, one_core, **options):
            ran.append((program.cores, program.per_core_batch, steps))
            yield lambda progress: VirtualRun(steps, [[1.0] * program.cores] * steps)

        subject.lower = lower
        monkeypatch.setattr(run_stage, "cost", lambda program: (flops, 1e6))
        monkeypatch.setattr(run_stage, "running", run)
        return dry_run(None, None, topology, stages=["run"], progress=False), ran

    return run_of


@pytest.mark.parametrize(
    ("topology", "flops", "named", "run"),
    [
        ("v2:2x2", 1e3, 0, (8, 1024, 3)),
        (
            "v2:4x4",
            145.5e9,
            0,
            (8, 32, 3),
        ),  # a step of 8 cores, and all of it on one: 17 times too much
        ("v2:2x2", 1e15, 0, None),
        ("v2:2x2", 1.1e13, 8, (8, 1, 2)),
        ("v2:2x2", 2e13, 8, None),
        ("v2:2x2", 2e13, 2, None),  # a run of two would hide it
        ("v2:2x2", 2e13, 16, (4, 1, 2)),  # wrong on any number of cores
        ("v2:4x4", 1.0, 16, None),
    ],
)
def test_virtual_cores_run_what_this_machine_can_bear(cores_that_run, topology, flops, named, run):
    """Cores that the collectives of a step name are all run, or none."""
    report, ran = cores_that_run(topology, flops, named)
    assert ran == ([run] if run else [])
    if not run:
        reason = "its groups name" if named else "more memory than this machine can spare"
        assert reason in report.stages[3].detail
    spared = any("virtual cores ran" in item for item in report.not_checked)
    assert spared == (run not in (None, (8, 1024, 3)))


@pytest.mark.parametrize(
    "stack", ["<stack traces unavailable>", "File \"a.py\", line 1\nNode: 'Next'"]
)
def test_the_reason_of_an_op_that_failed_is_told_and_not_that_one_failed(stack):
    text = f"Graph execution error:\n\nDetected at node Next defined at (most recent call last):\n{stack}\n"
    error = RuntimeError(f"{text}corrupted record at 0\n\t [[{{{{node Next}}}}]] [Op:Next]")
    assert first_line(error) == "corrupted record at 0"
    eager = "{{function_node __wrapped__Next_device_/CPU:0}} corrupted record at 0"
    assert first_line(RuntimeError(eager)) == "corrupted record at 0"


def test_what_is_no_port_is_refused(port):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    for subject, data, message in (
        (7, None, "a TPUEstimator and its input_fn"),
        (tf.keras.Model, None, "a TPUEstimator and its input_fn"),
        (port, examples(), "input_fn"),
        (model, input_fn, "tf.data"),
        (model, examples(), "compile"),
    ):
        with pytest.raises(TypeError, match=message):
            dry_run(subject, data)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stages": ["smell"]}, "smell"),
        ({"topology": "v99:2x2"}, "v99:2x2.*v5e:2x2"),
        ({"steps": -1}, "positive"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_any_work(port, options, said):
    with pytest.raises(ValueError, match=said):
        dry_run(port, input_fn, **options)


def test_a_tpu_estimator_from_end_to_end(port, tmp_path, own_cache):
    report = dry_run(port, input_fn, steps=2, progress=False)
    assert report.verdict == "ready", str(report)
    assert set(status(report).values()) == {"done"}, str(report)
    assert [step.name for step in report.compiled] == ["train step", "eval step"]
    assert not report.findings, "no advice on speed for a toy"
    used = report.compiled[0].memory.used
    assert 0 < used < report.memory["available"].value
    assert report.compiled[0].cost.roofline
    assert report.feed["examples_per_second"].value > 0
    losses = [figure.value for figure in report.stages[3].figures]
    assert len(losses) == 2 and all(np.isfinite(losses))
    assert "computed by the TPU compiler" in report._repr_html_()
    # The learner's estimator and process are as they were.
    assert not (tmp_path / "model").exists()
    assert tf.executing_eagerly()


def test_a_step_function_from_end_to_end(jobs):  # noqa: F811
    weights = tf.Variable(tf.zeros([6, 3]))

    @tf.function
    def step(features, labels):
        with tf.GradientTape() as tape:
            logits = features["x"] @ weights
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        gradient = tf.distribute.get_replica_context().all_reduce(
            "mean", tape.gradient(loss, weights)
        )
        weights.assign_sub(0.1 * gradient)
        return loss

    batch = next(iter(examples().batch(64)))
    report = dry_run(step, batch, "v2:1x1", progress=False)
    assert status(report)["compile"] == "done" and report.compiled[0].memory.used > 0, str(report)
    assert np.array_equal(weights.numpy(), np.zeros([6, 3]))
    assert len(report.stages[3].figures) == 3, str(report)  # the one batch in each step
    assert "no input pipeline" in report.stages[4].detail


def test_large_steps_are_compiled_one_after_the_other(subject, monkeypatch):
    busy = []

    @contextlib.contextmanager
    def compiled(program, topology):
        assert not busy, "two compilers take more memory than a laptop has"
        busy.append(program)
        chip, _ = chips.parse(topology)
        yield lambda progress: busy.clear() or Compiled(topology, chip, program, made.train_step())

    subject.lower = lambda *arguments, **options: made.program()
    subject.trace = lambda cores: [Trace(Mode.EVAL, cores, 8)]
    monkeypatch.setattr(compile, "compiling", compiled)
    monkeypatch.setattr(compile, "leaves_room", lambda program: False)
    report = dry_run(None, None, stages=["trace", "compile"], progress=False)
    assert len(report.compiled) == 2, str(report)


def test_an_interrupt_ends_what_runs_beside_the_stage(subject, monkeypatch):
    ended = []

    @contextlib.contextmanager
    def compiled(program, topology):
        try:
            yield None
        finally:
            ended.append(program.name)

    def interrupted(session):
        raise KeyboardInterrupt

    subject.lower = lambda *arguments, **options: made.program()
    monkeypatch.setattr(compile, "compiling", compiled)
    monkeypatch.setitem(stages.STAGES, Stage.RUN, interrupted)
    with pytest.raises(KeyboardInterrupt):
        dry_run(None, None, progress=False)
    assert ended == ["train step"]


def test_a_topology_that_nobody_names_is_chosen_by_what_computes_the_subject():
    """v2 drives TPUEstimator; what people with a program of JAX can get is a v5e."""
    jax = pytest.importorskip("jax")
    batch = next(iter(examples().batch(64)))
    subjects = {
        "v2:2x2 (chosen for TensorFlow)": (lambda x, y: tf.reduce_mean(x["x"]), batch),
        "v5e:2x4 (chosen for JAX)": (jax.jit(lambda x: x.sum() * 2), jax.numpy.ones([8, 4])),
    }
    for said, subject in subjects.items():
        options = {"stages": ["read"], "progress": False}
        report = dry_run(*subject, **options)
        assert said in words.subject_line(report) and said.startswith(report.topology)
        named = dry_run(*subject, report.topology, **options)
        assert "chosen for" not in words.subject_line(named) and named.topology == report.topology


@pytest.mark.parametrize(
    "step",
    [
        lambda features, labels: None,
        lambda features, labels: tf.constant(1.0),
        lambda features, labels: features["x"],
    ],
    ids=["nothing", "a constant", "its arguments"],
)
def test_a_step_that_computes_nothing_is_not_judged(step):
    batch = next(iter(examples().batch(64)))
    report = dry_run(step, batch, stages=["read", "compile"], progress=False)
    assert report.verdict == "could not run"
    assert "returns nothing that it computes" in report.stages[1].detail


def test_a_step_that_this_machine_cannot_lower_has_no_verdict(monkeypatch):
    """Not even where nothing else was found: a TPU was not asked."""
    # An op that a TPU has and a CPU lacks, and no reason in the program.
    monkeypatch.setattr(explain, "_sized_by_data", lambda graph: None)

    def step(features, labels):
        images, size = tf.reshape(features["x"], [-1, 2, 3, 1]), tf.cast(labels[0], tf.int32) + 4
        with tf.GradientTape() as tape:
            tape.watch(images)
            large = tf.image.resize(images, [size, size], method="nearest")
            loss = tf.reduce_mean(large)
        return loss + tf.reduce_mean(tape.gradient(loss, images))

    batch = next(iter(examples().batch(64)))
    report = dry_run(step, batch, stages=["read", "compile"], progress=False)
    assert (report.verdict, report.findings) == ("could not run", []), str(report)
    assert report.not_judged == ["the train step, which cannot be lowered here"]
    assert (report.framework, report.backend, report.devices) == ("TensorFlow", "TensorFlow", 8)
    reading_only = dry_run(step, batch, stages=["read"], progress=False)
    assert reading_only.ready, "nothing was to be lowered"
