"""What a lab's cells show: plots, drawings, rates, and figures with unit and kind.

from lab_utils.notebook import drawings, plots, rates  # these three import Matplotlib
from lab_utils.notebook import counted, figure_text, kind_text, wrapped
"""

from lab_utils.common.figures import counted, figure_text, kind_text
from lab_utils.notebook.look import wrapped

__all__ = ["counted", "figure_text", "kind_text", "wrapped"]
