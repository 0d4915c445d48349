"""Frontend for JAX: a jitted step, or a plain function, with an example of its arguments or their shapes.

The step is traced and lowered for TPUs in the caller's process, by the caller's own JAX; nothing is allocated
and nothing runs. The compiler works in the child process, as for every other program.
"""

import math
import re
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import jax

from lab_utils.common.figures import counted
from lab_utils.common.source import Place, place
from lab_utils.dry_run.facts import jaxpr as read_jaxpr
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.facts.jax import JaxFacts
from lab_utils.dry_run.frontends import jax_calls, jax_cores
from lab_utils.dry_run.frontends.jax_calls import Call
from lab_utils.dry_run.frontends.jax_runs import Step
from lab_utils.dry_run.lower import sharded
from lab_utils.dry_run.lower.errors import (
    NOTHING_COMPUTED,
    CannotLower,
    IndivisibleAxis,
    InputUnfit,
    NothingKept,
    NotJax,
)
from lab_utils.dry_run.private import jax as _jax
from lab_utils.dry_run.private import process
from lab_utils.dry_run.program import (
    Api,
    Comparison,
    Input,
    Output,
    Partition,
    Program,
    Role,
    Split,
)
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.workload import Trace, Workload
from lab_utils.runtime import chips

_SIZED = (
    "compress",
    "extract",
)  # functions of jax.numpy that JAX ends with an error about truth values
# JAX's words for what it cannot lower for a platform.
_NO_RULE = re.compile(r"rule for primitive '([\w-]+)' not found for platform tpu")
_SYMMETRIC = ("eig", "schur", "hessenberg")  # which a TPU lacks, but not eigh
_AROUND = " If only the function around a jitted step reads values, hand over the jitted step."


class JaxWorkload(Workload):
    """A JAX step with an example of its arguments.

    Raises:
        TypeError, ValueError: as jax_calls.examples.
    """

    framework = backend = "JAX"
    _leak = "leak"

    def __init__(
        self,
        step: Callable,
        data: Any,
        topology: str,
        mesh_axes: Mapping[str, int] | None = None,
        state_argnums: int | Sequence[int] | None = None,
        batch_argnums: int | Sequence[int] | None = None,
    ) -> None:
        self.step, self.topology, self.mesh_axes = step, topology, mesh_axes
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

    @cached_property
    def traces(self) -> list[Any]:
        """The step as JAX traces it, with the arguments of each call.

        Raises:
            CannotLower: it cannot be traced.
        """
        return [self._traced(call) for call in self.calls]

    @cached_property
    def _seen(self) -> tuple[dict[int, int] | None, set[int]]:
        """What two calls of the program show, by numbers of arrays: which come back, and which are new.

        None, and none, where a program made no two calls, or where its arrays have no numbers. Where the step
        changes objects in place, None stands for what comes back.
        """
        jaxpr, recorded = self.traces[0].jaxpr.jaxpr, self.recorded
        is_known = recorded and (len(recorded.calls) > 1 or recorded.pairs)
        if not is_known:
            return None, set()
        try:
            numbers = jax_calls.leaf_numbers(self.calls[0], self.traces[0])
        except Unavailable:
            return None, set()
        new = {numbers[n] for n in recorded.new if n in numbers}
        if len(recorded.given) != len(jaxpr.outvars):
            return None, new
        pairs = {numbers[n]: result for n, result in recorded.pairs.items() if n in numbers}
        return pairs, new

    @cached_property
    def state(self) -> list[tuple[int, int]]:
        """Pairs (number of an argument's array, number of the result that is its new value)."""
        pairs, _ = self._seen
        if pairs is not None and self.state_argnums is None:
            return list(pairs.items())
        return read_jaxpr.state_numbers(self.traces[0], self.state_argnums)

    @cached_property
    def batch(self) -> set[int]:
        """The numbers of the arrays that hold examples.

        Raises:
            InputUnfit: arrays of several first axes may be meant.
        """
        traced = self.traces[0]
        _, new = self._seen
        held = {n for n, _ in self.state}
        if self.batch_argnums is not None:
            return {
                n
                for n, argument in enumerate(read_jaxpr.argument_numbers(traced))
                if argument in self.batch_argnums
            }
        variables = traced.jaxpr.jaxpr.invars
        new = {number for number in new - held if not _jax.holds_key(variables[number].aval)}
        if not new:
            return _batch(traced.jaxpr.jaxpr, held)
        return new if self.is_pmap else new | _of_their_length(traced.jaxpr.jaxpr, new, held)

    @property
    def _precision(self) -> str | None:
        """Of matmuls, as jax.default_matmul_precision has it where the step is called."""
        return self.recorded.precision if self.recorded else jax.config.jax_default_matmul_precision

    def _traced(self, call: Call) -> Any:
        try:
            with jax.default_matmul_precision(self._precision):
                traced = jax_calls.trace(call)
        except Exception as error:  # whatever the learner's function raises is the step's fault
            cores = chips.cores(self.topology)
            if self.is_pmap and jax.device_count() < cores:
                raise CannotLower(
                    f"{sharded.as_many(cores)}: jax.pmap maps over the devices of this process, and JAX has "
                    f"{counted(jax.device_count(), 'device')} here where {self.topology} has {cores}",
                    where=self.where,
                    only_here=True,
                ) from error
            raise self._refusal(error) from error
        if _jax.OLD_PMAP in read_jaxpr.primitives(traced.jaxpr.jaxpr):
            raise CannotLower("jax.pmap needs jax 0.8 or later", where=self.where, only_here=True)
        if leaked := _jax.leak(traced):
            error, made_at = leaked
            raise NotJax(error, made_at or self.where, self._leak)
        if not _jax.computes(traced.jaxpr.jaxpr):
            if jax_calls.loses_updates(call):
                raise NothingKept(NOTHING_COMPUTED, where=self.where)
            raise InputUnfit(NOTHING_COMPUTED)
        return traced

    def _refusal(self, error: Exception) -> CannotLower:
        """What an error of JAX means: with a JAX that was not tried, nothing about the step."""
        if reason := process.newer_jax():
            return CannotLower(f"{reason}: {error}", where=self.where, only_here=True)
        if lacking := _NO_RULE.search(str(error)):
            name = lacking[1]
            case = "symmetric" if name in _SYMMETRIC else "host"
            return NotJax(error, self._line_of(name) or self.where, case, name=name)
        if "block shape" in str(error):
            return NotJax(error, self.where, "block")
        boolean = isinstance(error, jax.errors.NonConcreteBooleanIndexError)
        called = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
        boolean |= not called.isdisjoint(_SIZED)
        equinox = hasattr(self.inner, "donate_first")
        around = "" if self.is_pmap or equinox or hasattr(self.inner, "trace") else _AROUND
        return NotJax(error, self.where, "mask" if boolean else "branch", around=around)

    def _line_of(self, primitive: str) -> Place:
        """The first line of the step that uses a primitive; no place where it was not traced."""
        traces = self.__dict__.get("traces", ())
        lines = (read_jaxpr.line_of(traced.jaxpr.jaxpr, primitive) for traced in traces)
        return next(filter(None, lines), Place())

    def facts(self, traces: list[Trace], cores: int) -> list[Facts]:
        """What is known of the step."""
        return [JaxFacts(self)]

    @property
    def statics(self) -> list[list[Any]] | None:
        """Of each call what is a constant of its program; None for what JAX jitted, whose cache tells."""
        if hasattr(self.inner, "trace"):
            return None
        return [jax_calls.statics(call) for call in self.calls]

    @property
    def copies(self) -> set[int]:
        """The numbers of the arguments that the cores hold alike, each in an array of its own."""
        return jax_cores.copies(self.calls[0], self.traces[0], self.state, is_pmap=self.is_pmap)

    @property
    def given(self) -> dict[int, Any]:
        """The arrays of the first call by the numbers of those that JAX traces."""
        leaves = jax_calls.traced_leaves(self.calls[0], self.traces[0])
        return {n: leaf for n, leaf in leaves.items() if isinstance(leaf, jax.Array)}

    @property
    def called_at(self) -> Place:
        """The line that calls the step, where a run of the program has shown it; else the step's own."""
        return self.recorded.called_at if self.recorded else self.where

    @property
    def loses_updates(self) -> bool:
        """Whether jax.jit hands the step a copy of what it changes."""
        return jax_calls.loses_updates(self.calls[0])

    def lower(self, cores: int, mode: Mode = Mode.TRAIN, batch: int | None = None) -> Program:
        """The step, split over `cores` cores as its shardings say, or for one core where it has none."""
        if batch is not None:
            raise InputUnfit("a JAX step is judged only with the batch of its example")
        traced = self.traces[0]
        jaxpr = traced.jaxpr.jaxpr
        text, arguments = self._lowered(traced)
        mapper, here = self._mapper(jaxpr), jax.device_count()
        text, mesh = sharded.layout(text, cores, self.topology, self.mesh_axes, mapper, here)
        names = _jax.names(jaxpr)
        state = {names[number] for number, _ in self.state}
        try:
            inputs = [_input(array, mesh, state=array.name in state) for array in arguments]
        except IndivisibleAxis as error:
            raise NotJax(error, self.where, "branch", around="") from error
        # In the jit around a pmap the compiler may lay new state in another way; pmap itself does not.
        reused = state if self.is_pmap else set()
        per_core_batch = self.examples_a_step / math.prod(mesh.values())
        return Program(
            name=self.where.function or "step",
            mode=Mode.TRAIN if state else Mode.FORWARD,
            api=Api.JAX,
            cores=cores,
            per_core_batch=int(per_core_batch) if per_core_batch.is_integer() else per_core_batch,
            hlo=text.encode(),
            inputs=inputs,
            outputs=[Output(array.name, Role.VARIABLE) for array in inputs if array.name in state],
            matmuls=list(read_jaxpr.matmuls(jaxpr)),
            kernels=read_jaxpr.lines_of_kernels(jaxpr, self.where),
            where=self.where,
            partition=Partition(
                mesh,
                [n for n, a in enumerate(arguments) if a.donated and a.name not in reused],
                bool(read_jaxpr.silent_kernels(jaxpr, self.where)),
                _splits(arguments, jaxpr, state, self.where),
                is_whole=math.prod(mesh.values()) > 1 and not sharded.splits(text),
            ),
            left_out=self._left_out(jaxpr),
        )

    @property
    def examples_a_step(self) -> int:
        """Examples that a step takes: the first axis of the largest array of the batch; 1 without one.

        Those of jax.pmap have an axis of devices before that of examples.
        """
        variables = self.traces[0].jaxpr.jaxpr.invars
        shapes = [variables[number].aval.shape for number in self.batch]
        return math.prod(max(shapes, key=math.prod, default=())[: 2 if self.is_pmap else 1])

    def comparison(self, share: int) -> Comparison:
        """The step for virtual cores of this machine, with a part 1/`share` of its batch.

        Raises:
            Incomparable: it cannot be run here.
        """
        call, traced = self.calls[0], self.traces[0]
        shardings = {}
        if not self.is_pmap:
            with suppress(
                Unavailable
            ):  # without numbers the step is not comparable, which is said there
                leaves = jax_calls.traced_leaves(call, traced)
                shardings = {n: getattr(leaf, "sharding", None) for n, leaf in leaves.items()}
        roles = jax_cores.Roles(self.state, self.batch, shardings)
        comparison = jax_cores.comparison(
            call, traced, jax_calls.trace, roles, is_pmap=self.is_pmap, share=share
        )
        return replace(comparison, is_loop=bool(self.recorded and self.recorded.is_loop))

    def _mapper(self, jaxpr: Any) -> str:
        if "shard_map" not in read_jaxpr.primitives(jaxpr):
            return ""
        return "jax.pmap" if self.is_pmap else "jax.shard_map"

    def _lowered(self, traced: Any) -> tuple[str, list[_jax.Argument]]:
        """StableHLO with the learner's lines, and what it takes."""
        callbacks = read_jaxpr.callbacks(traced.jaxpr.jaxpr)
        with warnings.catch_warnings(), _jax.callbacks_left_out(callbacks):
            warnings.filterwarnings("ignore", "Some donated buffers")  # TPU341 says it
            try:
                lowered = traced.lower(lowering_platforms=("tpu",))
                return lowered.as_text(debug_info=True), _jax.arguments(traced, lowered)
            except Exception as error:  # JAX has many ways to refuse
                raise self._refusal(error) from error

    def _left_out(self, jaxpr: Any) -> str:
        sentences = []
        if read_jaxpr.callbacks(jaxpr):
            sentences.append("Calls to the host (TPU241): the compiled step leaves them out.")
        if kernels := read_jaxpr.silent_kernels(jaxpr, self.where):
            lines = ", ".join(kernel.position for kernel in kernels)
            sentences.append(
                f"The FLOPs of Pallas kernels ({lines}): the compiler counts no FLOPs of a "
                "pallas_call without a cost_estimate, so the bound may be far too low."
            )
        if self._mapper(jaxpr):
            sentences.append(
                "Whether the cores of a mapped step agree on integers and single numbers in its "
                "state: TPU245 and TPU246 judge only its arrays."
            )
        return " ".join(sentences)


def _splits(
    arguments: list[_jax.Argument], jaxpr: Any, state: set[str], where: Place
) -> list[Split]:
    """How the arguments and the constraints of a step split arrays."""
    splits = [
        Split(item.name, item.shape, item.dtype, item.spec or (), where, item.name in state)
        for item in arguments
    ]
    for equation, spec in _jax.constraints(jaxpr):
        array = equation.outvars[0].aval
        place = _jax.place(equation) or where
        splits.append(Split("", tuple(array.shape), str(array.dtype), spec, place))
    return splits


def _input(array: _jax.Argument, mesh: dict[str, int], *, state: bool) -> Input:
    return Input(
        array.name,
        Role.VARIABLE if state else Role.FEATURE,
        sharded.local_shape(array.shape, array.spec, mesh, array.name),
        array.dtype,
        trainable=state and "float" in array.dtype,
    )


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
            "the dry run cannot tell which argument is the batch, since several have the same "
            f"first axis: {found}. Say which one it is, as in dry_run(step, arguments, "
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
