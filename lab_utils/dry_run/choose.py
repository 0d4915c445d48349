"""Which slice, and which batch: the train step compiled for several, and nothing else done with it.

Each answer of the compiler comes from the cache where it is known. Several steps are compiled side by side
where they leave room.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from lab_utils.common.figures import counted, memory
from lab_utils.dry_run.compile.figures import Compiled
from lab_utils.dry_run.compile.stage import compiling
from lab_utils.dry_run.feed.stage import usable_cores
from lab_utils.dry_run.frontends.recognise import default_topology, workload_of
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.private.process import ChildFailed, NoRoom, TookTooLong
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.report.comparison import Comparison, Trial
from lab_utils.dry_run.session import leaves_room, working
from lab_utils.dry_run.wording import first_line
from lab_utils.dry_run.workload import Observed, Workload
from lab_utils.runtime import chips

COMPILATIONS = 8  # of a search for a batch
_TOGETHER = 4  # compilers at work at a time, at most
_FINE = 8  # batches from here on are multiples of it
_NEAR = 0.1  # the search ends where the next larger batch that does not fit is so near
_OLD = ("v2", "v3")  # on which TPUEstimator is known to run
_ABOUT_ESTIMATOR = (
    "TPUEstimator is known to run on v2 and v3. For newer chips, these are the figures of the "
    "same step in a framework that supports them, such as JAX."
)

Say = Callable[[str], None]
Waiting = Callable[[Any], Compiled]


def compare_topologies(  # noqa: PLR0913  the public door
    subject: Any,
    data: Any,
    topologies: Sequence[str] = chips.POPULAR,
    *,
    train_steps: int | None = None,
    prices: Mapping[str, Any] | str | Path | None = None,
    mesh_axes: Mapping[str, int] | None = None,
    state_argnums: int | Sequence[int] | None = None,
    batch_argnums: int | Sequence[int] | None = None,
    limit: float | None = None,
    cache: bool = True,
    progress: bool = True,
    observed: Observed | None = None,
) -> Comparison:
    """Compiles the train step of a program for several slices: time, examples a second, memory of each.

    The batch of all cores is the program's own on every slice, so that each row does the same training.

    Args:
        subject, data, mesh_axes, state_argnums, batch_argnums, limit, observed: as dry_run takes them.
        topologies: such as ("v2:2x2", "v6e:2x4"); by default what people can get.
        train_steps: of the whole training, for the hours; by default those that a run of the program showed.
        prices: of one chip for an hour by its kind, {"v5e": 1.2, "currency": "USD"}, or a YAML file of that.
        cache: take what an earlier dry run compiled.
        progress: show what is going on, on a terminal or in a notebook.

    Raises:
        TypeError: as dry_run.
        ValueError: an unknown topology, prices that are none, or a limit that is not a positive number.
        Unavailable: jax or libtpu is not installed here.
    """
    for topology in topologies:
        chips.parse(topology)
    listed = _prices(prices)
    steps = train_steps or (observed.steps() if observed else None)
    of_jax = {
        "mesh_axes": mesh_axes,
        "state_argnums": state_argnums,
        "batch_argnums": batch_argnums,
    }

    def workload_for(topology: str) -> Workload:
        return workload_of(subject, data, topology=topology, of_jax=of_jax, observed=observed)

    workload = workload_for(topologies[0])
    programs: dict[Any, Program | str] = {}
    with working(cache, progress, limit) as say, ExitStack() as compilers:

        def program_for(topology: str) -> Program | str:
            cores = chips.cores(topology)
            in_jax = workload.backend == "JAX"  # where a step is laid on that very topology
            key = topology if in_jax else cores
            if key not in programs:
                say(f"the step for {counted(cores, 'core')}")
                programs[key] = _lowered(workload_for(topology) if in_jax else workload, cores)
            return programs[key]

        jobs = ((topology, program_for(topology)) for topology in topologies)
        trials = list(_trials(jobs, compilers, say))
    notes = []
    if workload.framework == "TPUEstimator" and any(
        chips.parse(topology)[0].name not in _OLD for topology in topologies
    ):
        notes.append(_ABOUT_ESTIMATOR)
    priced = [replace(trial, price=_price(trial.topology, listed)) for trial in trials]
    currency = str(listed.get("currency", "money")) if listed else ""
    if source := listed.get("source"):
        notes.append(f"Prices: {source}.")
    return Comparison(workload.name, "slice", priced, steps, currency, notes)


def largest_batch(
    subject: Any,
    data: Any,
    topology: str | None = None,
    *,
    limit: float | None = None,
    cache: bool = True,
    progress: bool = True,
    observed: Observed | None = None,
) -> Comparison:
    """Searches for the largest batch a core that fits, with eight compilations of the train step at most.

    The search begins with the program's own batch, goes on in strides of 2 and 4 times, and then between the
    largest that fits and the smallest that does not, where the compiler's own figures of memory point. Where
    the compiler itself ends without an answer, or has none within `limit`, it goes on with smaller batches
    only, and says so.

    Args:
        subject, data, topology, limit, observed: as dry_run takes them; a JAX step brings its batch in its
            arguments, so that there is nothing to search.
        cache, progress: as compare_topologies.

    Returns:
        the trials by batch; its `best` has the most examples a second of those that fit.

    Raises:
        TypeError, ValueError, Unavailable: as compare_topologies.
        CannotLower: the step cannot be lowered with its own batch.
    """
    topology = topology or default_topology(subject, data)
    cores = chips.cores(topology)
    workload = workload_of(subject, data, topology=topology, observed=observed)
    if workload.backend == "JAX":
        raise ValueError(
            "a JAX step gets its batch as an argument: call compare_topologies with the arguments "
            "for each batch instead"
        )
    trials: dict[int, Trial] = {}
    with working(cache, progress, limit) as say:
        first = workload.lower(cores)
        batch = int(first.per_core_batch)
        while batch and len(trials) < COMPILATIONS:
            say(f"a batch of {batch} a core")
            program = first if not trials else _lowered(workload, cores, batch * cores)
            with ExitStack() as compilers:
                (trials[batch],) = _trials([(topology, program)], compilers, say)
            trials[batch] = replace(trials[batch], batch=batch)
            batch = next_batch(trials)
    ordered = [trials[batch] for batch in sorted(trials)]
    return Comparison(f"{workload.name} on {topology}", "batch", ordered)


def next_batch(trials: Mapping[int, Trial]) -> int | None:
    """The batch to try after these, by batch; None where the search is over.

    A batch that was not judged bounds the search from above, as one that does not fit.
    """
    fits = [batch for batch, trial in trials.items() if trial.seconds is not None]
    fails = [batch for batch, trial in trials.items() if trial.seconds is None]
    low, high = max(fits, default=0), min(fails, default=None)
    if high is None:  # first near the program's own batch, then in longer strides
        return low * (2 if len(trials) < COMPILATIONS / 2 else 4)
    if high <= low or high == 1:
        return None
    if not low:
        return high // 2
    if high - low <= max(1, _NEAR * low):
        return None
    middle = _where_memory_points(trials)
    if middle is None or middle >= high:
        middle = (low + high) / 2
    if high > 2 * _FINE:
        middle = middle // _FINE * _FINE
    middle = int(min(max(middle, low + 1), high - 1))
    return None if middle in trials else middle


def _where_memory_points(trials: Mapping[int, Trial]) -> float | None:
    """The batch whose memory would just fit, on the line through the last batch that fits and the next."""
    known = {}
    for batch, trial in trials.items():
        used = trial.step and trial.step.memory.used
        if used:
            known[batch] = used
    below = [batch for batch in known if trials[batch].seconds is not None]
    above = [batch for batch in known if trials[batch].seconds is None]
    if not below or not above:
        return None
    low, high = max(below), min(above)
    slope = (known[high] - known[low]) / (high - low)
    limit = trials[low].step.memory.available.value
    return low + (limit - known[low]) / slope if slope > 0 else None


def _lowered(workload: Workload, cores: int, batch: int | None = None) -> Program | str:
    """The train step for so many cores, or why there is none."""
    try:
        return workload.lower(cores, batch=batch)
    except CannotLower as error:
        return first_line(error, 300)  # it ends with what to do


def _trials(
    jobs: Iterator[tuple[str, Program | str]], compilers: ExitStack, say: Say
) -> Iterator[Trial]:
    """A trial for each topology with its program, in their order; several compilers work where they may."""
    under_way: list[Callable[[], Trial]] = []
    most = min(_TOGETHER, usable_cores())
    for topology, program in jobs:
        together = isinstance(program, Program) and leaves_room(program)
        while under_way and (len(under_way) >= most or not together):
            yield under_way.pop(0)()
        under_way.append(_started(topology, program, compilers, say))
    for finish in under_way:
        yield finish()


def _started(
    topology: str, program: Program | str, compilers: ExitStack, say: Say
) -> Callable[[], Trial]:
    """Has the compiler begin; what to call for the trial: that of a text says why there is no program."""
    if isinstance(program, str):
        return partial(Trial, topology, why=program)
    waiting = compilers.enter_context(compiling(program, topology, judged=False))
    return partial(_finished, topology, program.per_core_batch, waiting, say)


def _finished(topology: str, batch: float, waiting: Waiting, say: Say) -> Trial:
    say(f"compiling for {topology}")
    try:
        compiled = waiting(None)
    except chips.BadTopology as error:
        return Trial(topology, batch, why=first_line(error))
    except (ChildFailed, NoRoom, TookTooLong) as error:
        return Trial(topology, batch, why=_not_judged(error), is_judged=False)
    return Trial(topology, batch, compiled.step, _why(compiled))


def _not_judged(error: Exception) -> str:
    """What became of a compiler that gave no answer: that says nothing of the program."""
    how = first_line(error).removesuffix("; it said last:")
    if isinstance(error, ChildFailed):
        how = f"the TPU compiler itself ended ({how})"
    return f"not judged: {how}"


def _why(compiled: Compiled) -> str:
    """Why a compiled step has no estimated time; "" where it has one."""
    step = compiled.step
    if step.memory.needed is not None:
        limit = step.memory.available
        return (
            f"the step does not fit: it needs {memory(step.memory.used)} of {memory(limit.value)}"
        )
    if not step.cost:
        return f"the TPU compiler refuses it: {first_line(compiled.refusal)}"
    return "" if step.cost.estimated_seconds else "the compiler estimates no cycles for this chip"


def _prices(prices: Mapping[str, Any] | str | Path | None) -> dict[str, Any]:
    """A price list: kinds of chip by name, "currency" and "source".

    Raises:
        ValueError: it cannot be read, or holds something else.
    """
    if prices is None:
        return {}
    if not isinstance(prices, Mapping):
        try:
            prices = yaml.safe_load(Path(prices).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            raise ValueError(f"the price list {prices} cannot be read: {error}") from error
    form = (
        'a price list has lines such as "v5e: 1.20", for one chip and hour, and may name a currency'
    )
    if not isinstance(prices, Mapping):
        raise ValueError(form)
    for key, value in prices.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_number = is_number and 0 <= value < math.inf
        if key not in ("currency", "source") and not (key in chips.CHIPS and is_number):
            raise ValueError(
                f"{key}: {value!r} is not a price: {form}; chips are {', '.join(chips.CHIPS)}"
            )
    return dict(prices)


def _price(topology: str, prices: Mapping[str, Any]) -> float | None:
    """Of a slice for an hour."""
    chip, cores = chips.parse(topology)
    return None if chip.name not in prices else prices[chip.name] * cores / chip.cores
