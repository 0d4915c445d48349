"""Colab's own modules, for a program or a notebook of Colab that runs elsewhere."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

_PARTS = (
    "auth", "data_table", "drive", "files", "output", "patches", "runtime", "userdata", "widgets",
)  # fmt: skip


def stand_in(make: Callable[[str], Any]) -> None:
    """Has `google.colab` and its parts be what `make` gives for their names; they stay.

    What a program imports later may name them, too.
    """
    try:
        google = importlib.import_module("google")  # protobuf has a part of it
    except ModuleNotFoundError:
        google = sys.modules["google"] = make("google")
    google.colab = sys.modules["google.colab"] = make("google.colab")
    for part in _PARTS:
        name = f"google.colab.{part}"
        sys.modules[name] = make(name)
        setattr(google.colab, part, sys.modules[name])
