"""The colours, marks and widths of every page, plot and message.

Dark enough for text on white (contrast of 4.5 to 1 or more), and the same everywhere: green for right and
ready, red for wrong and errors, amber for warnings and what cannot be checked, blue for notes.
"""

import base64
import contextlib
import textwrap
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Areas, lines and titles of figures, which show on white and on JupyterLab's dark theme (4 to 1 on both).
FILLED, BAR, ALARM = "#2e8b4f", "#4a7fc1", "#d6453d"
RIGHT, WRONG, UNSURE, NOTE = "#1e6b34", "#b3261e", "#8a5a00", "#2f5f9e"
NEUTRAL, FAINT = "#6e7781", "#c9ced6"
TEXT = "#1f2328"
# The labs' drawings: fills, and the ink that reads on them.
INK, CORE, HOST, DATA, IDLE = "#333333", "#f2b36b", "#cfe3d4", "#cfd8ea", "#ffffff"
# The parts of a core's memory in the dry run's bars.
MEMORY = {"arguments": "#3f72af", "temporaries": "#b3611a", "outputs": "#278277", "code": "#8d62a8"}
# Figures have no ground of their own, and axes and text of a grey that reads on white and on a dark page.
# IPython asks JupyterLab for a white ground where all tick labels are darker than half, and for a dark one
# where all are lighter: those of x are just below, those of y just above.
_FIGURES = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "text.color": NEUTRAL,
    "axes.labelcolor": NEUTRAL,
    "axes.edgecolor": NEUTRAL,
    "xtick.color": NEUTRAL,
    "ytick.color": "#7d8289",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
WIDTH = 80  # signs in a printed line: JupyterLab breaks a longer one inside a word where the window is narrow


def style_figures() -> None:
    """From here on all Matplotlib figures of this process read on a light and on a dark ground."""
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.rcParams.update(_FIGURES)


def wrapped(text: str) -> str:
    """Each line of `text` broken between words at `WIDTH` signs; what follows is indented two more.

    A word that is longer stays whole: a path, an address, a name.
    """
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        options = {"break_long_words": False, "break_on_hyphens": False}
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=f"{indent}  ", **options) or [""]
    return "\n".join(lines)


def show(figure: "Figure", alt: str) -> None:
    """Shows a figure below its cell, with a text for those who cannot see it; elsewhere prints that text.

    JupyterLab 4 gives a picture no text, so the picture comes as HTML too, which JupyterLab prefers.
    """
    from IPython import get_ipython
    from IPython.display import display
    from matplotlib import pyplot

    pyplot.draw_if_interactive()  # loads a notebook's backend, which says in which formats figures are shown
    pyplot.close(figure)  # else it is shown again at the end of the cell
    shell = get_ipython()
    if shell is None:
        print(alt)
        return
    data, metadata = shell.display_formatter.format(figure)
    if png := data.get("image/png"):
        data["text/html"] = picture(png, alt)
        metadata["image/png"] = {"alt": alt}
    display(data | {"text/plain": alt}, metadata=metadata, raw=True)


def show_svg(svg: str) -> None:
    """Shows an SVG as `show` does a figure; the text is that of its `desc`."""
    from IPython import get_ipython
    from IPython.display import display

    alt = ElementTree.fromstring(svg).findtext("{*}desc")
    shell = get_ipython()
    if shell is None:
        print(alt)
        return
    from matplotlib_inline.config import InlineBackend

    data = {"text/html": picture(svg.encode(), alt, "svg+xml"), "text/plain": alt}
    if "svg" in InlineBackend.instance(parent=shell).figure_formats:  # the build, for the slides
        data["image/svg+xml"] = svg
    display(data, raw=True)


def picture(image: bytes | str, alt: str, kind: str = "png") -> str:
    """A picture, as bytes or in base64, as HTML with the text `alt`."""
    encoded = image if isinstance(image, str) else base64.b64encode(image).decode()
    return f'<img alt="{escape(alt)}" src="data:image/{kind};base64,{encoded}">'


def with_code(text: str) -> str:
    """Text as HTML, with `code` between backticks; an odd number of them stays as it is."""
    pieces = escape(text, quote=False).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(pieces))
