"""What can go wrong, for a whole conversion and for one row of it."""


class ConversionError(RuntimeError):
    """The conversion cannot start or did not finish; the message says why and what to do."""


class RejectError(Exception):
    """A row gives no example; the message says why."""
