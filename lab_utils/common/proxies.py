"""Servers on this machine are reached directly, also where the shell names a proxy for every address."""

import os

_HERE = ("localhost", "127.0.0.1", "::1")


def spare_local() -> None:
    """Adds this machine's own addresses to those that need no proxy, for this process and its children.

    Without it, Beam's workers wait for the proxy to lead them to the process beside them, and do not end.
    """
    listed = ",".join(filter(None, (os.environ.get(name) for name in ("no_proxy", "NO_PROXY"))))
    every = dict.fromkeys([*(each.strip() for each in listed.split(",") if each.strip()), *_HERE])
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(every)
