"""How TensorFlow is loaded, for those who do not know whether it is. No TensorFlow is imported here."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from lab_utils.common import interrupts, notices


class LeftTensorFlow(NotImplementedError):
    """A program needs what newer versions of TensorFlow no longer hold."""


def tensorflow() -> Any | None:
    """TensorFlow, where this process has imported it; None where it has not."""
    return sys.modules.get("tensorflow")


def prepare() -> None:
    """Sets the variables that TensorFlow reads when it is imported, or when tf.keras is first touched.

    Estimator code needs Keras 2 in tf.keras and tf.compat.v1.layers, whatever the shell has set for other
    work. TensorFlow 2.15 brings that itself. Where there is no tf-keras, tf.keras stays what it is.
    """
    keras = next((package.version for package in metadata.distributions(name="keras")), "")
    if not keras.startswith("2.") and importlib.util.find_spec("tf_keras"):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        # Without a home tf-keras would make a folder ~ where it runs. Where it cannot, it does without.
        if os.path.expanduser("~") == "~":
            os.environ.setdefault("KERAS_HOME", os.path.join(os.devnull, ".keras"))
    notices.quiet()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Context manager for the import of TensorFlow: without native notices, and without JAX.

    An interrupt would end this import in an abort, or be swallowed. Without docstrings (python -OO) it fails
    in TensorFlow's own code, so SystemExit says what to do. TensorFlow Lite imports JAX for a converter:
    40 MB and 1 s.
    """
    if sys.flags.optimize > 1:
        sys.exit("TensorFlow needs docstrings: run Python without -OO, and unset PYTHONOPTIMIZE")
    with notices.hide_native_notices(), interrupts.held_back(), without("jax"):
        yield


@contextlib.contextmanager
def without(module: str) -> Iterator[None]:
    """Context manager: what is imported here does without `module`, unless it is there already."""
    absent = module not in sys.modules
    if absent:
        sys.modules[module] = None  # importing it raises ImportError
    try:
        yield
    finally:
        if absent:
            del sys.modules[module]
