"""Slides of each lab, in one file that needs no network: reveal.js, figures and speaker notes are inside."""

import re
import textwrap
from functools import cache
from pathlib import Path

import yaml

from lab_utils.check import sources
from lab_utils.common import files
from lab_utils.teach import pages

STYLES = ("dist/reveal.css", "dist/theme/white.css")
SCRIPTS = ("dist/reveal.js", "plugin/notes/notes.js", "plugin/highlight/highlight.js")
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.S)  # it holds the time


@cache
def read(root: Path) -> dict[int, list[dict]]:
    """The slides of solutions/instructor/slides.yaml by lab."""
    text = (root / "solutions/instructor/slides.yaml").read_text(encoding="utf-8")
    return {int(lab): slides for lab, slides in yaml.safe_load(text).items()}


def minutes(root: Path, lab: int, short: bool = False) -> int:
    """The minutes of the talk before a lab; `short` counts those of its talk of five minutes."""
    slides = read(root)[lab]
    return sum(slide["minutes"] for slide in slides if slide.get("short") or not short)


def deck(root: Path, lab: int, reveal: Path) -> str:
    """The slides of a lab as one HTML page.

    Args:
        root: of the clone.
        lab: its number.
        reveal: the folder of reveal.js 5, as npm unpacks it.

    Raises:
        FileNotFoundError: reveal.js is not there.
        ValueError: a slide names a cell that shows nothing, or a line of code that is not there.
    """
    scripts = [(reveal / name).read_text("utf-8") for name in SCRIPTS]
    slides = read(root)[lab]
    return pages.render(
        "slides.html",
        title=f"{lab:02d} · {sources.labs()[lab]['title']}",
        styles="".join((reveal / name).read_text("utf-8") for name in STYLES),
        scripts=[script.replace("</script", "<\\/script") for script in scripts],
        lecture=minutes(root, lab),
        short=minutes(root, lab, short=True),
        minutes=sources.labs()[lab]["minutes"],
        slides=[(slide, _code(root, lab, slide), _output(root, lab, slide)) for slide in slides],
    )


def store_figures(root: Path, lab: int, outputs: dict[str, list[dict]]) -> None:
    """Takes the SVG of each figure out of a run solution's outputs by cell; stores what slides show.

    A slide is several times as large as a notebook's PNG. A photograph stays a PNG.
    """
    pairs = ((number, slide) for number, slides in read(root).items() for slide in slides)
    on_slides = {_cell(number, slide["show"]) for number, slide in pairs if "show" in slide}
    (root / pages.FIGURES).mkdir(exist_ok=True)
    for before in (root / pages.FIGURES).glob(f"{lab:02d}_*.svg"):
        before.unlink()
    for cell, cell_outputs in outputs.items():
        drawn = [output.get("data", {}).pop("image/svg+xml", None) for output in cell_outputs]
        if (lab, cell) in on_slides:
            kept = [svg for svg in drawn if svg and "<image" not in svg]
            for number, svg in enumerate(kept):
                files.write(pages.figure(root, lab, cell, number), _METADATA.sub("", svg))


def _cell(lab: int, name: str) -> tuple[int, str]:
    """Lab and id of a cell: "drift" is one of `lab`, "02/drift" one of lab 02."""
    other, _, cell = name.rpartition("/")
    return int(other or lab), cell


def _code(root: Path, lab: int, slide: dict) -> tuple[str, str] | None:
    """A part of a cell, and the line to highlight at each click, as reveal.js wants them: "|2|5"."""
    if "code" not in slide:
        return None
    part = slide["code"]
    other, cell = _cell(lab, part["cell"])
    source = pages.cells(root, other)[cell]["source"].splitlines()
    lines = [text for text in source if not text.strip().startswith("# TODO")]

    def line(text: str) -> int:
        for number, code in enumerate(lines):
            if text in code:
                return number
        raise ValueError(f"cell {cell!r} of lab {other:02d} has no line with {text!r}")

    first = line(part["first"]) if "first" in part else 0
    last = line(part["last"]) if "last" in part else len(lines) - 1
    steps = [str(line(text) - first + 1) for text in part["clicks"]]
    return textwrap.dedent("\n".join(lines[first : last + 1])), "|".join(["", *steps])


def _output(root: Path, lab: int, slide: dict) -> str:
    return pages.output(root, *_cell(lab, slide["show"]), slide["title"]) if "show" in slide else ""
