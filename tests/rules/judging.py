"""What the dry run finds in a port: with its first two stages, or with one of the later ones."""

import contextlib
from collections.abc import Callable
from unittest import mock

import pytest
from dry_run_models import run_program

from lab_utils.common.figures import Figure, Kind
from lab_utils.dry_run import Report, dry_run, rules
from lab_utils.dry_run.compile import findings as compile_findings
from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.feed import stage as feed
from lab_utils.dry_run.frontends import fits, recorder
from lab_utils.dry_run.frontends.calls import Enough
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.frontends.recognise import is_jax
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.private import process
from lab_utils.dry_run.records import Finding, Stage
from lab_utils.dry_run.rules import host
from lab_utils.dry_run.rules.messages import settings_finding
from lab_utils.dry_run.target import Target, of_recording
from rules import Port
from rules.jobs import Jobs

DEMAND = Figure(
    "required", 100.0, "examples/s", Kind.DERIVED
)  # examples/s that the TPU could take, where the step is not compiled
LOWERING = ("TPU301", "TPU302")


def findings(make: Callable[[], Port], rule: str, topology: str = "v2:2x2") -> list[Finding]:
    """What the stage of `rule` finds in the port that `make` gives, or what stops `make`.

    Trace and read are carried out together. For feed the TPU takes DEMAND examples/s, and the rest of
    this machine is idle, but busy for TPU502.
    """
    stage = rules.rule(rule).stage
    try:
        port = make()
    except ValueError as error:
        found = settings_finding(error)
        if found is None:
            raise
        return [found]
    if stage in (Stage.TRACE, Stage.READ):
        return _report(port, [Stage.TRACE, Stage.READ], topology)
    if stage == Stage.FEED:
        return _fed(port, rule)
    pytest.importorskip("jax")
    if is_jax(port.estimator, port.input_fn):
        return _of_jax(port)
    try:
        cores = 8 if stage == Stage.COMPILE else 2
        program = lower_estimator(port.estimator, port.input_fn, cores=cores)
        if stage == Stage.RUN:
            whole = None
            with contextlib.suppress(CannotLower):  # groups of cores that a lone core does not have
                whole = lower_estimator(port.estimator, port.input_fn, cores=1)
            on_tpu = rule == "TPU409"
            return run_program(program, steps=3, one_core=whole, on_tpu=on_tpu).findings
    except CannotLower as error:
        return [error.finding()]
    if rule in LOWERING:
        return []
    pytest.importorskip("libtpu")
    return compile_program(program, "v2:2x2").findings


def _of_jax(port: Port) -> list[Finding]:
    """What the compiler says of a step of JAX, on eight cores."""
    pytest.importorskip("libtpu")
    from lab_utils.dry_run.frontends.jax import JaxWorkload

    try:
        program = JaxWorkload(port.estimator, port.input_fn, "v5e:2x4", port.mesh_axes).lower(8)
    except CannotLower as error:
        return [error.finding()]
    return compile_program(program, "v5e:2x4").findings


def _target(port: Port) -> Target:
    """What the command would judge: what is handed over, or what the port's own main has shown."""
    if port.main is None:
        names = ("eval_input_fn", "predict_input_fn", "serving_input_receiver_fn")
        options = {name: getattr(port, name) for name in names}
        return Target(port.estimator, port.input_fn, options)
    stopped = contextlib.suppress(Enough)
    with recorder.recording(8) as calls, fits.without_training(8, calls.note_fit), stopped:
        port.main()
    return of_recording(calls, "the port")


def report_of(port: Port, stages: list[Stage], topology: str = "v2:2x2") -> Report:
    """What the public door says of a port, with these stages."""
    subject, data, options, observed = _target(port)
    options |= {"stages": stages, "observed": observed, "cache": False, "progress": False}
    with mock.patch.object(feed, "MOST_SECONDS", 0.1):
        return dry_run(subject, data, topology, **options)


def _report(port: Port, stages: list[Stage], topology: str = "v2:2x2") -> list[Finding]:
    report = report_of(port, stages, topology)
    broken = [each for each in report.stages if each.status == "failed" and not each.findings]
    assert not broken, broken
    return report.findings


def _fed(port: Port, rule: str) -> list[Finding]:
    ticks = iter(range(1, 10**6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "required_rate", lambda step, topology: DEMAND)
        patch.setattr(feed, "_idle_seconds", lambda: 0 if rule == "TPU502" else 1000 * next(ticks))
        patch.setattr(feed, "usable_cores", lambda: 4)
        return _report(port, [Stage.FEED])


@pytest.fixture(autouse=True)
def small_tensors_count_as_large(monkeypatch):
    """Spares the tests constants of hundreds of megabytes, and tables of gigabytes."""
    monkeypatch.setattr(host, "_LARGE", 2**20)
    monkeypatch.setattr(compile_findings, "PADDING_BYTES", 2**20)
    monkeypatch.setattr(compile_findings, "TOY_SECONDS", 0.0)


@pytest.fixture(scope="module")
def jobs(own_cache, tmp_path_factory):
    """An empty cache, and one process for all jobs of JAX."""
    made = Jobs(tmp_path_factory.mktemp("jobs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "Running", made)
        yield
    made.close()


def in_lines(found: list[Finding]) -> str:
    return "\n".join(f"{f.rule} {f.where}: {f.why} {f.message[:300]}" for f in found) or "none"
