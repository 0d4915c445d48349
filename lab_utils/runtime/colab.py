"""Colab's own modules, for a program or a notebook of Colab that runs elsewhere."""

import sys
from unittest.mock import MagicMock

import google  # protobuf has a part of it

_PARTS = (
    "auth", "data_table", "drive", "files", "output", "patches", "runtime", "userdata", "widgets",
)  # fmt: skip


def stand_in() -> None:
    """Has `google.colab` and its parts be modules whose functions do nothing; they stay.

    What a program imports later may name them, too.
    """
    google.colab = sys.modules["google.colab"] = MagicMock()
    sys.modules.update({f"google.colab.{part}": getattr(google.colab, part) for part in _PARTS})
