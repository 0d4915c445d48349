"""The stages of a dry run: each takes what the earlier ones hand on, and stands on its own in the report."""

import textwrap
import time
from collections.abc import Callable

from lab_utils import source
from lab_utils.dry_run import rules
from lab_utils.dry_run.compile import stage as compile
from lab_utils.dry_run.compile.findings import merged
from lab_utils.dry_run.feed import demand
from lab_utils.dry_run.feed import stage as feed
from lab_utils.dry_run.frontends import workloads as subjects
from lab_utils.dry_run.frontends.batches import InputUnfit
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import Finding, Stage, StageResult
from lab_utils.dry_run.report.outcome import CompiledStep, Report
from lab_utils.dry_run.report.progress import Progress
from lab_utils.dry_run.run import stage as virtual
from lab_utils.dry_run.run.budget import affordable_batch, affordable_cores
from lab_utils.dry_run.trace.messages import trace_findings
from lab_utils.dry_run.trace.stage import Trace
from lab_utils.figures import Figure, Kind


class _Skip(Exception):
    """A stage cannot be carried out here; the message says why."""


class DryRun:
    """The state that stages hand on: graphs, lowered programs, what was compiled."""

    def __init__(
        self,
        report: Report,
        subject: subjects.Subject,
        steps: int,
        feed_seconds: float,
        largest_batch: bool,
    ) -> None:
        self.report, self._not_checked = report, []
        self._subject, self._steps, self._feed_seconds = subject, steps, feed_seconds
        self._largest_batch = largest_batch
        self._traces: list[Trace] | None = None
        self._programs: dict[str, Program | Exception] = {}
        self._compiled: compile.Compiled | None = None

    def carry_out(self, stage: Stage, wanted: bool, bar: Progress) -> None:
        """Carries out one stage; whatever becomes of it stands in the report."""
        result = StageResult(stage, "skipped", "not asked for")
        self.report.stages.append(result)
        if not wanted:
            return
        bar.begin(stage)
        start = time.perf_counter()
        try:
            result.detail = getattr(self, f"_{stage}")(result, bar.say)
            result.status = "done"
        except _Skip as reason:
            result.detail = str(reason)
        except (CannotLower, InputUnfit) as error:
            result.status, result.detail = self._cannot_lower(result, "train", error)
        except Exception as error:  # what the earlier stages found must not be lost
            result.status, result.detail = "failed", _in_words(error)
        result.seconds = time.perf_counter() - start
        bar.end()

    def not_checked(self) -> list[str]:
        """What this run left out, and why; stages with the same reason together."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for stage in self.report.stages:
            if stage.status != "done":
                reasons.setdefault((stage.status, stage.detail), []).append(stage.stage)
        return self._not_checked + [
            f"{', '.join(stages)} ({status}): {detail.rstrip('.')}."
            for (status, detail), stages in reasons.items()
        ]

    def _trace(self, result: StageResult, say: Callable[[str], None]) -> str:
        if not self._subject.traceable:
            raise _Skip("for a TPUEstimator only: other programs are traced when they are compiled")
        traces = self._all_traces()
        result.findings += trace_findings(traces)
        for trace in traces:
            if trace.borrowed_input:
                self._not_checked.append(
                    f"Mode {trace.mode} with an input_fn of its own: the training one stood in for it."
                )
        built = [trace.mode for trace in traces if trace.error is None]
        return f"graphs built for {', '.join(built)}" if built else "no graph could be built"

    def _read(self, result: StageResult, say: Callable[[str], None]) -> str:
        traces = self._all_traces() if self._subject.traceable else []
        result.findings += self._subject.read(traces, self.report.cores)
        if not self._subject.traceable:
            self._not_checked.append(
                "Gradients, settings and the input pipeline, which are read for a TPUEstimator only."
            )
            return "program of train, its ops and types"
        built = [trace.mode for trace in traces if trace.error is None]
        return f"programs of {', '.join(built)}" if built else "no program to read"

    def _compile(self, result: StageResult, say: Callable[[str], None]) -> str:
        said = []
        for mode in self._modes_to_compile():
            try:
                program = self._program(mode)
                say(f"{program.name} for {self.report.topology}")
                compiled = compile.compile_program(program, self.report.topology, progress=say)
            except compile.CompilerMissing as error:
                raise _Skip(f"cannot be checked here: {error}") from error
            except (CannotLower, InputUnfit) as error:
                if mode == "train":
                    raise
                said.append(self._cannot_lower(result, mode, error)[1])
                continue
            if mode == "train":
                self._compiled = compiled
            result.findings = merged([*result.findings, *compiled.findings])
            self.report.compiled.append(
                CompiledStep(f"{program.mode} step", compiled.memory, compiled.cost)
            )
            said.append(f"{program.mode} step {_outcome(compiled)}")
        if self._largest_batch and self._compiled:
            result.figures.append(self._find_largest_batch(say))
        return ", ".join(said)

    def _find_largest_batch(self, say: Callable[[str], None]) -> Figure:
        cores, start = self.report.cores, self._program("train").per_core_batch
        largest = compile.largest_batch(
            lambda batch: self._subject.lower(cores, global_batch=batch * cores),
            self.report.topology,
            known=self._compiled,
            upto=16 * start if self._compiled.fits else start,
            progress=say,
        )
        return Figure("largest batch a core that fits", float(largest), "examples", Kind.COMPILER)

    def _run(self, result: StageResult, say: Callable[[str], None]) -> str:
        program = self._program("train")
        cores = affordable_cores(program)
        batch = affordable_batch(program, self._compiled, cores, self._steps)
        if (cores, batch) != (program.cores, program.per_core_batch):
            self._not_checked.append(
                f"A step of {program.cores} cores with {program.per_core_batch} examples each: to spare "
                f"this machine, {cores} virtual cores ran it with {batch} each."
            )
            program = self._subject.lower(cores, global_batch=batch * cores)
        one_core = None
        if virtual.comparable(program):
            say("lowering for one core with the whole batch, to compare")
            try:
                one_core = self._subject.lower(1, global_batch=batch * cores)
            except (CannotLower, InputUnfit) as error:
                self._not_checked.append(f"The loss against one core's: {_first_line(error)}.")
        try:
            steps = self._subject.most_steps or self._steps
            ran = virtual.run_program(program, steps=steps, one_core=one_core, progress=say)
        except compile.CompilerMissing as error:
            raise _Skip(f"cannot be checked here: {error}") from error
        result.findings += ran.findings
        if not ran.losses and not ran.findings:
            raise _Skip("; ".join(ran.notes))
        losses = [sum(step) / len(step) for step in ran.losses]
        result.figures += [
            Figure(f"mean loss of the cores, step {number}", loss, "", Kind.MEASURED)
            for number, loss in enumerate(losses, 1)
        ]
        self._not_checked += [note for note in ran.notes if note.startswith("Not ")]
        said = [note for note in ran.notes if not note.startswith("Not ")]
        before = " (from the cache: the same program, values and batches)" if ran.cached else ""
        return " ".join([f"{len(losses)} steps on {cores} virtual cores{before}.", *said])

    def _feed(self, result: StageResult, say: Callable[[str], None]) -> str:
        place = self._subject.feed_where
        with self._subject.feed(self.report.cores) as (source, batch_size):
            if source is None:
                raise _Skip("an example batch was given, and no input pipeline")
            try:
                rate = feed.measure(
                    source, seconds=self._feed_seconds, batch_size=batch_size, progress=say
                )
            except feed.NoBatches:
                result.findings.append(rules.finding("TPU504", place))
                return "no batch"
            except Exception as error:  # whatever the learner's pipeline raises is the result
                result.findings.append(
                    rules.finding(
                        "TPU503",
                        source.place(error) or place,
                        message=str(error),
                        error=type(error).__name__,
                    )
                )
                return "the input pipeline failed"
        self.report.feed = rate.figures()
        try:
            cost = self._compiled.cost if self._compiled else {}
            wanted = demand.of_host(cost, self.report.topology)
            found, figures = demand.compare(rate, wanted, place)
            result.findings += found
            self.report.feed |= figures
        except demand.Unknown as why:
            self._not_checked.append(f"Whether the input pipeline is fast enough: {why}")
        batches = rate.batches_in_pass
        said = "the data did not end" if batches is None else f"{batches} batches in the dataset"
        return (
            f"{said}; measured on {rate.earlier}, nothing changed since" if rate.earlier else said
        )

    def _cannot_lower(
        self, result: StageResult, mode: str, error: CannotLower | InputUnfit
    ) -> tuple[str, str]:
        """Status and detail of a stage whose step cannot be lowered; its finding goes to `result`.

        What an earlier stage said of the same line is not said again.
        """
        detail = f"the {mode} step cannot be lowered: {_first_line(error)}"
        if isinstance(error, InputUnfit):
            return "failed", detail
        if error.only_here:
            return "skipped", f"cannot be checked here: {detail}"
        found = error.finding()
        if not any(_line(found) == _line(other) for other in self.report.findings):
            result.findings.append(found)
        return "failed", detail

    def _all_traces(self) -> list[Trace]:
        if self._traces is None:
            self._traces = self._subject.trace(self.report.cores)
        return self._traces

    def _modes_to_compile(self) -> list[str]:
        evaluated = [t.mode for t in self._traces or () if t.mode == "eval" and t.error is None]
        return ["train", *evaluated]

    def _program(self, mode: str) -> Program:
        """The lowered step of `mode`, lowered once; so with the error where it cannot be."""
        trace = next((trace for trace in self._traces or () if trace.mode == mode), None)
        if trace and trace.error is not None:
            raise _Skip(f"the {mode} graph could not be built: mend what trace found first")
        if mode not in self._programs:
            # An evaluation that was only probed has no batch size of its own.
            batch = self._program("train").global_batch if trace and trace.probe else None
            try:
                self._programs[mode] = self._subject.lower(self.report.cores, mode, batch)
            except (CannotLower, InputUnfit) as error:
                self._programs[mode] = error
        program = self._programs[mode]
        if isinstance(program, Exception):
            raise program
        return program


def _outcome(compiled: compile.Compiled) -> str:
    outcome = (
        "compiled"
        if compiled.fits
        else "does not fit"
        if compiled.memory.get("needed")
        else "refused"
    )
    return f"{outcome} (from the cache)" if compiled.cached else outcome


def _line(finding: Finding) -> str:
    """The learner's line that a finding points at, without the op."""
    return finding.where.partition(" (op ")[0]


def _first_line(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return textwrap.shorten(next(filter(None, lines), ""), 160)


def _in_words(error: Exception) -> str:
    """Type and first line of an exception, and the learner's line where it passed through one."""
    place = source.place(error)
    return f"{type(error).__name__}: {_first_line(error)}" + (f" (at {place})" if place else "")
