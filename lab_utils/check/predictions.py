"""A number that the learner writes down before running a cell, and what came out."""

import math
from dataclasses import dataclass
from html import escape
from numbers import Real

from lab_utils.check import progress, shown
from lab_utils.check.outcome import SOFT, STYLE
from lab_utils.notebook import look


@dataclass(frozen=True)
class Prediction:
    """A prediction; `value` is None where the learner made none."""

    name: str
    value: float | None
    unit: str = ""

    def __repr__(self) -> str:
        if self.value is None:
            return f"No prediction of {self.name} yet: replace the dots by a number."
        return f"You predict {_number(self.value, self.unit)} for {self.name}."


@dataclass(frozen=True)
class Comparison:
    """A prediction beside the figure that came out, and the kind of that figure."""

    prediction: Prediction
    figure: float
    kind: str

    def __repr__(self) -> str:
        unit = self.prediction.unit
        yours = self.prediction.value
        said = "no prediction" if yours is None else f"you said {_number(yours, unit)}"
        return f"{self.prediction.name}: {said}; {self.kind}: {_number(self.figure, unit)}."

    def _repr_html_(self) -> str:
        yours, unit = self.prediction.value, self.prediction.unit
        rows = [] if yours is None else [("you said", yours, look.NEUTRAL)]
        rows.append((self.kind, self.figure, look.BAR))
        largest = max(abs(value) for _, value, _ in rows) or 1.0
        bars = "".join(
            f'<tr style="background:none"><td style="text-align:right;{SOFT}">{escape(label)}</td>'
            f'<td style="width:50%;text-align:left"><span style="display:inline-block;height:10px;'
            f'border-radius:2px;background:{colour};width:{_share(value, largest):.0f}%"></span></td>'
            f'<td style="text-align:left;white-space:nowrap">{escape(_number(value, unit))}</td></tr>'
            for label, value, colour in rows
        )
        none = f'<span style="{SOFT}">no prediction</span>' if yours is None else ""
        return (
            f'<div style="{STYLE.format(colour=look.NOTE)}"><b>{escape(self.prediction.name)}</b> {none}'
            f'<table style="margin:2px 0 0;border:none;width:100%">{bars}</table></div>'
        )


def predict(name: str, value: float, unit: str = "") -> Prediction:
    """Keeps a prediction until `compare` asks for it; `...` for none.

    Raises:
        TypeError: `value` is neither a number nor `...`.
    """
    if value is ...:
        return shown.in_turn(Prediction(name, None, unit))
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"a prediction is a number, not {value!r}")
    progress.record_prediction(name, float(value))
    return shown.in_turn(Prediction(name, float(value), unit))


def compare(name: str, figure: float, unit: str = "", kind: str = "measured here") -> Comparison:
    """The prediction kept under that name beside the figure that came out.

    Args:
        name: as given to `predict`.
        figure: what came out.
        unit: of both.
        kind: "measured here", "computed by the TPU compiler", or "quoted: " and the source.
    """
    predicted = Prediction(name, progress.prediction(name), unit)
    return shown.in_turn(Comparison(predicted, float(figure), kind))


def _number(value: float, unit: str) -> str:
    return f"{value:,.4g} {unit}".strip() if abs(value) < 1e4 else f"{value:,.0f} {unit}".strip()


def _share(value: float, largest: float) -> float:
    return max(1.0, 100 * abs(value) / largest) if math.isfinite(value / largest) else 100.0
