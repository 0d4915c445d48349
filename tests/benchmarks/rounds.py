"""What several rounds of a measurement came to, as the benchmarks tell it."""

import statistics
from collections.abc import Sequence


def round_ratios(tops: Sequence[float], bottoms: Sequence[float]) -> list[float]:
    """One over the other within each round, where the machine was as busy for both."""
    return [top / bottom for top, bottom in zip(tops, bottoms, strict=True)]


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Their median, with the least and the greatest where there are several."""
    text = form.format(statistics.median(values))
    if len(values) > 1:
        text += f" [{form.format(min(values))} to {form.format(max(values))}]"
    return text
