"""Keep the terminal clean."""

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet(level: int = logging.WARNING) -> Iterator[None]:
    """Drops log lines up to the level; Beam warns of every optional package that is absent."""
    before = logging.root.manager.disable
    logging.disable(level)
    try:
        yield
    finally:
        logging.disable(before)
