"""A compiled step as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open."""

import json
from collections.abc import Sequence

from lab_utils.dry_run.records import Span


def perfetto(spans: Sequence[Span], name: str) -> str:
    """JSON of the Trace Event Format: instructions one after another, a nanosecond for an estimated cycle.

    The compiler estimates no cycles of collectives and copies: they have no length here.
    """
    events: list[dict] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"{name}: estimated cycles"}}
    ]
    start = 0.0
    for each in spans:
        shown = {"line": str(each.place), "HBM bytes": each.bytes, "matmul FLOP": each.flops}
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "name": each.place.position or each.op,
                "cat": each.opcode,
                "ts": start / 1000,  # the format counts in microseconds
                "dur": each.cycles / 1000,
                "args": shown | {"op": each.op, "instruction": each.name, "rounds": each.rounds},
            }
        )
        start += each.cycles
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
