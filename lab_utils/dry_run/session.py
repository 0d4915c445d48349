"""What one dry run knows so far: each stage takes from it what earlier ones found out, and adds its own."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from lab_utils.common.source import Place
from lab_utils.dry_run import cache as results
from lab_utils.dry_run import rules
from lab_utils.dry_run.engine import Silent, apply_rules
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private import process
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.progress import progress as shown
from lab_utils.dry_run.records import (
    CompiledStep,
    Feed,
    Finding,
    Mode,
    Numerics,
    StageResult,
    Status,
)
from lab_utils.dry_run.wording import first_line, in_words
from lab_utils.dry_run.workload import Trace, Workload
from lab_utils.runtime import places

# Side by side go programs of at most so many bytes, where so many bytes of memory are free.
_SMALL, _ROOM = 2**20, 3 * 2**30


class Skip(Exception):
    """A stage has nothing to do here; the message says why. UNNEEDED: it is one of other programs."""

    def __init__(self, why: str, status: Status = Status.SKIPPED) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class Session:
    """The workload, what was asked for, and what is known of it.

    Attributes:
        steps: how many train steps to run on virtual cores.
        on_tpu: run the steps also with a TPU's matmuls; `numerics` is what they did.
        say: told what a stage is doing.
        results: of the stages so far.
        result: that of the stage under way.
        compiled: the steps that were compiled, the train step first.
        not_checked: what was left out, and why.
        silent: the rules that could not say anything.
        not_judged: the steps that could not be lowered here: there is no verdict without them.
    """

    workload: Workload
    topology: str
    cores: int
    steps: int = 3
    on_tpu: bool = False
    numerics: Numerics | None = None
    say: Callable[[str], None] = lambda what: None
    results: list[StageResult] = field(default_factory=list)
    result: StageResult | None = None
    compiled: list[CompiledStep] = field(default_factory=list)
    feed: Feed = field(default_factory=Feed)
    not_checked: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    silent: Silent = field(default_factory=Silent)
    _traces: list[Trace] | None = None
    _facts: list[Facts] | None = None
    _programs: dict[Mode, Program | Exception] = field(default_factory=dict)

    def add(self, findings: list[Finding]) -> None:
        """Adds findings of the stage under way; those that only follow from another's mistake go."""
        self.result.findings += [rules.in_lab(item, self.workload.labs) for item in findings]
        found = {item.rule for result in self.results for item in result.findings}
        for result in self.results:
            result.findings = [item for item in result.findings if item.because_of not in found]

    def traces(self) -> list[Trace]:
        """The graphs of the workload, built once."""
        if self._traces is None:
            self._traces = self.workload.trace(self.cores)
        return self._traces

    def facts(self) -> list[Facts]:
        """What is known of each mode of the workload before a compilation."""
        if self._facts is None:
            self._facts = self.workload.facts(self.traces(), self.cores)
        return self._facts

    def apply_rules(self) -> None:
        """Adds what the rules of the stage under way find in each mode."""
        stage, silent = self.result.stage, self.silent
        found = (apply_rules(facts, stage, silent) for facts in self.facts())
        self.add(unique(itertools.chain(*found)))

    @property
    def mode(self) -> Mode:
        """Of the step that is judged first: training, but for a program that was seen to train nothing."""
        return self.workload.observed.first_mode

    @property
    def devices(self) -> int | None:
        """How many cores take part in the first step: one where a JAX step has no sharding.

        None for a JAX step that was not lowered: then it is not known.
        """
        program = self._programs.get(self.mode)
        if isinstance(program, Program) and program.partition is not None:
            return program.partition.cores
        return None if self.workload.backend == "JAX" else self.cores

    def modes_to_compile(self) -> list[Mode]:
        """The first, which is training's most often, and evaluation where its graph was built."""
        traced = [trace.mode for trace in self._traces or () if trace.error is None]
        return list(dict.fromkeys([self.mode, *(mode for mode in traced if mode is Mode.EVAL)]))

    def program(self, mode: Mode | None = None) -> Program:
        """Returns the step of `mode`, or of the first mode, lowered. That is done once, and an error is kept.

        Raises:
            Skip: its graph could not be built.
            CannotLower: it cannot be lowered.
        """
        mode = mode or self.mode
        trace = next((trace for trace in self._traces or () if trace.mode == mode), None)
        if trace and trace.error is not None:
            rules = (facts.stopped_by for facts in self._facts or () if facts.mode is mode)
            by = next(rules, "")
            first = f"fix {by} first" if by else in_words(trace.error)
            raise Skip(f"the {mode} graph could not be built: {first}")
        if mode not in self._programs:
            # An evaluation that was only probed has no batch size of its own.
            batch = self.program().global_batch if trace and not trace.global_batch else None
            try:
                self._programs[mode] = self.workload.lower(self.cores, mode, batch)
            except CannotLower as error:
                self._programs[mode] = error
        program = self._programs[mode]
        if isinstance(program, Exception):
            raise program
        return program

    def cannot_lower(self, mode: Mode, error: CannotLower) -> tuple[Status, str]:
        """Status and detail of a stage whose step cannot be lowered; its finding is added.

        What an earlier stage said of the same line is not said again, nor this rule of it.
        """
        if isinstance(error, InputUnfit):
            return Status.FAILED, f"the {mode} step cannot be lowered: {error}"
        detail = f"the {mode} step cannot be lowered: {first_line(error)}"
        if error.only_here:
            where = f" (at {error.where})" if error.where else ""
            step = f"the {mode} step, which cannot be lowered here"
            self.not_judged += [] if step in self.not_judged else [step]
            return Status.SKIPPED, f"cannot be checked here: {detail}{where}"
        finding = error.finding()
        at_line = (
            old.rule
            for result in self.results
            for old in result.findings
            if old.place.source_line == finding.place.source_line
            and (result is not self.result or old.rule == finding.rule)
        )
        cause = next(at_line, "")
        self.add([replace(finding, because_of=cause)])
        return Status.FAILED, detail


def unique(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each rule once at a line, though several modes and several of its ops raise it."""
    first: dict[tuple[str, Place], Finding] = {}
    for item in findings:
        first.setdefault((item.rule, item.place.source_line), item)
    return list(first.values())


@contextmanager
def working(
    cache: bool, progress: bool, limit: float | None, so_far: Callable[[], str] = lambda: ""
) -> Iterator[Callable[[str], None]]:
    """Context manager: yields what says what goes on. `cache`, `progress` and `limit` are those of `dry_run`.

    `so_far` is what has been found.
    """
    ticking = shown("starting", so_far) if progress else nullcontext(lambda what: None)
    caching = nullcontext() if cache else results.disable()
    with caching, process.limited(limit), ticking as say:
        yield say


def leaves_room(program: Program) -> bool:
    """Whether other processes may work beside the compiler: its memory grows with the program."""
    return len(program.hlo) <= _SMALL and places.free_memory() >= _ROOM
