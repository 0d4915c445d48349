"""What can go wrong, for a whole conversion and for one row of it."""


class ConversionError(RuntimeError):
    """The conversion cannot start or did not finish; the message says why and what to do."""


class StorageError(ConversionError):
    """A kind of path that cannot be reached from here, whatever stands behind it."""


class ShardError(RuntimeError):
    """A shard could not be written on a worker; the message names the shard, the host and the reason."""


class RejectError(Exception):
    """A row gives no example; the message says why."""
