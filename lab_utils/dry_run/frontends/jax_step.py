"""A step of JAX as it was traced: both frontends of JAX make one, rules read it, and TPUs get it lowered."""

import math
import re
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from lab_utils.common.source import Place
from lab_utils.dry_run.facts import jaxpr as read_jaxpr
from lab_utils.dry_run.frontends import jax_calls, jax_cores
from lab_utils.dry_run.frontends.jax_calls import Call
from lab_utils.dry_run.lower import sharded
from lab_utils.dry_run.lower.errors import (
    NOTHING_COMPUTED,
    CannotLower,
    IndivisibleAxis,
    InputUnfit,
    NothingKept,
    NotJax,
)
from lab_utils.dry_run.lower.instructions import matmuls
from lab_utils.dry_run.private import jax as _jax
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.hlo import module as hlo_module
from lab_utils.dry_run.program import Api, Input, Output, Partition, Program, Role, Split
from lab_utils.dry_run.records import Mode

# Functions of jax.numpy that JAX ends with an error about truth values.
_SIZED = ("compress", "extract")
# JAX's words for what it cannot lower for a platform.
_NO_RULE = re.compile(r"rule for primitive '([\w-]+)' not found for platform tpu")
_SYMMETRIC = ("eig", "schur", "hessenberg")  # which a TPU lacks, but not eigh


@dataclass(frozen=True)
class JaxStep:
    """A step with its calls.

    Attributes:
        calls: one for each example of its arguments.
        traces: the step as JAX traces it, with the arguments of each call.
        where: its line.
        state: pairs (number of an argument's array, number of the result that is its new value).
        batch: finds the numbers of the arrays that hold examples, or raises InputUnfit.
        refuse: says what an error means that JAX raises while it lowers the step as it was traced.
        is_pmap: jax.pmap maps it.
    """

    calls: list[Call]
    traces: list[Any]
    where: Place
    state: list[tuple[int, int]]
    batch: Callable[[], set[int]]
    refuse: Callable[[Exception, list[Any]], CannotLower]
    is_pmap: bool = False

    @property
    def traced(self) -> Any:
        """The step, traced with the arguments of the first call."""
        return self.traces[0]

    @property
    def statics(self) -> list[list[Any]] | None:
        """Of each call what is a constant of its program; None for what JAX jitted, whose cache tells."""
        if hasattr(self.calls[0].function, "trace"):
            return None
        return list(map(jax_calls.statics, self.calls))

    @property
    def copies(self) -> set[int]:
        """The numbers of the arguments that the cores hold alike, each in an array of its own.

        Raises:
            Unavailable: as jax_calls.leaf_numbers.
        """
        return jax_cores.copies(self.calls[0], self.traced, self.state, is_pmap=self.is_pmap)

    @property
    def given(self) -> dict[int, Any]:
        """The arrays of the first call by the numbers of those that JAX traces.

        Raises:
            Unavailable: as jax_calls.leaf_numbers.
        """
        leaves = jax_calls.traced_leaves(self.calls[0], self.traced)
        return {n: leaf for n, leaf in leaves.items() if isinstance(leaf, jax.Array)}

    @property
    def loses_updates(self) -> bool:
        """Whether jax.jit hands the step a copy of what it changes."""
        return jax_calls.loses_updates(self.calls[0])

    @property
    def examples(self) -> int:
        """Examples that a step takes: the first axis of the largest array of the batch; 1 without one.

        Those of jax.pmap have an axis of devices before that of examples.
        """
        variables = self.traced.jaxpr.jaxpr.invars
        shapes = [variables[number].aval.shape for number in self.batch()]
        return math.prod(max(shapes, key=math.prod, default=())[: 2 if self.is_pmap else 1])

    def lower(self, cores: int, topology: str, mesh_axes: Mapping[str, int] | None) -> Program:
        """The step, split over `cores` cores as its shardings say, or for one core where it has none.

        Raises:
            CannotLower: there is no such program.
        """
        jaxpr = self.traced.jaxpr.jaxpr
        text, arguments = self._lowered()
        text, mesh = sharded.layout(
            text, cores, topology, mesh_axes, self._mapper, jax.device_count()
        )
        names = _jax.names(jaxpr)
        state = {names[number] for number, _ in self.state}
        try:
            inputs = [_input(array, mesh, state=array.name in state) for array in arguments]
        except IndivisibleAxis as error:
            raise NotJax(error, self.where, "branch", around="") from error
        # In the jit around a pmap the compiler may lay new state in another way; pmap itself does not.
        reused = state if self.is_pmap else set()
        per_core_batch = self.examples / math.prod(mesh.values())
        return Program(
            name=self.where.function or "step",
            mode=Mode.TRAIN if state else Mode.FORWARD,
            api=Api.JAX,
            cores=cores,
            per_core_batch=int(per_core_batch) if per_core_batch.is_integer() else per_core_batch,
            hlo=text.encode(),
            inputs=inputs,
            outputs=[Output(array.name, Role.VARIABLE) for array in inputs if array.name in state],
            matmuls=matmuls(hlo_module(_jax.hlo_of(text))),
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
    def _mapper(self) -> str:
        if "shard_map" not in read_jaxpr.primitives(self.traced.jaxpr.jaxpr):
            return ""
        return "jax.pmap" if self.is_pmap else "jax.shard_map"

    def _lowered(self) -> tuple[str, list[_jax.Argument]]:
        """StableHLO with the learner's lines, and what it takes."""
        callbacks = read_jaxpr.callbacks(self.traced.jaxpr.jaxpr)
        with warnings.catch_warnings(), _jax.callbacks_left_out(callbacks):
            warnings.filterwarnings("ignore", "Some donated buffers")  # TPU341 says it
            try:
                lowered = self.traced.lower(lowering_platforms=("tpu",))
                return lowered.as_text(debug_info=True), _jax.arguments(self.traced, lowered)
            except Exception as error:  # JAX has many ways to refuse
                raise self.refuse(error, self.traces) from error

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
        if self._mapper:
            sentences.append(
                "Whether the cores of a mapped step agree on integers and single numbers in its "
                "state: TPU245 and TPU246 judge only its arrays."
            )
        return " ".join(sentences)


def traced(
    call: Call,
    where: Place,
    precision: str | None,
    refuse: Callable[[Exception], CannotLower],
    leak: str = "leak",
) -> Any:
    """A call as JAX traces it, the jax.stages.Traced.

    Args:
        call: what is traced.
        where: the line of a finding on the whole step.
        precision: of matmuls, as jax.default_matmul_precision has it where the step is called.
        refuse: says what an error means that the step raises.
        leak: the case of TPU343 for a value of a trace that has ended.

    Raises:
        CannotLower: it cannot be traced, or computes nothing.
    """
    try:
        with jax.default_matmul_precision(precision):
            result = jax_calls.trace(call)
    except Exception as error:  # whatever the learner's function raises is the step's fault
        raise refuse(error) from error
    if _jax.OLD_PMAP in read_jaxpr.primitives(result.jaxpr.jaxpr):
        raise CannotLower("jax.pmap needs jax 0.8 or later", where=where, only_here=True)
    if leaked := _jax.leak(result):
        error, made_at = leaked
        raise NotJax(error, made_at or where, leak)
    if not _jax.computes(result.jaxpr.jaxpr):
        if jax_calls.loses_updates(call):
            raise NothingKept(NOTHING_COMPUTED, where=where)
        raise InputUnfit(NOTHING_COMPUTED)
    return result


def refusal(error: Exception, where: Place, traces: list[Any], around: str = "") -> CannotLower:
    """What an error of JAX means: with a JAX that was not tried, nothing about the step.

    Args:
        error: what JAX raised while it traced or lowered the step.
        where: the line of a finding on the whole step.
        traces: of the step, where it was traced: they have the line of an op that a TPU lacks.
        around: what to do where a function around a jitted step is at fault.
    """
    if reason := process.newer_jax():
        return CannotLower(f"{reason}: {error}", where=where, only_here=True)
    if lacking := _NO_RULE.search(str(error)):
        name = lacking[1]
        case = "symmetric" if name in _SYMMETRIC else "host"
        lines = (read_jaxpr.line_of(each.jaxpr.jaxpr, name) for each in traces)
        return NotJax(error, next(filter(None, lines), where), case, name=name)
    if "block shape" in str(error):
        return NotJax(error, where, "block")
    boolean = isinstance(error, jax.errors.NonConcreteBooleanIndexError)
    called = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    boolean |= not called.isdisjoint(_SIZED)
    return NotJax(error, where, "mask" if boolean else "branch", around=around)


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
