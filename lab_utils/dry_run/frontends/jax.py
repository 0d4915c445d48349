"""Frontend for JAX: a jitted step, or a plain function, with an example of its arguments or their shapes.

The step is traced and lowered for TPUs in the caller's process, by the caller's own JAX; nothing is allocated
and nothing runs. The compiler works in the child process, as for every other program.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from lab_utils.common.figures import counted
from lab_utils.common.source import Place, place
from lab_utils.dry_run.frontends import jax_arguments, jax_inner, jax_steps
from lab_utils.dry_run.lower import sharded
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.private import jax_tracing as _tracing
from lab_utils.dry_run.program import Input, Output, Partition, Program, Role
from lab_utils.dry_run.read import jaxpr as read_jaxpr
from lab_utils.dry_run.read import jaxpr_flops
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.traced import Trace


class NotJax(CannotLower):
    """The step raised while JAX traced or lowered it."""

    def finding(self) -> Finding:
        """TPU343, with JAX's own words."""
        return finding("TPU343", self.where, message=str(self), reason=str(self)[:300])


class JaxWorkload:
    """A JAX step with an example of its arguments.

    Raises:
        TypeError, ValueError: as jax_arguments.examples.
    """

    most_steps = None

    def __init__(
        self, step: Callable, data: Any, topology: str, mesh_axes: Mapping[str, int] | None = None
    ) -> None:
        self.step, self.topology, self.mesh_axes = step, topology, mesh_axes
        self.examples = jax_arguments.examples(step, data)
        self.judged = step  # or the jitted function in it, where that alone can be traced
        self.where = place(jax_steps.source(step))
        self.name = f"JAX step {self.where.position}"
        self.feed_place = Place(text="the batches")

    @cached_property
    def _traces(self) -> list[Any]:
        return [self._traced(call) for call in self.examples]

    def _traced(self, call: tuple) -> Any:
        if unfit := _tracing.unfit():
            raise CannotLower(unfit, where=self.where, only_here=True)
        try:
            self.judged, traced = jax_inner.traced(self.step, call)
            return traced
        except Exception as error:  # whatever the learner's function raises is the step's fault
            if count := jax_steps.devices_wanted(self.step, call):
                raise CannotLower(
                    f"the batch is for {counted(count, 'device')}, and jax.pmap has fewer here: "
                    f"{sharded.as_many(count)}",
                    where=self.where,
                    only_here=True,
                ) from error
            raise NotJax(
                f"{type(error).__name__}: {error}", where=place(error) or self.where
            ) from error

    def trace(self, cores: int) -> list[Trace]:
        """None: a JAX step has no graphs of TPUEstimator's."""
        return []

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the step's jaxpr tells."""
        own = jax_steps.has_cache(self.step)
        found = read_jaxpr.changing(self._traces, self.where, one_cache=own)
        pmapped = jax_steps.is_pmap(self.judged)
        return found + read_jaxpr.read(self._traces[0], self.where, pmapped=pmapped)

    def lower(
        self, cores: int, mode: Mode = Mode.TRAIN, global_batch: int | None = None
    ) -> Program:
        """The step, split over `cores` cores as its shardings say, or for one core where it has none."""
        if global_batch is not None:
            raise InputUnfit("a JAX step is judged with the batch of its example alone")
        traced = self._traces[0]
        if read_jaxpr.has_old_pmap(traced.jaxpr.jaxpr):
            raise CannotLower(
                "a step of jax.pmap is compiled with a JAX that builds it on jax.shard_map, 0.8 or later",
                where=self.where,
                only_here=True,
            )
        text, arguments = self._lowered(traced)
        text, mesh = sharded.laid_out(
            text,
            cores,
            self.topology,
            self.mesh_axes,
            mapped=self._mapped(traced),
        )
        state = {number for number, _ in read_jaxpr.state_numbers(traced)}
        names = _tracing.names(traced.jaxpr.jaxpr)
        held = {names[number] for number in state}
        try:
            inputs = [_input(each, mesh, state=each.name in held) for each in arguments]
        except sharded.Undivided as error:
            raise NotJax(str(error), where=self.where) from error
        parts = math.prod(mesh.values())
        axes = 2 if jax_steps.is_pmap(self.judged) else 1
        return Program(
            name=self.where.function or "step",
            mode=Mode.TRAIN if state else Mode.FORWARD,
            cores=cores,
            per_core_batch=_per_core(_batch(arguments, held, axes), parts),
            hlo=text.encode(),
            inputs=inputs,
            outputs=[Output(each.name, Role.VARIABLE) for each in inputs if each.name in held],
            where=self.where,
            partition=Partition(
                mesh,
                [n for n, each in enumerate(arguments) if each.donated],
                [sharded.axes_of(each.spec) for each in arguments],
                sorted(_batch_axes(arguments, held)),
                jaxpr_flops.flops(traced.jaxpr.jaxpr),
                bool(read_jaxpr.uncounted(traced.jaxpr.jaxpr, self.where)),
                read_jaxpr.constrained(traced.jaxpr.jaxpr, self.where),
            ),
            left_out=self._left_out(traced),
        )

    def _mapped(self, traced: Any) -> str:
        if not read_jaxpr.is_mapped(traced.jaxpr.jaxpr):
            return ""
        return "jax.pmap" if jax_steps.is_pmap(self.judged) else "jax.shard_map"

    def _lowered(self, traced: Any) -> tuple[str, list[_tracing.Argument]]:
        """StableHLO with the learner's lines, and what it takes."""
        with (
            warnings.catch_warnings(),
            _tracing.callbacks_left_out(read_jaxpr.callbacks(traced.jaxpr.jaxpr)),
        ):
            warnings.filterwarnings("ignore", "Some donated buffers")  # TPU341 says it
            try:
                lowered = _tracing.lower(traced)
                return lowered.as_text(debug_info=True), _tracing.arguments(traced, lowered)
            except Exception as error:  # JAX has many ways to refuse
                said = f"{type(error).__name__}: {error}"
                raise NotJax(said, where=place(error) or self.where) from error

    def _left_out(self, traced: Any) -> str:
        jaxpr, said = traced.jaxpr.jaxpr, []
        if self.judged is not self.step:
            name = getattr(self.judged, "__name__", "the jitted function")
            said.append(
                f"What {self.where.function or 'the step'} does around {name}, the jitted function in it."
            )
        if read_jaxpr.callbacks(jaxpr):
            said.append("Calls of the host (TPU241) are left out of the compiled step.")
        if kernels := read_jaxpr.uncounted(jaxpr, self.where):
            lines = ", ".join(each.position for each in kernels)
            said.append(
                f"The FLOPs of Pallas kernels ({lines}): without a cost_estimate in pallas_call the compiler "
                "counts none, so the bound may be far too low."
            )
        if self._mapped(traced) and read_jaxpr.draws(jaxpr):
            said.append(
                "Whether each core draws random numbers of its own: a key that all cores hold needs "
                "jax.random.fold_in(key, jax.lax.axis_index(...))."
            )
        return " ".join(said)

    def lower_alike(self, cores: int, global_batch: int) -> tuple[Program, Program]:
        """Not for JAX: see `lower`."""
        raise InputUnfit("a JAX step is not run here")

    @contextmanager
    def feed(self, cores: int) -> Iterator[tuple[None, None]]:
        """Context manager: no input pipeline."""
        yield None, None


def _input(array: _tracing.Argument, mesh: dict[str, int], *, state: bool) -> Input:
    return Input(
        array.name,
        Role.VARIABLE if state else Role.FEATURE,
        sharded.local_shape(array.shape, array.spec, mesh, array.name),
        array.dtype,
        trainable=state and "float" in array.dtype,
    )


def _batch(arguments: list[_tracing.Argument], state: set[str], axes: int) -> int:
    """Examples of a step: the first axis of the largest array that is not state; 1 where there is none.

    A step may take parameters that are not state: those that LoRA keeps, or all where nothing is trained.
    A batch's arrays have one first axis; where there is no state, the argument with the fewest arrays counts.
    `axes`: 2 for jax.pmap, whose batches have an axis of devices before that of examples.
    """
    held: dict[str, list[_tracing.Argument]] = {}
    for each in arguments:
        if each.name not in state and each.shape and not _is_key(each):
            held.setdefault(_argument(each), []).append(each)
    alike = [arrays for arrays in held.values() if len({each.shape[0] for each in arrays}) == 1]
    chosen = alike or list(held.values())
    if not state:
        chosen = [each for each in chosen if len(each) == min(map(len, chosen))]
    shapes = [each.shape for arrays in chosen for each in arrays]
    return math.prod(max(shapes, key=math.prod, default=())[:axes])


def _is_key(array: _tracing.Argument) -> bool:
    return array.dtype == "uint32" and array.shape[-1] in (2, 4)


def _argument(array: _tracing.Argument) -> str:
    """The name of the argument that an array is a part of: "batch" of "batch['image']"."""
    return re.match(r"\w*", array.name)[0]


def _per_core(batch: int, cores: int) -> float:
    whole, rest = divmod(batch, cores)
    return batch / cores if rest else whole


def _batch_axes(arguments: list[_tracing.Argument], state: set[str]) -> set[str]:
    """The mesh axes over which the arrays that are not state are split."""
    given = [sharded.axes_of(each.spec) for each in arguments if each.name not in state]
    return {axis for split in given for parts in split for axis in parts}
