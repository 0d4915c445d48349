"""Slides of each lab, in one file that needs no network: reveal.js, figures and speaker notes are inside."""

from html import escape
from pathlib import Path

import yaml

from lab_utils.check import overview
from lab_utils.teach import stored

_STYLE = """
.reveal { font-size: 34px; }
.reveal h2 { text-transform: none; }
.reveal img { width: 75%; height: 400px; object-fit: contain; background: #fff; }
.reveal pre { font-size: 20px; line-height: 1.4; width: 92%; padding: 12px 18px; box-shadow: none;
  white-space: pre-wrap; background: #f3f4f6; }
.reveal ul { text-align: left; }
"""


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
    parts = [
        (reveal / name).read_text("utf-8") for name in ("dist/reveal.css", "dist/theme/white.css")
    ]
    scripts = [
        (reveal / name).read_text("utf-8") for name in ("dist/reveal.js", "plugin/notes/notes.js")
    ]
    safe = [script.replace("</script", "<\\/script") for script in scripts]
    title = f"{lab:02d} · {overview.labs()[lab]['title']}"
    slides = of_all(root)[lab]
    first = (
        f"<section><h2>{escape(title)}</h2><p>{minutes(root, lab)} minutes, then "
        f"{overview.labs()[lab]['minutes']} of your own work</p></section>"
    )
    sections = "\n".join([first, *(_slide(root, lab, slide) for slide in slides)])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{''.join(parts)}{_STYLE}</style></head>\n"
        f'<body><div class="reveal"><div class="slides">\n{sections}\n</div></div>\n'
        f"<script>{safe[0]}</script><script>{safe[1]}</script>\n"
        "<script>Reveal.initialize({hash: true, width: 1280, height: 720, plugins: [RevealNotes]});"
        "</script></body></html>\n"
    )


def _slide(root: Path, lab: int, slide: dict) -> str:
    points = "".join(f"<li>{escape(point)}</li>" for point in slide["points"])
    shown = ""
    if "show" in slide:
        other, _, cell = str(slide["show"]).rpartition("/")
        shown = stored.output(root, int(other or lab), cell, slide["title"])
    note = f"{slide['minutes']} minutes. {slide['note']}"
    return (
        f"<section><h2>{escape(slide['title'])}</h2><ul>{points}</ul>{shown}"
        f'<aside class="notes">{escape(note)}</aside></section>'
    )
