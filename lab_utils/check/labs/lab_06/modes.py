"""Who calls input_fn, and for which batch: TODO 6e."""

from collections.abc import Callable
from numbers import Integral

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

BATCH, HOSTS, CORES = 960, 4, 32
# mode -> (calls, batch, what a wrong number of calls hears, what a wrong batch hears)
RULES = {
    "PER_HOST_V1": (
        HOSTS,
        BATCH // HOSTS,
        "It is called once for each host",
        "Its batch is a host's share of the global batch, for all cores of that host",
    ),
    "PER_HOST_V2": (
        HOSTS,
        BATCH // CORES,
        "It is called once for each host",
        "Its batch is for one core: the global batch over all cores",
    ),
    "PER_SHARD_V1": (
        CORES,
        BATCH // CORES,
        "It is called once for each core",
        "Its batch is for one core: the global batch over all cores",
    ),
    "BROADCAST": (
        1,
        BATCH,
        "It is called once, on host 0, however many hosts there are",
        "Every core gets the whole batch: nothing is divided",
    ),
}


@todo(
    "6e",
    hints=(
        "Read the second column of the table for the calls, and the third for the batch.",
        "In which modes is a batch for one core alone? There the global batch is divided by all cores.",
    ),
    why="The mode decides who asks; the global batch is divided by those who share it.",
)
def modes(input_calls: Callable) -> str:
    """Calls and batch sizes of the four input modes, on 4 hosts with 32 cores."""
    for mode, (calls, batch, wrong_calls, wrong_batch) in RULES.items():
        found = input_calls(mode, BATCH, HOSTS, CORES)
        expect(
            isinstance(found, tuple | list) and len(found) == 2,
            f"input_calls should return a pair, calls and batch size; yours returns {a(found)}.",
        )
        where = f"{mode}, 4 hosts, 32 cores, a global batch of 960"
        expect(found[0] == calls, f"{where}. {wrong_calls}: {calls}; yours says {found[0]}.")
        expect(found[1] == batch, f"{where}. {wrong_batch}: {batch}; yours says {found[1]}.")
        expect(
            all(isinstance(each, Integral) for each in found),
            f"A batch size is a whole number; yours gives {found} for {mode}: divide with //.",
        )
    return "Once for each host, core or job, and the batch of those who share it."
