"""The report: the outcome of a dry run, which shows itself in a terminal, in a notebook and as a page."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab_utils.common import files
from lab_utils.dry_run.records import Span
from lab_utils.dry_run.report import code_hosts, html, terminal
from lab_utils.dry_run.report.outcome import Outcome

# The forms in which a report can be printed, by the names that `--format` accepts.
FORMATS: dict[str, Callable[[Outcome], str]] = {
    "text": terminal.render,
    "html": html.page,
    "json": Outcome.to_json,
    "sarif": code_hosts.sarif,
    "github": code_hosts.github,
}


@dataclass(repr=False)
class Report(Outcome):
    """The outcome of a dry run; shows itself in a terminal (`print`) and in a notebook."""

    def __post_init__(self) -> None:
        # Not a field: a trace is a file of its own, and no part of the JSON.
        self.spans: list[Span] = []

    def write_trace(self, path: str | Path) -> None:
        """Writes the first compiled step as a trace, which ui.perfetto.dev opens (Trace Event Format).

        Its instructions stand one after another, a nanosecond for an estimated cycle. The compiler estimates
        no cycles of collectives and copies: they have no length here.

        Raises:
            ValueError: nothing was compiled.
        """
        if not self.spans:
            raise ValueError(
                "there is no compiled step to trace: the compile stage did not run, or it failed"
            )
        name = {"name": f"{self.compiled[0].name}: estimated cycles"}
        events: list[dict] = [{"ph": "M", "pid": 1, "name": "process_name", "args": name}]
        start = 0.0
        for span in self.spans:
            events.append(_event(span, start))
            start += span.cycles
        files.write(path, json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))

    def write_html(self, path: str | Path) -> None:
        """Writes the report as one HTML page that needs nothing else."""
        files.write(path, html.page(self))

    def __repr__(self) -> str:
        return f"<Report on {self.subject}: {self.verdict_sentence}>"

    def __str__(self) -> str:
        return terminal.render(self)

    def _repr_html_(self) -> str:
        return html.fragment(self)


def _event(span: Span, start: float) -> dict:
    """A trace's event; the format counts in microseconds, and `start` in cycles."""
    return {
        "ph": "X",
        "pid": 1,
        "tid": 1,
        "name": span.place.position or span.op,
        "cat": span.opcode,
        "ts": start / 1000,
        "dur": span.cycles / 1000,
        "args": {
            "line": str(span.place),
            "HBM bytes": span.bytes,
            "matmul FLOP": span.flops,
            "op": span.op,
            "instruction": span.name,
            "rounds": span.rounds,
        },
    }
