"""What pages are made of: templates, which escape what people wrote, and the solutions' stored outputs."""

import itertools
import json
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from lab_utils.notebook import look

FIGURES = "solutions/instructor/figures"
_ESCAPES = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]"
)  # what a terminal takes for colours, and to clear a line
_LINES = 14  # of printed text, which a slide has room for
LOADER = jinja2.FileSystemLoader(Path(__file__).with_name("templates"))
_TEMPLATES = jinja2.Environment(
    loader=LOADER,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["code"] = lambda text: Markup(look.with_code(str(text)))


def render(template: str, **values: Any) -> str:
    """A page as HTML, which needs nothing but itself."""
    return _TEMPLATES.get_template(template).render(**values)


@cache
def cells(root: Path, lab: int, folder: str = "solutions") -> dict[str, dict]:
    """The code cells of a lab's notebook by id, each with its source as one string.

    Raises:
        ValueError: the folder holds no notebook of that lab.
    """
    paths = list((root / folder).glob(f"{lab:02d}_*.ipynb"))
    if not paths:
        raise ValueError(f"{folder}/ holds no lab {lab:02d}: a clone of the course has it")
    notebook = json.loads(paths[0].read_text(encoding="utf-8"))["cells"]
    code = (cell for cell in notebook if cell["cell_type"] == "code")
    return {cell["id"]: cell | {"source": "".join(cell["source"])} for cell in code}


def figure(root: Path, lab: int, cell: str, number: int = 0) -> Path:
    """Where the SVG of a cell's figure is stored, if slides show it; a cell may have several."""
    return root / FIGURES / f"{lab:02d}_{cell}{f'_{number}' if number else ''}.svg"


def output(root: Path, lab: int, cell: str, about: str = "") -> str:
    """The output of a cell: its figures, described as `about`, else what it printed, else its result as text.

    Raises:
        ValueError: there is no such cell, or it has no output.
    """
    alt = about or f"output of cell {cell}"
    vectors = (figure(root, lab, cell, number) for number in itertools.count())
    pictures = [
        look.picture(vector.read_bytes(), alt, "svg+xml")
        for vector in itertools.takewhile(Path.exists, vectors)
    ]
    if pictures:
        return "".join(pictures)
    texts = []
    for result in cells(root, lab).get(cell, {}).get("outputs", ()):
        data = result.get("data", {})
        if "image/png" in data:
            pictures.append(look.picture("".join(data["image/png"]).replace("\n", ""), alt))
        if result["output_type"] == "execute_result" and "text/html" in data:
            continue  # its text is a repr, such as that of a report; what the cell prints says more
        texts.append("".join(result.get("text", data.get("text/plain", ""))).strip("\n"))
    if pictures:
        return "".join(pictures)
    lines = _ESCAPES.sub("", "\n".join(filter(None, texts))).splitlines()
    if not lines:
        run = f"run `lab_utils.build --execute {lab:02d}`"
        raise ValueError(f"the solution of lab {lab:02d} shows nothing in a cell {cell!r}: {run}")
    more = ["..."] if len(lines) > _LINES else []
    return f"<pre>{escape(chr(10).join(lines[:_LINES] + more))}</pre>"
