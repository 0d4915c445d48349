"""What can go wrong, for a whole conversion and for one row of it; text of unknown origin in messages."""

_LONGEST = 200  # characters of a row; a binary file given as a CSV is one row of megabytes


class ConversionError(RuntimeError):
    """A conversion cannot start, did not finish, or is not as its manifest says: why, and what to do."""


class StorageError(ConversionError):
    """A kind of path that cannot be reached from here, whatever stands behind it."""


class RejectError(Exception):
    """A row gives no example; the message says why."""


def printable(text: str) -> str:
    """Returns the text with control characters, line breaks and undecodable bytes as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str) -> str:
    """Returns the text for a message: printable, and only its beginning where it is long."""
    return printable(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
