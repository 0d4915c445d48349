"""Frontend for JAX: a jitted step, or a plain function, with an example of its arguments or their shapes.

The step is traced and lowered for TPUs in the caller's process, by the caller's own JAX; nothing is allocated
and nothing runs. The compiler works in the child process, as for every other program.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import jax

from lab_utils.common.figures import counted
from lab_utils.common.source import Place, place
from lab_utils.dry_run.facts import jaxpr as read_jaxpr
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.facts.jax import JaxFacts
from lab_utils.dry_run.frontends import jax_calls, jax_cores, jax_step
from lab_utils.dry_run.frontends.jax_calls import Call
from lab_utils.dry_run.frontends.jax_runs import Step
from lab_utils.dry_run.frontends.jax_step import JaxStep
from lab_utils.dry_run.lower import sharded
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private import jax as _jax
from lab_utils.dry_run.program import Comparison, Program
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.workload import Trace, Workload
from lab_utils.runtime import chips

_AROUND = " If only the function around a jitted step reads values, hand over the jitted step."


class JaxWorkload(Workload):
    """A JAX step with an example of its arguments.

    Raises:
        TypeError, ValueError: as jax_calls.examples.
    """

    framework = backend = "JAX"

    def __init__(
        self,
        step: Callable,
        data: Any,
        topology: str,
        mesh_axes: Mapping[str, int] | None = None,
        state_argnums: int | Sequence[int] | None = None,
        batch_argnums: int | Sequence[int] | None = None,
    ) -> None:
        self.topology, self.mesh_axes = topology, mesh_axes
        self.state_argnums, self.batch_argnums = map(_numbers, (state_argnums, batch_argnums))
        self.inner, *_ = jax_calls.unbound(step)
        self.is_pmap = jax_calls.is_pmap(self.inner)
        if self.is_pmap:
            with suppress(RuntimeError):  # JAX has started with the devices that it has
                jax.config.update("jax_num_cpu_devices", chips.cores(topology))
        self.recorded = data if isinstance(data, Step) else None
        calls = (
            data.calls if self.recorded else [(args,) for args in jax_calls.examples(step, data)]
        )
        self.calls = jax_calls.without_refs([Call.of(step, *call) for call in calls])
        self.where = self.recorded.where if self.recorded else place(self.inner)
        self.name = f"JAX step {self.where.position}"
        self.feed_place = Place(text="the batches")
        if self.recorded:
            self.no_feed = (
                "the batches come from the program's loop, which the dry run stopped at its first "
                "steps"
            )
        self.known = JaxFacts(
            self,
            self.recorded.called_at if self.recorded else self.where,
            is_pmap=self.is_pmap,
            is_jitted=not self.recorded or self.recorded.is_jitted,
        )

    def traced_step(self) -> JaxStep:
        """The step, traced with the arguments of each call.

        Raises:
            CannotLower: it cannot be traced.
        """
        recorded, refuse = self.recorded, self._refusal_of_trace
        precision = recorded.precision if recorded else jax.config.jax_default_matmul_precision
        traces = [jax_step.traced(call, self.where, precision, refuse) for call in self.calls]
        pairs, new = self._seen(traces[0])
        if pairs is None or self.state_argnums is not None:
            pairs = dict(read_jaxpr.state_numbers(traces[0], self.state_argnums))
        batch = partial(self._batch, traces[0], set(pairs), new)
        state = list(pairs.items())
        return JaxStep(self.calls, traces, self.where, state, batch, self._refusal, self.is_pmap)

    def _seen(self, traced: Any) -> tuple[dict[int, int] | None, set[int]]:
        """What two calls of the program show, by numbers of arrays: which come back, and which are new.

        None, and none, where a program made no two calls, or where its arrays have no numbers. Where the step
        changes objects in place, None stands for what comes back.
        """
        recorded = self.recorded
        if not recorded or not (len(recorded.calls) > 1 or recorded.pairs):
            return None, set()
        try:
            numbers = jax_calls.leaf_numbers(self.calls[0], traced)
        except Unavailable:
            return None, set()
        new = {numbers[n] for n in recorded.new if n in numbers}
        if len(recorded.given) != len(traced.jaxpr.jaxpr.outvars):
            return None, new
        pairs = {numbers[n]: result for n, result in recorded.pairs.items() if n in numbers}
        return pairs, new

    def _batch(self, traced: Any, state: set[int], new: set[int]) -> set[int]:
        """The numbers of the arrays that hold examples; `new` are those that calls have shown to be new.

        Raises:
            InputUnfit: arrays of several first axes may be meant.
        """
        if self.batch_argnums is not None:
            numbers = enumerate(read_jaxpr.argument_numbers(traced))
            return {n for n, argument in numbers if argument in self.batch_argnums}
        jaxpr = traced.jaxpr.jaxpr
        new = {n for n in new - state if not _jax.holds_key(jaxpr.invars[n].aval)}
        if not new:
            return _batch(jaxpr, state)
        return new if self.is_pmap else new | _of_their_length(jaxpr, new, state)

    def _refusal_of_trace(self, error: Exception) -> CannotLower:
        """What an error means that JAX raises while it traces: for jax.pmap, that devices may be missing."""
        cores = chips.cores(self.topology)
        if not self.is_pmap or jax.device_count() >= cores:
            return self._refusal(error, [])
        return CannotLower(
            f"{sharded.as_many(cores)}: jax.pmap maps over the devices of this process, and JAX has "
            f"{counted(jax.device_count(), 'device')} here where {self.topology} has {cores}",
            where=self.where,
            only_here=True,
        )

    def _refusal(self, error: Exception, traces: list[Any]) -> CannotLower:
        is_whole = hasattr(self.inner, "donate_first") or hasattr(self.inner, "trace")
        around = "" if self.is_pmap or is_whole else _AROUND
        return jax_step.refusal(error, self.where, traces, around)

    def facts(self, traces: list[Trace], cores: int) -> list[Facts]:
        """What is known of the step."""
        return [self.known]

    def lower(self, cores: int, mode: Mode = Mode.TRAIN, batch: int | None = None) -> Program:
        """The step, split over `cores` cores as its shardings say, or for one core where it has none."""
        if batch is not None:
            raise InputUnfit("a JAX step is judged only with the batch of its example")
        return self.known.built().lower(cores, self.topology, self.mesh_axes)

    def comparison(self, share: int) -> Comparison:
        """The step for virtual cores of this machine, with a part 1/`share` of its batch.

        Raises:
            Incomparable: it cannot be run here.
        """
        step = self.known.built()
        shardings = {}
        if not self.is_pmap:
            with suppress(Unavailable):  # without numbers it is not comparable, which is said there
                leaves = jax_calls.traced_leaves(step.calls[0], step.traced)
                shardings = {n: getattr(leaf, "sharding", None) for n, leaf in leaves.items()}
        roles = jax_cores.Roles(step.state, step.batch(), shardings)
        comparison = jax_cores.comparison(
            step.calls[0], step.traced, jax_calls.trace, roles, is_pmap=self.is_pmap, share=share
        )
        return replace(comparison, is_loop=bool(self.recorded and self.recorded.is_loop))


def _numbers(argnums: int | Sequence[int] | None) -> set[int] | None:
    if argnums is None:
        return None
    return {argnums} if isinstance(argnums, int) else set(argnums)


def _batch(jaxpr: Any, state: set[int]) -> set[int]:
    """The numbers of the arrays that hold examples: those of a batch have one first axis.

    A step may take parameters that are not state: those that LoRA keeps, or all where nothing is trained.

    Raises:
        InputUnfit: several arguments may be the batch.
    """
    names = _jax.names(jaxpr)
    groups: dict[str, list[int]] = {}
    for number, variable in enumerate(jaxpr.invars):
        if number not in state and variable.aval.shape and not _jax.holds_key(variable.aval):
            argument = re.match(r"\w*", names[number])[0]  # "batch" of "batch['image']"
            groups.setdefault(argument, []).append(number)
    sizes = {
        argument: {jaxpr.invars[number].aval.shape[0] for number in numbers}
        for argument, numbers in groups.items()
    }
    alike = {argument: of.pop() for argument, of in sizes.items() if len(of) == 1}
    if len(set(alike.values())) > 1:
        found = ", ".join(f"{argument} ({size})" for argument, size in alike.items())
        raise InputUnfit(
            "the dry run cannot tell which argument is the batch. By their first axes, it may be "
            f"one of these: {found}. Say which one it is, as in dry_run(step, arguments, "
            "batch_argnums=1)"
        )
    return {number for argument in alike for number in groups[argument]}


def _of_their_length(jaxpr: Any, new: set[int], state: set[int]) -> set[int]:
    """The numbers of arguments that hold an example in each row, as the new ones do, and are not new.

    A step may take the whole data each time, and new noise for each of the examples. An array within a
    structure may be a frozen parameter instead.
    """
    lengths = {jaxpr.invars[number].aval.shape[0] for number in new}
    return {
        number
        for number, (name, variable) in enumerate(zip(_jax.names(jaxpr), jaxpr.invars, strict=True))
        if len(lengths) == 1 and number not in state and not _jax.holds_key(variable.aval)
        and variable.aval.shape[:1] == (*lengths,) and name.isidentifier()
    }  # fmt: skip
