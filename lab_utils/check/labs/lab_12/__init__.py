"""The checks of lab 12, a character LSTM."""

from lab_utils.check.labs.lab_12 import attention, model, writing  # noqa: F401
