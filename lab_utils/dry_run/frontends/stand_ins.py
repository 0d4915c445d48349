"""What stands in for functions of packages while a program runs, as tables: (owner, name, stand-in)."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

StandIn = tuple[Any, str, Any]


@contextmanager
def patched(table: Iterable[StandIn]) -> Iterator[None]:
    """Context manager: each owner has the stand-in under that name. An owner without the name is left out.

    A row is made when those before it are in place.
    """
    with ExitStack() as stack:
        for owner, name, stand_in in table:
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, stand_in))
        yield
