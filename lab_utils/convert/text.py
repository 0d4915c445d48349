"""Text of unknown origin, made fit for a terminal."""

_LONGEST = (
    200  # characters of a row or a reason; a binary file given as a CSV is one row of megabytes
)


def printable(text: str) -> str:
    """Returns the text with control characters, line breaks and undecodable bytes as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str) -> str:
    """Returns the text for a message: printable, and its beginning alone where it is long."""
    return printable(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
