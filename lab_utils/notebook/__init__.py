"""What a lab's cells show: plots, drawings, sliders, profiles, and figures with unit and kind.

from lab_utils.notebook import drawings, plots  # these two import Matplotlib
from lab_utils.notebook import Figure, Kind, counted, figure_text, kind_text, recorded, slider, wrapped
"""

from lab_utils.common.figures import Figure, Kind, counted, figure_text, kind_text
from lab_utils.notebook.look import wrapped
from lab_utils.notebook.profiles import recorded
from lab_utils.notebook.sliders import slider

__all__ = [
    "Figure",
    "Kind",
    "counted",
    "figure_text",
    "kind_text",
    "recorded",
    "slider",
    "wrapped",
]
