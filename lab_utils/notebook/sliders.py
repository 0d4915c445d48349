"""Sliders over stored answers of the TPU compiler: batch, topology, layout. They work offline.

A notebook shows one as the value of a cell. Where its script may not run (a notebook that is not trusted), a
table of the same answers stands there. `python -m lab_utils.teach.make_sliders` asks the compiler again.
"""

import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

from lab_utils.notebook.look import BAR

_WIDTH = 240  # pixels of the longest bar
_ABOUT = {
    "topology": "A train step of a block [1024, 4096, 1024] for 1,024 examples, split over the cores.",
}
# Moves the table away and shows one of its rows, chosen by a slider. No address, no library.
_SCRIPT = """
document.querySelectorAll(".lu-slider-NAME:not([data-on])").forEach(function (root) {
  root.setAttribute("data-on", "");
  var data = DATA, table = root.querySelector("table"), shown = document.createElement("div");
  var label = document.createElement("label"), range = document.createElement("input");
  range.type = "range"; range.min = 0; range.max = data.rows.length - 1; range.value = 0;
  range.setAttribute("data-lm-suppress-shortcuts", "");  // JupyterLab takes the arrow keys otherwise
  range.style.cssText = "width:280px;vertical-align:middle;margin:0 12px";
  var place = document.createElement("b"), rows = document.createElement("div");
  rows.setAttribute("aria-live", "polite");
  label.append(data.axis, range, place); shown.append(label, rows);
  function show() {
    var row = data.rows[range.value];
    place.textContent = row[0]; range.setAttribute("aria-valuetext", data.axis + " " + row[0]);
    rows.replaceChildren();
    data.names.forEach(function (name, n) {
      var line = document.createElement("div"), bar = document.createElement("span");
      bar.style.cssText = "display:inline-block;height:10px;margin-right:8px;background:BAR;width:" +
        Math.max(1, WIDTH * row[1][n] / data.most[n]) + "px";
      line.style.marginTop = "6px";
      line.append(bar, name + ": " + row[1][n].toLocaleString("en")); rows.append(line);
    });
  }
  range.addEventListener("input", show); show();
  table.replaceWith(shown);
});
"""


@dataclass(frozen=True)
class Slider:
    """Figures by place: `rows` maps each place of `axis` to figures by name."""

    name: str
    axis: str
    rows: dict[str, dict[str, float]]
    compiler: str

    @property
    def names(self) -> list[str]:
        """Of the figures of a place."""
        return list(next(iter(self.rows.values())))

    @property
    def source(self) -> str:
        """What the figures belong to, and how they are known."""
        return f"{_ABOUT[self.name]} Computed by the TPU compiler ({self.compiler}), peaks quoted."

    def __str__(self) -> str:
        table = [[self.axis, *self.names]]
        table += [
            [place, *(f"{own[name]:,}" for name in self.names)] for place, own in self.rows.items()
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        return "\n".join([*lines, self.source])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        most = [max(own[name] for own in self.rows.values()) or 1 for name in self.names]
        data = {
            "axis": self.axis,
            "names": self.names,
            "most": most,
            "rows": [[place, list(own.values())] for place, own in self.rows.items()],
        }
        script = (
            _SCRIPT.replace("NAME", self.name).replace("BAR", BAR).replace("WIDTH", str(_WIDTH))
        )
        script = script.replace("DATA", json.dumps(data, ensure_ascii=False))
        head = "".join(f"<th>{escape(each)}</th>" for each in (self.axis, *self.names))
        body = "".join(
            f"<tr><td>{escape(place)}</td>{''.join(f'<td>{own[name]:,}</td>' for name in self.names)}</tr>"
            for place, own in self.rows.items()
        )
        classes = f'class="lu-slider lu-slider-{self.name}" style="overflow-x:auto"'
        return (
            f"<div {classes}><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{escape(self.source)}</p></div><script>{script}</script>"
        )


@cache
def _stored() -> dict:
    text = resources.files("lab_utils.notebook").joinpath("sliders.json").read_text("utf-8")
    return json.loads(text)


def slider(name: str) -> Slider:
    """The slider of that name, such as "topology".

    Raises:
        ValueError: there is none.
    """
    if name not in _ABOUT:
        raise ValueError(f"there is no slider {name!r}; there are {', '.join(_ABOUT)}")
    own = _stored()[name]
    return Slider(name, own["axis"], own["rows"], _stored()["compiler"])
