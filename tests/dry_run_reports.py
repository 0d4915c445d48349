"""Made-up reports for the tests of how a report shows itself: ready, with findings, and out of memory."""

import dataclasses

from lab_utils.common.figures import Figure, Kind
from lab_utils.common.source import Place
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import (
    CompiledStep,
    Cost,
    Feed,
    Finding,
    Memory,
    Mode,
    Severity,
    Stage,
    StageResult,
    Status,
)
from lab_utils.dry_run.report.outcome import never_checked
from lab_utils.dry_run.report.report import Report

MIB = 2**20
V2 = "jax 0.10.2, jax/_src/pallas/mosaic/tpu_info.py, read 2026-11-21"


def train_step(temporaries: float = 2762 * MIB, needed: float | None = None) -> CompiledStep:
    """A train step on a v2 core; `needed` (bytes) makes it one that does not fit."""
    sizes = {
        "arguments": 515 * MIB,
        "temporaries": temporaries,
        "outputs": 81 * MIB,
        "code": 9 * MIB,
    }
    sizes["available"] = 7.48 * 2**30
    if needed is not None:
        sizes["needed"] = needed
    memory = Memory(
        **{part: Figure(part, float(size), "bytes", Kind.COMPILER) for part, size in sizes.items()}
    )
    cost = Cost(
        flops=Figure("FLOPs a step", 145.5e9, "FLOP", Kind.COMPILER),
        bytes=Figure("HBM traffic a step", 12.51e9, "B", Kind.COMPILER),
        peak_flops=Figure("peak of a v2 core, bfloat16", 23e12, "FLOP/s", Kind.QUOTED, V2),
        peak_bandwidth=Figure("HBM bandwidth of a v2 core", 358e9, "B/s", Kind.QUOTED, V2),
        step_seconds=Figure("roofline bound on a step", 0.03494, "s", Kind.DERIVED),
        examples_per_second=Figure("examples a core, at most", 3663.0, "examples/s", Kind.DERIVED),
        all_reduce_bytes=Figure("all-reduce of a step", 62.4e6, "B", Kind.COMPILER),
    )
    return CompiledStep("train step", memory, cost)


def eval_step() -> CompiledStep:
    """An evaluation step that its FLOPs bound."""
    step = train_step(temporaries=300 * MIB)
    step.name, step.mode = "eval step", Mode.EVAL
    step.cost.flops = Figure("FLOPs a step", 450e9, "FLOP", Kind.COMPILER)
    step.cost.bytes = Figure("HBM traffic a step", 3.1e9, "B", Kind.COMPILER)
    return step


def feed(rate: float = 412.0, required: float = 29304.0) -> Feed:
    """An input pipeline's figures."""
    return Feed(
        examples_per_second=Figure("examples from input_fn", rate, "examples/s", Kind.MEASURED),
        host_cores=Figure("cores of this machine in use", 1.83, "cores", Kind.MEASURED),
        machine_cores=Figure("cores of this machine", 2, "cores", Kind.MEASURED),
        required=Figure("required rate of one host, at most", required, "examples/s", Kind.DERIVED),
        host_cores_needed=Figure(
            "host cores like these to deliver it", 1.83 * required / rate, "cores", Kind.DERIVED
        ),
    )


def _report(
    findings: dict[Stage, list[Finding]],
    compiled: list[CompiledStep],
    feed: Feed,
    skipped: tuple[Stage, ...] = (),
) -> Report:
    stages = [
        StageResult(stage, Status.DONE, "as far as it went", 3.2, findings.get(stage, []))
        if stage not in skipped
        else StageResult(stage, Status.SKIPPED, "the train graph could not be built")
        for stage in Stage
    ]
    return Report(
        subject="TPUEstimator with model_fn of trainer/model.py:41",
        topology="v2:2x2",
        cores=8,
        stages=stages,
        compiled=compiled,
        feed=feed,
        not_checked=never_checked(),
        framework="TPUEstimator",
        backend="TensorFlow",
        devices=8,
        versions={"TensorFlow": "2.20.0", "jax": "0.10.2", "libtpu": "0.0.42.1"},
    )


def ready() -> Report:
    """Two compiled programs, and no finding."""
    return _report({}, [train_step(), eval_step()], feed())


def finding(
    rule: str = "TPU101",
    stage: Stage = Stage.TRACE,
    severity: Severity = Severity.ERROR,
    where: str = "trainer/model.py:41, in input_fn (op BatchDatasetV2)",
    message: str = "ValueError: The features to the model returned by input_fn must have static shape. "
    'Tensor: Tensor("IteratorGetNext:0", shape=(None, 299, 299, 3), dtype=float32)',
) -> Finding:
    """One finding."""
    return Finding(
        rule,
        stage,
        severity,
        Place(text=where),
        "A TPU program is compiled for fixed shapes, and the last batch of a dataset may be smaller.",
        "Batch with `dataset.batch(params['batch_size'], drop_remainder=True)`; never hard-code the size.",
        "03 Static shapes",
        message,
    )


def with_findings() -> Report:
    """Findings of every severity, several of one rule, and a stage that could not run."""
    read = [
        finding("TPU201", Stage.READ, where=f"In [5], line {line} (op AsString)", message="")
        for line in (3, 9, 12)
    ]
    read.append(finding("TPU202", Stage.READ, Severity.WARNING, "In [5], line 20", ""))
    read.append(finding("TPU203", Stage.READ, Severity.NOTE, "In [5], line 31", ""))
    measured = dataclasses.replace(feed(), required=None, host_cores_needed=None)
    findings = {Stage.TRACE: [finding()], Stage.READ: read}
    return _report(findings, [], measured, skipped=(Stage.COMPILE, Stage.RUN))


def out_of_memory() -> Report:
    """A train step that needs more than a core has."""
    needed = 12.87 * 2**30
    message = (
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
        "(12.87G) exceeds available HBM (7.48G)."
    )
    where = (
        "trainer/model.py:55, in model_fn (op conv2d/Conv2D): float32[1024,112,112,64], 3.06 GiB"
    )
    found = finding("TPU301", Stage.COMPILE, where=where, message=message)
    step = train_step(temporaries=needed, needed=needed + 515 * MIB)
    step.cost = Cost()
    return _report({Stage.COMPILE: [found]}, [step], Feed())


def program() -> Program:
    """A lowered step of no work, for tests that never compile it."""
    return Program("train step", "train", 8, 4, b"", [], [])
