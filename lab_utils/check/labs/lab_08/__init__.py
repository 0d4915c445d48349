"""The checks of lab 08, performance."""

from lab_utils.check.labs.lab_08 import arithmetic, model, own

__all__ = ["arithmetic", "model", "own"]
