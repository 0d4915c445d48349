"""A file that is whole or not there, a file that one process at a time holds, paths that users give."""

import argparse
import contextlib
import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP)
# What only a shell replaces, or an unset variable leaves: ~nobody, $DATA, ${DATA}, gs:///x.
_UNKNOWN = re.compile(r"~[^/]*|.*?(\$[A-Za-z_{])|(gs|s3)://(/|$)")
# What files begin with, for `output`: a page; JSON, but no notebook.
HTML = rb"\s*<(!doctype )?html"
JSON = rb'\{(?!\s*"(cells|metadata|nbformat))'


class InUseError(RuntimeError):
    """Another process works there; the message says where."""


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether the path has a scheme, such as gs://bucket/photos."""
    return "://" in os.fspath(path)


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file: a reader finds the old content or the new, whatever ends this process.

    Text is UTF-8 and its line ends stay as they are. What a link points to is replaced, not the link.
    A path with a scheme is written through TensorFlow. Something that is not a regular file, such as
    /dev/stdout, is written to directly.

    Raises:
        OSError: it cannot be written (tf.errors.OpError for a path with a scheme).
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if is_remote(path):
            _write_remote(os.fspath(path), data)
        elif os.path.exists(path) and not os.path.isfile(path):
            Path(path).write_bytes(data)
        else:
            _replace(os.path.realpath(path), data)
    except OSError as error:  # names what the user named, not the file beside it
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


def _replace(target: str, data: bytes) -> None:
    partial = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.partial")
    try:
        # "x" takes the umask, as a plain write does; tempfile would make it the owner's only.
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _write_remote(path: str, data: bytes) -> None:
    import tensorflow as tf

    partial = path + ".partial"
    with tf.io.gfile.GFile(partial, "wb") as file:
        file.write(data)
    tf.io.gfile.rename(partial, path, overwrite=True)


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], wait: float = 0) -> Iterator[None]:
    """Context manager: holds the lock file `path`, until the block or the process ends, however it ends.

    The file stays. On a file system without locks, and in a bucket, nothing is locked.

    Args:
        path: made where it is missing; its folder must exist.
        wait: seconds to wait for another process.

    Raises:
        InUseError: another process holds it.
        OSError: the file cannot be made.
    """
    with contextlib.ExitStack() as stack:
        try:
            if not is_remote(path):
                stack.enter_context(filelock.FileLock(path, timeout=wait))
        except filelock.Timeout:
            folder = os.path.dirname(os.path.abspath(path))
            raise InUseError(
                f"{folder} is in use by another process: wait for it, or end it"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield


def user_folder(variable: str, fallback: str) -> Path:
    """The user's own folder for a purpose: what the environment names, else `fallback` below the home.

    Raises:
        OSError: this user has no home, as in containers that run with any user id.
    """
    if path := os.environ.get(variable):
        return Path(path)
    try:
        return Path.home() / fallback
    except RuntimeError:
        raise OSError(f"this user has no home folder; set HOME or {variable}") from None


def expanded(path: str | os.PathLike[str]) -> str:
    """The path with `~` at its start, `$NAME` and `${NAME}` replaced, as a shell does.

    A shell does not in `--output_dir=~/records`, between single quotes or in a YAML file, nor does Python:
    a folder of the name `~` would be made.

    Raises:
        ValueError: it is "-"; a user or a variable of that name is not known; or it names no bucket, as
            gs://$BUCKET/x with an unset variable.
    """
    text = os.path.expanduser(os.path.expandvars(os.fspath(path)))
    if text == "-":
        raise ValueError("- does not mean a file here: name a file (./- if it has this name)")
    if _UNKNOWN.match(text) and not os.path.lexists(text):
        raise ValueError(f"{text}: no user, variable or bucket of that name is known here")
    return text


def path_argument(text: str) -> Path:
    """For argparse's `type`: a path on this machine.

    Refused are an empty one, as an unset shell variable gives, and one with a scheme: as a Path, gs://b
    would be a folder of the name `gs:` here.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("the path is empty (is a shell variable unset?)")
    if is_remote(text):
        raise argparse.ArgumentTypeError(f"{text} is elsewhere: give a path on this machine")
    try:
        return Path(expanded(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def output(kind: bytes) -> Callable[[str], Path]:
    """For argparse's `type`: a file that is written at the end; what hinders that is said before the work.

    A file that is there is replaced where it begins as `kind`, a regular expression, has it. Another one
    was named by mistake: `--output *.png` names the first photograph.
    """

    def output_argument(text: str) -> Path:
        path = path_argument(text)
        folder = path.absolute().parent
        special = path.exists() and not path.is_file()  # such as /dev/stdout
        writable = folder.is_dir() and os.access(path if special else folder, os.W_OK)
        if path.is_dir() or not writable:
            raise argparse.ArgumentTypeError(
                f"{path} cannot be written: name a file in a folder that exists and is writable"
            )
        if path.is_file() and not _begins_as(path, kind):
            raise argparse.ArgumentTypeError(
                f"{path} exists, and was not written by this command: name another file, or move "
                "that one away"
            )
        return path

    return output_argument


def _begins_as(path: Path, kind: bytes) -> bool:
    with path.open("rb") as file:
        beginning = file.read(1024)
    return not beginning or re.match(kind, beginning, re.DOTALL | re.IGNORECASE) is not None
