"""A page in the style of the reports, which needs nothing else."""

from html import escape
from pathlib import Path

from lab_utils.notebook import look

_COLOURS = {
    "error": look.WRONG,
    "warning": look.UNSURE,
    "note": look.NOTE,
    "ready": look.RIGHT,
} | look.MEMORY
_VARIABLES = "".join(f"--{name}:{colour};" for name, colour in _COLOURS.items())
_CSS = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
STYLE = f".lu-dry-run{{{_VARIABLES}}}\n{_CSS}"


def document(title: str, body: str) -> str:
    """A whole HTML document around `body`, in the report's style, light or dark as the system asks."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head>"
        f'<body class="lu-page"><div class="lu-dry-run">{body}</div></body></html>\n'
    )
