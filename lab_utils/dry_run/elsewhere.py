"""Data that lie where this machine cannot read: a bucket, without a network or an account."""

import functools
import re
import socket
from typing import Any

from lab_utils.estimator import tf

_ADDRESS = re.compile(r"\b(gs|s3|s3a|hdfs|viewfs)://[^\s'\"]*")
_SERVER = ("storage.googleapis.com", 443)
_SECONDS = 3


class Elsewhere(Exception):
    """This machine cannot read the data of a program; the message says where they lie."""


def named(text: str) -> str:
    """The first remote address in a text, such as an exception's message; "" if there is none."""
    found = _ADDRESS.search(text)
    return found[0] if found else ""


def address(graph: tf.Graph) -> str:
    """The first remote address among the strings of an input pipeline's graph; "" if there is none."""
    strings = (op for op in graph.get_operations() if op.type == "Const")
    for op in strings:
        if op.outputs[0].dtype == tf.string:
            for value in op.get_attr("value").string_val:
                if found := named(value.decode(errors="replace")):
                    return found
    return ""


def check(graph: tf.Graph) -> None:
    """Asks before anything is read: TensorFlow itself tries for a minute to reach a bucket.

    Raises:
        Elsewhere: the pipeline reads from where this machine cannot.
    """
    found = address(graph)
    if found and not _reachable(found.partition("://")[0]):
        raise Elsewhere(f"the data lie at {found}, which this machine cannot read")


@functools.cache
def _reachable(scheme: str) -> bool:
    if scheme not in _schemes():
        return False
    if scheme != "gs":
        return True
    try:
        socket.create_connection(_SERVER, _SECONDS).close()
    except OSError:
        return False
    return True


def _schemes() -> list[Any]:
    return [
        each.decode() if isinstance(each, bytes) else each
        for each in tf.io.gfile.get_registered_schemes()
    ]
