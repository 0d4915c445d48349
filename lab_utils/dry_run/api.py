"""The dry run from end to end: each stage in its order, none losing what an earlier one found.

TensorFlow is imported for what is written with it only: a program of JAX needs none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lab_utils.common import loading
from lab_utils.dry_run import rules
from lab_utils.dry_run.frontends.recognise import PlainEstimator, default_topology, workload_of
from lab_utils.dry_run.private import process
from lab_utils.dry_run.records import Finding, Stage, StageResult, Status
from lab_utils.dry_run.report import words
from lab_utils.dry_run.report.outcome import never_checked
from lab_utils.dry_run.report.report import Report
from lab_utils.dry_run.session import Session, working
from lab_utils.dry_run.stages import carry_out, not_checked
from lab_utils.dry_run.workload import Observed
from lab_utils.runtime import chips


def dry_run(  # noqa: PLR0913  the public door: each is a named option of the command, too
    subject: Any,
    data: Any,
    topology: str | None = None,
    *,
    stages: Iterable[str] = tuple(Stage),
    steps: int = 3,
    numerics: bool = False,
    eval_input_fn: Callable | None = None,
    predict_input_fn: Callable | None = None,
    serving_input_receiver_fn: Callable | None = None,
    mesh_axes: Mapping[str, int] | None = None,
    state_argnums: int | Sequence[int] | None = None,
    batch_argnums: int | Sequence[int] | None = None,
    limit: float | None = None,
    cache: bool = True,
    progress: bool = True,
    ignore: Sequence[str] = (),
    observed: Observed | None = None,
) -> Report:
    """Judges a port to Cloud TPU on this machine, which needs no TPU.

    Args:
        subject: a TPUEstimator (use_tpu may be False: it is judged as with True); a compiled Keras model;
            a function step(features, labels); or a JAX step, jitted or plain.
        data: its input_fn(params); a tf.data dataset; an example batch (features, labels) or a dataset; or
            the arguments of the JAX step, as arrays or as shapes (frontends/jax_calls.py says how).
        topology: any name that libtpu knows: "v2:2x2", "v5e:4x4", up to a whole pod. Left out, it is chosen
            by what computes the subject: v5e:2x4 for JAX, v2:2x2 for TensorFlow; the report says so.
        stages: which of trace, read, compile, run and feed.
        steps: how many train steps to run on virtual cores.
        numerics: run these steps also with matmuls as a TPU computes them, and say what that changes.
        eval_input_fn, predict_input_fn: a TPUEstimator's other input functions; `data` stands in for them.
        serving_input_receiver_fn: what export_saved_model of a TPUEstimator would be given; the graph that it
            exports for the CPU is then built and read too.
        mesh_axes: sizes of a JAX mesh's axes on that topology, such as {"data": 4, "model": 2}.
        state_argnums, batch_argnums: which positional arguments of a JAX step are its state, which its
            results replace, and which hold the examples. Left out, structures and shapes must tell it.
        limit: seconds that the compiler may take for a program. One that takes longer is ended, and there is
            no verdict. None: as long as it takes.
        cache: take what an earlier dry run worked out of the same program (cache.py says what is kept, and
            when an entry counts as the same). With False everything is done and measured again.
        ignore: rules, or beginnings of their ids; their findings stand in `report.ignored`.
        progress: show what is going on, on a terminal or in a notebook.
        observed: what a run of the program has shown; the command gives it.

    Returns:
        The report. The estimator, the model and model_dir are left as they are.

    Raises:
        TypeError: `subject` or `data` is none of these.
        ValueError: an unknown stage or topology, or a number of steps or seconds that is not positive.
    """
    chosen_stages = {Stage(stage) for stage in stages}
    if steps < 1:
        raise ValueError(f"steps={steps} must be a positive number")
    is_chosen, topology = topology is None, topology or default_topology(subject, data)
    cores = chips.cores(topology)
    try:
        workload = workload_of(
            subject,
            data,
            eval=eval_input_fn,
            predict=predict_input_fn,
            serving=serving_input_receiver_fn,
            topology=topology,
            observed=observed,
            of_jax={
                "mesh_axes": mesh_axes,
                "state_argnums": state_argnums,
                "batch_argnums": batch_argnums,
            },
        )
    except PlainEstimator as refused:
        finding = rules.finding("TPU109", refused.where, kind=refused.kind)
        named = None if is_chosen else topology
        return refusal(refused.kind, named, finding, framework=refused.kind)
    session = Session(workload, topology, cores, steps, numerics)
    so_far = partial(_so_far, session)
    with working(cache, progress, limit, so_far) as say:
        carry_out(session, chosen_stages, say)
    if numerics and session.numerics is None:
        session.not_checked.append(
            "The check that numerics=True asks for: the steps were not run with a TPU's rounding."
        )
    report = Report(
        workload.name,
        topology,
        cores,
        framework=workload.framework,
        backend=workload.backend,
        devices=session.devices,
        stages=session.results,
        compiled=session.compiled,
        feed=session.feed,
        not_checked=[
            *never_checked(session.numerics, of_jax=workload.backend == "JAX"),
            *not_checked(session),
            *workload.observed.not_checked,
        ],
        numerics=session.numerics,
        not_judged=[*session.not_judged, *workload.observed.not_judged],
        not_covered=workload.observed.not_covered,
        versions=_versions(),
        topology_is_chosen=is_chosen,
    )
    report.set_aside(ignore)
    return report


def _so_far(session: Session) -> str:
    """The stages that are over, and the findings that all have had until now, a line each."""
    lines = []
    for result in list(session.results):
        mark, took, said = words.stage_words(result)
        if took:
            lines.append(f"{mark} {result.stage} ({took}): {said}")
        lines += [
            f"{item.severity} {item.rule} at {item.where}: {words.title(item)}"
            for item in list(result.findings)
        ]
    return "\n".join(lines)


def refusal(
    name: str, topology: str | None, finding: Finding, framework: str = "TPUEstimator"
) -> Report:
    """A report with a single finding, for a port that could not be traced at all.

    Raises:
        ValueError: an unknown topology.
    """
    is_chosen, topology = topology is None, topology or chips.DEFAULTS["TensorFlow"]
    cores = chips.cores(topology)
    report = Report(name, topology, cores, framework=framework, backend="TensorFlow")
    report.topology_is_chosen = is_chosen
    report.devices, report.not_checked, report.versions = cores, never_checked(), _versions()
    report.stages = [StageResult(Stage.TRACE, Status.DONE, findings=[finding])]
    report.stages += [
        StageResult(stage, Status.SKIPPED, f"fix {finding.rule} first") for stage in list(Stage)[1:]
    ]
    return report


def _versions() -> dict[str, str]:
    tensorflow = loading.tensorflow()
    return ({"TensorFlow": tensorflow.__version__} if tensorflow else {}) | process.versions()
