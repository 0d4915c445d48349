"""What the TPU's compiler said before, kept in the user's cache folder.

An entry is named by all that the answer depends on: the program, the topology, and the versions of jax
and libtpu. Writing is atomic: several dry runs at once, or one that is stopped, leave no half entry.
An entry that cannot be read counts as none, and is written anew.
"""

import gzip
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

_FORMAT = "1"


def folder() -> Path:
    """Where entries are kept: lab_utils/dry_run below XDG_CACHE_HOME, else below ~/.cache."""
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lab_utils" / "dry_run"
    )


def key(program: bytes, topology: str, versions: dict[str, str]) -> str:
    """The name of an entry: 40 hexadecimal digits."""
    parts = [
        _FORMAT.encode(),
        program,
        topology.encode(),
        json.dumps(versions, sort_keys=True).encode(),
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:40]


def read(name: str) -> dict[str, Any] | None:
    """The entry of that name, or None."""
    try:
        return json.loads(gzip.decompress((folder() / f"{name}.json.gz").read_bytes()))
    except (OSError, EOFError, ValueError):
        return None


def write(name: str, entry: dict[str, Any]) -> None:
    """Keeps an entry. Where the folder cannot be written, nothing is kept, and nothing is lost."""
    data = gzip.compress(json.dumps(entry).encode(), compresslevel=6)
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(data)
        os.replace(file.name, folder() / f"{name}.json.gz")
    except OSError:
        return
