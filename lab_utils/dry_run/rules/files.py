"""The files that an input pipeline reads: TPU233, TPU237."""

from collections.abc import Iterator

from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.remote import is_elsewhere
from lab_utils.dry_run.rules import finding


@rule("TPU233", needs=("missing_files",))
def no_files(missing: list[tuple[str, Place]]) -> Iterator[Finding]:
    """A finding for each list of files that is empty, and for each pattern that no file fits."""
    for what, where in missing:
        yield finding("TPU233", where, what=what)


@rule("TPU237", needs=("local_files", "address"))
def local_files(files: list[tuple[str, Place]], address: str) -> Iterator[Finding]:
    """A finding for each line that reads files of this machine, where the TPU's host runs the pipeline."""
    lines = {where: path for path, where in reversed(files)} if is_elsewhere(address) else {}
    for where, path in lines.items():
        yield finding("TPU237", where, does="reads", path=path, case="data")
