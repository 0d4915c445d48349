"""A number that the learner writes down before running a cell, and what came out."""

import math
from html import escape
from numbers import Real

from lab_utils.check import progress
from lab_utils.check.outcome import SOFT, Card, display_in_notebook
from lab_utils.notebook import look


def predict(name: str, value: float, unit: str = "") -> Card | None:
    """Keeps a prediction until `compare` asks for it; `...` for none."""
    if value is ...:
        text = f"No prediction of {name} yet: replace the dots with a number."
    elif not isinstance(value, Real) or isinstance(value, bool):
        text = f"A prediction of {name} is a number, not {value!r}: leave the unit out."
    else:
        progress.record_prediction(name, float(value))
        text = f"You predict {_number(float(value), unit)} for {name}."
    return display_in_notebook(Card(text))


def compare(name: str, figure: float, unit: str = "", kind: str = "measured here") -> Card | None:
    """The prediction kept under that name beside the figure that came out.

    Args:
        name: as given to `predict`.
        figure: what came out.
        unit: of both.
        kind: "measured here", "computed by the TPU compiler", or "quoted: " and the source.
    """
    guess, figure = progress.prediction(name), float(figure)
    none = guess is None
    answer = "no prediction" if none else f"you said {_number(guess, unit)}"
    rows = [] if none else [("you said", guess, look.NEUTRAL)]
    rows.append((kind, figure, look.BAR))
    largest = max(abs(value) for _, value, _ in rows) or 1.0
    bars = "".join(
        f'<tr style="background:none"><td style="text-align:right;{SOFT}">{escape(label)}</td>'
        f'<td style="width:50%;text-align:left"><span style="display:inline-block;height:10px;'
        f'border-radius:2px;background:{colour};width:{_share(value, largest):.0f}%"></span></td>'
        f'<td style="text-align:left;white-space:nowrap">{escape(_number(value, unit))}</td></tr>'
        for label, value, colour in rows
    )
    remark = f'<span style="{SOFT}">no prediction</span>' if none else ""
    table = f'<table style="margin:2px 0 0;border:none;width:100%;table-layout:auto">{bars}</table>'
    text = f"{name}: {answer}; {kind}: {_number(figure, unit)}."
    return display_in_notebook(Card(text, f"<b>{escape(name)}</b> {remark}{table}"))


def _number(value: float, unit: str) -> str:
    return f"{value:,.4g} {unit}".strip() if abs(value) < 1e4 else f"{value:,.0f} {unit}".strip()


def _share(value: float, largest: float) -> float:
    return max(1.0, 100 * abs(value) / largest) if math.isfinite(value / largest) else 100.0
