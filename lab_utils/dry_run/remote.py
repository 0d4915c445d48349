"""Input pipelines that read from where this machine cannot: asked before a session reads a batch."""

import functools
import re
import socket

from lab_utils.dry_run.elsewhere import ADDRESS, BATCH_SECONDS, unreadable
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.estimator import tf, v1

# For sessions that read batches: on the host, and for no longer than that.
SESSION = v1.ConfigProto(device_count={"GPU": 0}, operation_timeout_in_ms=1000 * BATCH_SECONDS)
_SERVER = ("storage.googleapis.com", 443)
_SECONDS = 3


def address(graph: tf.Graph) -> str:
    """The first remote address among the strings of an input pipeline's graph; "" if there is none."""
    for op in graph.get_operations():
        if op.type == "Const" and op.outputs[0].dtype == tf.string:
            for value in op.get_attr("value").string_val:
                if location := ADDRESS.search(value.decode(errors="replace")):
                    return location[0]
    return ""


def check(graph: tf.Graph) -> None:
    """Asks before anything is read: TensorFlow itself tries for a minute to reach a bucket.

    Raises:
        Unavailable: the pipeline reads from where this machine cannot.
    """
    location = address(graph)
    if location and not _reachable(location.partition("://")[0]):
        raise Unavailable(unreadable(location))


@functools.cache
def _reachable(scheme: str) -> bool:
    if scheme != "gs":
        return scheme in map(tf.compat.as_str, tf.io.gfile.get_registered_schemes())
    try:
        socket.create_connection(_SERVER, _SECONDS).close()
    except OSError:
        return False
    return True


def is_elsewhere(address: str) -> bool:
    """Whether a TPU at that grpc:// address has a host of its own; "" stands for a TPU without an address."""
    return bool(address) and not re.search(r"//(localhost|127\.0\.0\.1)\b", address)
