"""What was worked out before, kept in the user's cache folder.

Three kinds of entry, each named by all that its answer depends on:

- a lowered step: the graph that was traced, its arguments' shapes, TensorFlow's version (lower.py);
- what the TPU's compiler said: the program, the topology, the versions of jax and libtpu (compile.py);
- what the virtual cores computed: the program, the variables' first values and the very batches (virtual.py).

These follow from what they are named by, so an entry is as good as doing the work again. The rate of an
input pipeline is none of them: it is a measurement, kept with its time, and the report says when it was
taken (feed.py). Tracing is never kept: it is what tells whether anything has changed.

Writing is atomic: several dry runs at once, or one that is stopped, leave no half entry. An entry that
cannot be read counts as none, and is written anew.
"""

import functools
import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from lab_utils.files import user_folder

_FORMAT = "2"
_LARGEST = 64 * 2**20  # bytes of an entry before it is packed; larger ones are not kept

_used = ContextVar("dry run cache", default=True)


@contextmanager
def disabled() -> Iterator[None]:
    """Within it nothing is found in the cache, and nothing is kept."""
    token = _used.set(False)
    try:
        yield
    finally:
        _used.reset(token)


def folder() -> Path:
    """Where entries are kept: lab_utils/dry_run below XDG_CACHE_HOME, else below ~/.cache.

    Raises:
        OSError: this user has no home folder.
    """
    return user_folder("XDG_CACHE_HOME", ".cache") / "lab_utils" / "dry_run"


def key(*parts: Any) -> str:
    """The name of an entry: 40 hexadecimal digits. Parts are bytes, or anything that JSON takes."""
    digest = hashlib.sha256()
    for part in (_FORMAT, *parts):
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:40]


@functools.cache
def code(*modules: str) -> str:
    """A digest of modules of the dry run, for entries that depend on what these do."""
    folder = Path(__file__).parent
    text = b"".join((folder / f"{module}.py").read_bytes() for module in modules)
    return hashlib.sha256(text).hexdigest()


def read(name: str) -> dict[str, Any] | None:
    """The entry of that name, or None."""
    if not _used.get():
        return None
    try:
        return json.loads(gzip.decompress((folder() / f"{name}.json.gz").read_bytes()))
    except (OSError, EOFError, ValueError):
        return None


def write(name: str, entry: dict[str, Any]) -> None:
    """Keeps an entry. Where the folder cannot be written, nothing is kept, and nothing is lost."""
    content = json.dumps(entry).encode()
    if not _used.get() or len(content) > _LARGEST:
        return
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(gzip.compress(content, compresslevel=1))
        os.replace(file.name, folder() / f"{name}.json.gz")
    except OSError:
        return
