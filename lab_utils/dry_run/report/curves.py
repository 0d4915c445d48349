"""Two curves as an SVG picture: the loss of each step in float32, and with a TPU's matmuls."""

import math

from markupsafe import Markup

from lab_utils.common.figures import rounded
from lab_utils.dry_run.records import Numerics
from lab_utils.notebook import look

_WIDTH, _HEIGHT = 320, 120


def curves(numerics: Numerics) -> Markup:
    """The picture, with the largest and the smallest loss; steps whose loss is not finite are left out."""
    finite = [*filter(math.isfinite, numerics.losses + numerics.tpu_losses)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    lines = (
        (numerics.losses, look.NOTE, ""),
        (numerics.tpu_losses, look.WRONG, "5 3"),
    )
    drawn = "".join(
        f'<polyline points="{_points(losses, low, high)}" fill="none" stroke="{colour}" '
        f'stroke-width="2" stroke-dasharray="{dashes}"/>'
        for losses, colour, dashes in lines
    )
    label = f"Loss of {len(numerics.losses)} steps between {rounded(low)} and {rounded(high)}"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">{drawn}</svg>'
    )
    # As an image: a notebook that is not trusted drops an <svg> element.
    return Markup(
        f"{look.picture(svg.encode(), label, 'svg+xml')}"
        f"<p>{label}: float32 as a line, with a TPU's matmuls dashed.</p>"
    )


def _points(losses: list[float], low: float, high: float) -> str:
    """The corners of a curve, in the picture's coordinates: larger losses stand higher."""
    across, up = _WIDTH / max(len(losses) - 1, 1), (_HEIGHT - 4) / (high - low or 1.0)
    return " ".join(
        f"{step * across:.1f},{_HEIGHT - 2 - (loss - low) * up:.1f}"
        for step, loss in enumerate(losses)
        if math.isfinite(loss)
    )
