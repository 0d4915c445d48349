"""A report for notebooks that are not trusted: JupyterLab then drops style sheets and SVG, nothing else.

So each element carries the light theme's style, and each SVG stands beside a still of it in an <img>.
Where the style sheet is kept it prevails over both: all its declarations are marked important.
"""

import base64
import re
from functools import cache
from html import escape
from html.parser import HTMLParser

from lab_utils.dry_run.report.document import STYLE

_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_VOID = ("br", "hr", "img", "input", "meta", "link")
_SVG = re.compile(r"<svg.*?</svg>", re.S)
_DESCRIPTION = re.compile(r"<desc>(.*?)</desc>", re.S)
_STILL = "display:block;width:100%;max-width:560px"
_SWITCH = ".lu-dry-run .still{display:none}.lu-dry-run .drawn{display:block}"


def untrusted(body: str) -> str:
    """The body of a report with its style sheet, inline styles and stills, as one element."""
    styler = _Styler()
    styler.feed(f'<div class="lu-dry-run">{_SVG.sub(_with_still, body)}</div>')
    styler.close()
    opening, rest = "".join(styler.parts).split(">", 1)
    return f"{opening}><style>{_sheet()}</style>{rest}"


@cache
def _sheet() -> str:
    """The style sheet for a notebook, each declaration important."""
    sheet = ""
    for selectors, text in _RULE.findall(_notebooks() + _SWITCH):
        declarations = (line.strip() for line in text.split(";") if line.strip())
        kept = ";".join(f"{declaration}!important" for declaration in declarations)
        sheet += f"{' '.join(selectors.split())}{{{kept}}}"
    return sheet


def _with_still(found: re.Match) -> str:
    description = _DESCRIPTION.search(found[0])[1]
    encoded = base64.b64encode(still(found[0]).encode()).decode()
    return (
        f'<div class="drawn" style="display:none">{found[0]}</div><img class="still" style="{_STILL}" '
        f'alt="{description}" src="data:image/svg+xml;base64,{encoded}"/>'
    )


def still(drawing: str) -> str:
    """An SVG of the report as a file of its own: the light theme's colours, on a white card."""
    sheet = "".join(
        f"{selector.removeprefix('.lu-dry-run ').removeprefix('svg ')}{{{_resolved(text)}}}"
        for selector, text in _rules()
        if selector.startswith(".lu-dry-run svg ") or "fill:" in text
    )
    opening, rest = drawing.split(">", 1)
    font = "text{font:13px system-ui,sans-serif}"
    card = '<rect width="100%" height="100%" rx="6" fill="#fff"/>'
    return f"{opening}><style>{font}{sheet}</style>{card}{rest}"


class _Styler(HTMLParser):
    """Copies HTML and gives each element outside of drawings the style that the sheet has for it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self.open: list[tuple[str, frozenset[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        element = (tag, frozenset((named.get("class") or "").split()))
        raw = self.get_starttag_text() or ""
        drawn = any(name == "svg" for name, _ in self.open) or tag == "svg"
        if not drawn and "style" not in named and (style := _style([*self.open, element])):
            raw = f'{raw[:-1]} style="{escape(style, quote=True)}">'
        self.parts.append(raw)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")


def _style(path: list[tuple[str, frozenset[str]]]) -> str:
    """The declarations of the sheet for the last element of `path`, later and longer selectors last."""
    found: dict[str, str] = {}
    matching = [(selector.count(" "), text) for selector, text in _rules() if _fits(selector, path)]
    for _, text in sorted(matching, key=lambda each: each[0]):
        for declaration in _resolved(text).split(";"):
            name, colon, value = declaration.partition(":")
            if colon and not name.startswith("--"):
                found[name] = value
    return ";".join(f"{name}:{value}" for name, value in found.items())


def _fits(selector: str, path: list[tuple[str, frozenset[str]]]) -> bool:
    *above, last = selector.split()
    if not _is(last, path[-1]):
        return False
    ancestors = iter(path[:-1])
    return all(any(_is(part, element) for element in ancestors) for part in above)


def _is(part: str, element: tuple[str, frozenset[str]]) -> bool:
    tag, *classes = part.split(".")
    return tag in ("", element[0]) and element[1] >= set(classes)


@cache
def _rules() -> list[tuple[str, str]]:
    """(selector, declarations) of the sheet, one selector each."""
    return [
        (" ".join(selector.replace(">", " ").split()), ";".join(map(str.strip, text.split(";"))))
        for selectors, text in _RULE.findall(_notebooks())
        for selector in selectors.split(",")
        if ".lu-page" not in selector and "*" not in selector
    ]


def _notebooks() -> str:
    """What the style sheet says to notebooks, without comments: at its end it speaks of pages alone."""
    return re.sub(r"/\*.*?\*/", "", STYLE, flags=re.S).split("@media")[0]


def _resolved(text: str) -> str:
    """Declarations with the values that the sheet's variables have without a theme: the light one's."""
    text = re.sub(r":\s+", ":", text)
    # Of these two the sanitizer keeps nothing.
    text = text.replace("color:inherit", "color:var(--fg)")
    text = text.replace("overflow-wrap:anywhere", "overflow-wrap:break-word")
    return re.sub(r"var\((--[a-z0-9]+)\)", lambda found: _variables()[found[1]], text)


@cache
def _variables() -> dict[str, str]:
    root = ";".join(text for selector, text in _rules() if selector == ".lu-dry-run")
    found = re.findall(r"(--[a-z0-9]+):\s*([^;]+)", root)
    return {name: re.sub(r"^var\([^,]+,(.*)\)$", r"\1", value, flags=re.S) for name, value in found}
