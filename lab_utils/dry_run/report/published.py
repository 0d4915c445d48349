"""How near real TPUs came to such bounds, as published: the table of published.yaml."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import yaml


@cache
def published() -> tuple[SimpleNamespace, ...]:
    """The rows, in the order of the file, which says what the fields mean; `read` is a string."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return tuple(
        SimpleNamespace(**row | {"read": str(row["read"])}) for row in yaml.safe_load(text)
    )


def reached() -> str:
    """A sentence: what share of their bounds the published programs of each kind reached."""
    kinds: dict[str, list[float]] = {}
    for row in published():
        kinds.setdefault(row.kind, []).append(row.of_bound)
    shown = ", ".join(f"{kind}: {_range(shares)}" for kind, shares in kinds.items())
    return (
        f"Published programs reached these shares of such bounds on real TPUs ({shown}; sources in README); "
        "yours was not measured."
    )


def _range(shares: list[float]) -> str:
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return low if low == high else f"{low.rstrip('%')} to {high}"
