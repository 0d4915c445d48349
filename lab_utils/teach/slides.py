"""Slides of each lab, in one file that needs no network: reveal.js, figures and speaker notes are inside."""

from functools import cache
from pathlib import Path

import yaml

from lab_utils.check import sources
from lab_utils.teach import pages, stored

_STYLES = ("dist/reveal.css", "dist/theme/white.css")
_SCRIPTS = ("dist/reveal.js", "plugin/notes/notes.js")


@cache
def of_all(root: Path) -> dict[int, list[dict]]:
    """The slides of solutions/instructor/slides.yaml by lab."""
    text = (root / "solutions/instructor/slides.yaml").read_text(encoding="utf-8")
    return {int(lab): slides for lab, slides in yaml.safe_load(text).items()}


def minutes(root: Path, lab: int) -> int:
    """The minutes of the talk before a lab."""
    return sum(slide["minutes"] for slide in of_all(root)[lab])


def deck(root: Path, lab: int, reveal: Path) -> str:
    """The slides of a lab as one HTML page.

    Args:
        root: of the clone.
        lab: its number.
        reveal: the folder of reveal.js 5, as npm unpacks it.

    Raises:
        FileNotFoundError: reveal.js is not there.
        ValueError: a slide names a cell that shows nothing.
    """
    scripts = [(reveal / name).read_text("utf-8") for name in _SCRIPTS]
    slides = of_all(root)[lab]
    return pages.render(
        "slides.html",
        title=f"{lab:02d} · {sources.labs()[lab]['title']}",
        styles="".join((reveal / name).read_text("utf-8") for name in _STYLES),
        scripts=[script.replace("</script", "<\\/script") for script in scripts],
        lecture=minutes(root, lab),
        minutes=sources.labs()[lab]["minutes"],
        slides=[(slide, _output(root, lab, slide)) for slide in slides],
    )


def _output(root: Path, lab: int, slide: dict) -> str:
    if "show" not in slide:
        return ""
    other, _, cell = str(slide["show"]).rpartition("/")
    return stored.output(root, int(other or lab), cell, slide["title"])
