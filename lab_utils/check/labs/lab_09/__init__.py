"""The checks of lab 09, today's API: a strategy, Keras in its scope, a loop of one's own."""

from lab_utils.check.labs.lab_09 import jax_parallel, model, strategy, training  # noqa: F401
