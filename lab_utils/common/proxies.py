"""Servers on this machine are reached directly, also where the shell names a proxy for every address."""

import os


def spare_local() -> None:
    """Adds this machine's own addresses to those that need no proxy, for this process and its children.

    Without it, Beam's workers wait for the proxy to lead them to the process beside them, and do not end.
    """
    listed = (os.environ.get("no_proxy"), os.environ.get("NO_PROXY"), "localhost,127.0.0.1,::1")
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, listed))
