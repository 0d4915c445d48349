"""Several hosts: whose files (TODO 15d), and who calls input_fn for which batch (15e, 15f)."""

import re
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, returns


class _Context:
    """Stands for TPUEstimator's params["context"]."""

    def __init__(self, host: int, hosts: int) -> None:
        self._deployment = ("/cpu:0", host, hosts, 8)

    def current_input_fn_deployment(self) -> tuple:
        """(device, host, hosts, cores of the host), as the genuine one."""
        return self._deployment


@todo(
    "15d",
    hints=(
        "Look for the context in params first: without one there is one host.",
        "Which of the four things that the deployment holds do you need? Compare the count of files with one of them.",
        "A slice with a step deals files out like cards.",
    ),
    why="Dealt out one by one, files differ by at most one between hosts, and no host is without.",
)
def sharing(share: Callable) -> Cases:
    """Every file for one host, once; an error where a host would have none."""
    files = [f"train-{n:05d}-of-00010" for n in range(10)]
    try:
        alone = share(list(files), {"batch_size": 8})
    except (KeyError, AttributeError) as error:
        alone = f"{type(error).__name__}: {error}"
    yield 'Where there is no "context" in params there is one host, which reads all files', alone
    for hosts in (1, 2, 4, 7, 10):
        shares = []
        what = f"With 10 files and {hosts} hosts"
        for host in range(hosts):
            mine = share(list(files), {"batch_size": 8, "context": _Context(host, hosts)})
            returns(mine, (list, tuple), "share", "a list of files")
            expect(
                len(mine) > 0,
                f"{what}, host {host} has none: it would have nothing to do, and the others would wait for it. Deal "
                "the files out one by one.",
            )
            shares += mine
        lost = sorted(set(files) - set(shares))
        expect(not lost, f"{what}, nobody reads {', '.join(lost)}.")
        expect(len(shares) == len(files), f"{what}, some files are read twice.")
    for host in (0, 5):
        try:
            few: Any = share(files[:3], {"batch_size": 8, "context": _Context(host, 6)})
        except ValueError as error:
            numbers = set(re.findall(r"\d+", str(error)))
            few = "ValueError" if {"3", "6"} <= numbers else f"ValueError: {error}"
        label = f"3 files for 6 hosts, on host {host} (raise a ValueError that says both numbers)"
        yield label, few
    return "Every file has one host, and every host has a file."


_CALLS = {
    "PER_HOST_V1": "once for each host; its batch is a host's share, for all cores of that host",
    "PER_HOST_V2": "once for each host; its batch is for one core",
    "PER_SHARD_V1": "once for each core; its batch is for one core",
    "BROADCAST": "once, on host 0, however many hosts there are; every core gets the whole batch",
    "SLICED": "once, on host 0; the whole batch is cut for all cores",
}


@todo(
    "15e",
    hints=(
        "Read the second column of the table for the calls, and the third for the batch.",
        "In which modes is a batch for one core only? There the global batch is divided by all cores.",
    ),
    why="The mode decides who asks; the global batch is divided by those who share it.",
)
def calls_of_modes(input_calls: Callable) -> Cases:
    """Calls and batch sizes of the five input modes, on 4 hosts with 32 cores."""
    for mode, how in _CALLS.items():
        found = input_calls(mode, 960, 4, 32)
        yield f"{mode}, 4 hosts, 32 cores, a global batch of 960 (it is called {how})", found
        message = f"A batch size is a whole number; yours gives {found} for {mode}: divide with //."
        expect(all(isinstance(each, Integral) for each in found), message)
    return "Once for each host, core or job, and the batch of those who share it."


_FITS = {  # job -> its mode, and what the others miss
    "transposed": (
        "PER_HOST_V2",
        "TensorFlow must not cut a batch along axis 0, and each core needs its own examples",
    ),
    "one reader": (
        "SLICED",
        "only one host may read the file, and each example must reach one core",
    ),
    "split": ("BROADCAST", "every core needs the whole batch"),
    "old": (
        "PER_SHARD_V1",
        "tensors are accepted, but a batch for one core must not be cut further",
    ),
}


@todo(
    "15f",
    hints=(
        "Ask of each job: who may read, and may the batch be cut along axis 0?",
        "One mode is for evaluation only, and one accepts tensors only.",
    ),
    why="The first axis, the reader, and who needs which examples decide.",
)
def choice(modes: Mapping) -> str:
    """A mode that fits each job."""
    message = f"modes should be a dict with the keys {', '.join(_FITS)}."
    expect(isinstance(modes, Mapping) and set(_FITS) <= set(modes), message)
    for job, (mode, need) in _FITS.items():
        message = f"{job}: {modes[job]!r} is not one of the modes {', '.join(_CALLS)}."
        expect(modes[job] in _CALLS, message)
        other = f"{modes[job]} is called {_CALLS[modes[job]]}"
        expect(modes[job] == mode, f"{job}: {need}. {other}.")
    return "Each job has the mode that fits what it reads and what it cuts."
