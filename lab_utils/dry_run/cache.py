"""What was worked out before, cached in the user's folder.

Kinds of entry, each named by all that its answer depends on, and by a digest of the dry run's code (`code`):

- what the TPU compiler said: the program, the topology, the versions of jax and libtpu (compile/);
- what the virtual cores computed: the program, the variables' first values and the very batches (run/).

So an entry is as good as doing the work again. Graphs, lowered steps, the rate of an input pipeline and the
report are never cached: each dry run traces, lowers, measures and judges again.

On a machine of many users, LAB_UTILS_SHARED_CACHE names a second place, which has the form of XDG_CACHE_HOME
and is only read: what the instructor has compiled there nobody compiles again. Only trusted people may write
to it.

Writing is atomic: several dry runs at once, or one that is stopped, leave no half entry. An entry that
cannot be read counts as none, and is written again.
"""

import functools
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from lab_utils.common import files

_BELOW = Path("lab_utils", "dry_run")
_LARGEST = 64 * 2**20  # bytes of an entry before it is packed; larger ones are not cached

SHARED = "LAB_UTILS_SHARED_CACHE"

_used = ContextVar("dry run cache", default=True)


@contextmanager
def disable() -> Iterator[None]:
    """Context manager: nothing is found in the cache, and nothing is written."""
    token = _used.set(False)
    try:
        yield
    finally:
        _used.reset(token)


def folder() -> Path:
    """Where entries lie: lab_utils/dry_run below XDG_CACHE_HOME, else below ~/.cache.

    Raises:
        OSError: this user has no home folder.
    """
    return files.user_folder("XDG_CACHE_HOME", ".cache") / _BELOW


def key(*parts: Any) -> str:
    """The name of an entry of this code: 40 hexadecimal digits. Parts are bytes, or what JSON takes."""
    digest = hashlib.sha256()
    for part in (code(), *parts):
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:40]


@functools.cache
def code() -> str:
    """A digest of the code that entries depend on: the dry run's, and the table of chips."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for folder in ("dry_run", "runtime", "common"):
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def read(name: str, forms: Sequence[Set[str]] = (frozenset(),)) -> dict[str, Any] | None:
    """The entry of that name, the user's own or the shared one, or None.

    Only an entry counts that has all keys of one of the `forms`.
    """
    if not _used.get():
        return None
    shared = Path(os.environ.get(SHARED) or os.devnull, _BELOW)
    for place in (folder, lambda: shared):
        with suppress(
            OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error
        ):
            stored = json.loads(gzip.decompress((place() / f"{name}.json.gz").read_bytes()))
            entry = dict(stored["entry"])
            # What is damaged, or another's, counts as none.
            if stored["name"] == name and any(entry.keys() >= form for form in forms):
                return entry
    return None


def write(name: str, entry: dict[str, Any]) -> None:
    """Caches an entry, where the folder can be written."""
    content = json.dumps({"name": name, "entry": entry}).encode()
    if not _used.get() or len(content) > _LARGEST:
        return
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        files.write(folder() / f"{name}.json.gz", gzip.compress(content, compresslevel=1))
