"""What a person asked for, checked before anything starts."""

import os
import stat

from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError


def check_paths(paths: dict[str, str]) -> None:
    """Refuses paths that cannot be meant; the keys are the names of their flags.

    Raises:
        ConversionError: for an empty path, one with a zero byte, or two flags for one file.
    """
    for flag, path in paths.items():
        if not path.strip():
            raise ConversionError(
                f"--{flag} is empty: give a path (is a variable of the shell not set?)"
            )
        if "\0" in path:
            raise ConversionError(f"--{flag} holds a zero byte, which no path may hold: {path}")


def check_numbers(
    shard_mb: float,
    shorter_side: int | None,
    max_reject_share: float,
    workers: int | None,
    stall_minutes: float,
) -> None:
    """Refuses numbers out of range, "not a number" included.

    Raises:
        ConversionError: naming the flag.
    """
    if not shard_mb > 0:
        raise ConversionError(f"--shard_mb must be above 0, not {shard_mb}")
    if shorter_side is not None and shorter_side < 1:
        raise ConversionError(f"--shorter_side must be 1 or more, not {shorter_side}")
    if not 0 <= max_reject_share <= 1:
        raise ConversionError(f"--max_reject_share must be from 0 to 1, not {max_reject_share}")
    if workers is not None and workers < 0:
        raise ConversionError(f"--workers must be 0 or more, not {workers}")
    if not stall_minutes > 0:
        raise ConversionError(f"--stall_minutes must be above 0, not {stall_minutes}")


def check_list(path: str) -> None:
    """Refuses a list that cannot be read twice: rows are counted first and dealt out after.

    Raises:
        ConversionError: if the path is a pipe or a device; one that is absent is told where it is read.
    """
    if storage.is_remote(path):
        return
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ConversionError(
            f"{path} is a pipe or a device, and has to be read more than once: save its content "
            "in a file first"
        )
