"""The answer of an earlier run of the same command, where nothing that it was made from has changed.

Build tools call it direct mode. It saves TensorFlow's import, the trace and all that follows; any doubt
(evidence.py) means that the command is carried out.
"""

import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from lab_utils.common import files, scratch
from lab_utils.common.figures import counted
from lab_utils.dry_run import cache, evidence

_KEPT_SECONDS = 24 * 3600  # the input pipeline's rate is a measurement, and kept as long
# They differ between two calls from one shell, and no program means them.
_PASSING = ("_", "SHLVL", "OLDPWD")


@dataclass
class Answer:
    """What a command said: its exit status, what it printed, and the text files that it has written."""

    status: int
    text: str
    written: Sequence[Path]


def name() -> str:
    """The name of this process's command: its arguments, environment, folder and machine."""
    passing = (*_PASSING, "TMPDIR") if scratch.is_ours(os.environ.get("TMPDIR", "")) else _PASSING
    environment = {key: value for key, value in os.environ.items() if key not in passing}
    secret = hashlib.sha256(repr(sorted(environment.items())).encode(errors="replace")).hexdigest()
    return cache.key(
        "unchanged",
        *([each.encode(errors="surrogateescape") for each in sys.orig_argv]),
        [
            sys.executable,
            sys.version,
            os.getcwd(),
            secret,
            bool(sys.stdout and sys.stdout.isatty()),
        ],
        [platform.node(), os.cpu_count(), psutil.virtual_memory().total],
    )


def recalled(name: str) -> Answer | None:
    """The answer that was kept under `name`, its files written again; None where there is none, or something
    has changed. A line on the standard error says so.
    """
    kept = cache.read(name)
    if not kept or not 0 <= time.time() - kept["time"] <= _KEPT_SECONDS:
        return None
    if not evidence.unchanged(kept["evidence"], frozenset(kept["written"])):
        return None
    try:
        for path, text in kept["written"].items():
            files.write(path, text)
    except OSError:  # carried out again, it says so
        return None
    when = time.strftime("%Y-%m-%d at %H:%M", time.localtime(kept["time"]))
    count = sum(state != evidence.ABSENT for state in kept["evidence"]["files"].values())
    said = (
        f"Nothing that this dry run read has changed since {when}: {counted(count, 'file')}. This is its "
        "report; --no_cache judges again."
    )
    print(said, file=sys.stderr)
    return Answer(kept["status"], kept["text"], [Path(path) for path in kept["written"]])


@contextmanager
def watched(name: str, outputs: Iterable[Path | None], scratch: str = "") -> Iterator["Watch"]:
    """Context manager: what is read from here on is noted; `outputs` are files that the command writes, and
    `scratch` is a folder for this run alone.
    """
    own = frozenset(str(path.absolute()) for path in outputs if path)
    with evidence.gathering(own, scratch) as gathered:
        yield Watch(name, gathered)


@dataclass
class Watch:
    """What is read while a command is carried out, and its answer at the end."""

    name: str
    evidence: evidence.Evidence

    @contextmanager
    def tensorflow(self) -> Iterator[None]:
        """Context manager: what TensorFlow, which is imported now, reads is noted too."""
        from lab_utils.dry_run.private import reading

        with reading.told(self.evidence):
            yield

    def keep(self, answer: Answer) -> list[str]:
        """Keeps the answer, unless there are doubts; returns these."""
        found = self.evidence.finished()
        if not found.doubts and all(path.is_file() for path in answer.written):  # no pipe
            parts = {
                part: getattr(found, part) for part in ("files", "folders", "modules", "patterns")
            }
            written = {
                str(path.absolute()): path.read_text(encoding="utf-8") for path in answer.written
            }
            entry = {"time": time.time(), "status": answer.status, "text": answer.text}
            cache.write(self.name, entry | {"written": written, "evidence": parts})
        return found.doubts
