"""The checks of lab 08, performance."""

from lab_utils.check.labs.lab_08 import arithmetic, lines, loops, model, own, wide

__all__ = ["arithmetic", "lines", "loops", "model", "own", "wide"]
