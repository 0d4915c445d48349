"""Frontend for a compiled model of Keras 3 on JAX, with the data that fit is given.

Keras itself says what the step is: a pure function of all variables and a batch, which is lowered as any step
of JAX is. The arrays have the shardings of the keras.distribution that the program set.
"""

import contextlib
import inspect
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import jax
import keras
import numpy as np

from lab_utils.common.source import NOWHERE, Place, is_installed, place
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.facts.jax import Effect, KerasJaxFacts, Variables
from lab_utils.dry_run.frontends import jax_cores, jax_step
from lab_utils.dry_run.frontends import keras_jax_effects as effects
from lab_utils.dry_run.frontends import keras_lines as lines
from lab_utils.dry_run.frontends.jax_calls import Call
from lab_utils.dry_run.frontends.jax_step import JaxStep
from lab_utils.dry_run.frontends.keras_jax_data import FitData
from lab_utils.dry_run.lower import sharded
from lab_utils.dry_run.lower.errors import CannotLower, IndivisibleAxis, InputUnfit, NotJax
from lab_utils.dry_run.private import keras as _keras
from lab_utils.dry_run.private import process
from lab_utils.dry_run.program import Api, Comparison, Program
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Trace, Workload
from lab_utils.runtime import chips

# Of a message of JAX: lines on which of Keras' functions was traced.
_OF_JAX = re.compile(r"\nThe error occurred while tracing .*|\nSee https://docs\.jax\.dev.*", re.S)


@dataclass(frozen=True)
class KerasStep(JaxStep):
    """The train step of a model: of its variables by their names, and a batch.

    Attributes:
        variables: by their names in the step.
        effects: what the program's lines did in Python while JAX traced it.
    """

    variables: Mapping[str, Any] = field(kw_only=True)
    effects: list[Effect] = field(kw_only=True)


class KerasJaxWorkload(Workload):
    """A compiled Keras model on JAX with what fit is given: data.FitData, or its first argument.

    A tuple of arrays is one batch.

    Raises:
        TypeError: the model is not compiled, or fit does not take such data.
    """

    backend = "JAX"
    labs = MappingProxyType({"11": "10"})  # of a step of JAX, which here is that of Keras

    def __init__(
        self, model: Any, data: Any, topology: str, mesh_axes: Mapping[str, int] | None = None
    ) -> None:
        if getattr(model, "optimizer", None) is None:
            raise TypeError(
                f"the Keras model {model.name!r} is not compiled: call compile on it first"
            )
        self.model, self.topology, self.mesh_axes = model, topology, mesh_axes
        if not isinstance(data, FitData):
            data = FitData.of(data, keras.distribution.distribution())
        self.data, self.distribution = data, data.distribution
        self.framework = f"Keras {keras.__version__.partition('.')[0]}"
        self.name = f"Keras model {model.name!r}"
        try:
            self.data.adapter  # noqa: B018  (Keras refuses here what fit does not take)
        except (TypeError, ValueError, LookupError) as error:
            raise TypeError(f"fit does not accept these data: {error}") from error

    @cached_property
    def known(self) -> KerasJaxFacts:
        """What is known of the model; made when what a run of the program has shown is set."""
        return KerasJaxFacts(self, chips.cores(self.topology))

    @property
    def feed_place(self) -> Place:
        """The line that calls fit, where a run of the program has shown it."""
        return self.observed.trained_at or Place(text="the data of fit")

    @property
    def where(self) -> Place:
        """The line of a finding on the whole step: of the program's own train_step, its fit, or its call."""
        kind = type(self.model)
        fit = self.observed.trained_at
        steps = map(_own_line, (kind.train_step, kind.compute_loss))
        made = _own_line(kind.call) or Place(text=self.model.name)
        return next(filter(None, steps), fit or made)

    def built_variables(self) -> Variables:
        """The variables of the step, made where the program has not made them.

        Raises:
            CannotLower: the model cannot be called with the batch, or its train_step is not one of JAX.
        """
        model = self.model
        copies = _keras.one_copy() if self.data.keeps_one_copy else nullcontext()
        with self._as_in_fit(), copies:
            try:
                _keras.build(model, self.data.first[0])
            except Exception as error:  # whatever the program's call raises
                # Keras hides what a model's call raises behind advice on how to build it.
                hidden = isinstance(error, RuntimeError) and error.__context__
                raise self._of_program(hidden or error, []) from error
        try:
            inspect.signature(model.train_step).bind((), ())
        except TypeError as error:
            raise NotJax(error, place(type(model).train_step), "signature") from error
        return Variables(
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )

    def traced_step(self, variables: Variables) -> KerasStep:
        """The step of these variables, traced with the first batches.

        Raises:
            CannotLower: it cannot be traced.
        """
        named = _named(variables)
        shapes = {name: self._shape(variable) for name, variable in named.items()}
        function = self._function(list(map(len, variables)), shapes)
        calls = [Call(function, (shapes, self._abstract(batch)), {}) for batch in self.data.first]
        self._check_layouts(named, shapes)
        kept = _keras.without_values(list(named.values()) if self.data.is_pipeline else [])
        with self._as_in_fit(), kept, effects.noted() as noted:
            traces = [self._traced(call) for call in calls]
        jaxpr, count = traces[0].jaxpr.jaxpr, len(named)
        first = len(jaxpr.outvars) - count
        state = [(number, first + number) for number in range(count)]
        batch = partial(set, range(count, len(jaxpr.invars)))
        return KerasStep(
            calls, traces, self.where, state, batch, self._refusal, variables=named, effects=noted
        )

    def _function(self, sizes: list[int], shapes: Mapping[str, Any]) -> Any:
        """The jitted step; `sizes` are the numbers of variables of each kind."""
        model, trained_at = self.model, self.observed.trained_at

        def train_step(variables: dict[str, Any], data: Any) -> tuple[Any, dict[str, Any]]:
            values = iter([variables[name] for name in shapes])
            state = tuple([next(values) for _ in range(size)] for size in sizes)
            logs, new = lines.at(trained_at, lambda: model.train_step(state, data))
            return logs, dict(zip(shapes, jax.tree.leaves(new), strict=True))

        shardings = {name: each.sharding for name, each in shapes.items()}
        outputs = None if self.distribution is None else (None, shardings)
        return jax.jit(train_step, donate_argnums=0, out_shardings=outputs)

    def _traced(self, call: Call) -> Any:
        refuse = partial(self._refusal, traces=[])
        return jax_step.traced(call, self.where, self.data.precision, refuse, "leak of Keras")

    def _shape(self, variable: Any) -> Any:
        """Shape and type of a variable, with the sharding that the distribution gives it."""
        sharding = None
        if self.distribution is not None:
            layout = self.distribution.get_variable_layout(variable)
            sharding = getattr(layout, "backend_layout", layout)
        return jax.ShapeDtypeStruct(tuple(variable.shape), variable.dtype, sharding=sharding)

    def comparison(self, share: int) -> Comparison:
        """The step for virtual cores of this machine, with the model's own values and its first batch.

        Raises:
            Incomparable: it cannot be run here.
        """
        step = self._built()
        function, (shapes, _), _ = step.calls[0]
        values = {name: np.asarray(each.value) for name, each in step.variables.items()}
        shardings = {number: each.sharding for number, each in enumerate(step.calls[0].leaves)}
        roles = jax_cores.Roles(step.state, step.batch(), shardings)

        def trace(call: Call) -> Any:
            _, batch = call.args
            with self._as_in_fit():
                return self._traced(Call(function, (shapes, self._abstract(batch)), {}))

        call = Call(function, (values, self.data.first[0]), {})
        with self._as_in_fit():
            return jax_cores.comparison(call, step.traced, trace, roles, is_pmap=False, share=share)

    def _abstract(self, batch: Any) -> Any:
        def array(leaf: Any) -> Any:
            dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
            return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=self._of_batch(leaf.shape))

        return jax.tree.map(array, batch)

    def _of_batch(self, shape: tuple[int, ...]) -> Any:
        if self.distribution is None:
            return None
        return self.distribution.get_data_layout(shape).backend_layout

    @contextlib.contextmanager
    def _as_in_fit(self) -> Iterator[None]:
        """Context manager: what fit has about it; errors keep the program's lines."""
        filtered = keras.config.is_traceback_filtering_enabled()
        keras.config.disable_traceback_filtering()
        scope = self.distribution.scope() if self.distribution else nullcontext()
        with scope, lines.shown(keras):
            try:
                yield
            finally:
                if filtered:
                    keras.config.enable_traceback_filtering()

    def _built(self) -> KerasStep:
        """The step, which a batch of strings cannot have.

        Raises:
            CannotLower: it cannot be built.
        """
        if self.data.has_strings:
            raise InputUnfit("the batch holds strings")
        return self.known.built()

    def _check_layouts(self, named: Mapping[str, Any], shapes: Mapping[str, Any]) -> None:
        """Raises NotJax, at the layer's line, where a variable cannot be split as its layout says."""
        for name, array in shapes.items():
            if array.sharding is None:
                continue
            spec, mesh = tuple(array.sharding.spec), dict(array.sharding.mesh.shape)
            try:
                sharded.local_shape(array.shape, spec, mesh, name)
            except IndivisibleAxis as error:
                raise NotJax(error, self.made(named[name]) or self.where, "layout") from error

    def _refusal(self, error: Exception, traces: list[Any]) -> CannotLower:
        if self.model.run_eagerly or not self.model.jit_compile:  # TPU256
            text = f"Keras runs this step op by op, and JAX cannot trace it as a whole: {error}"
            where = place(error) or self.where
            return CannotLower(_OF_JAX.sub("", text), where=where, only_here=True)
        return self._of_program(error, traces)

    def _of_program(self, error: Exception, traces: list[Any]) -> CannotLower:
        if process.newer_jax() or "not found for platform tpu" in str(error):
            return jax_step.refusal(error, self.where, traces)
        of_jax = type(error).__module__.startswith("jax")
        case = "metric" if _keras.lacks_value(error) else "values" if of_jax else "Python"
        refused = NotJax(error, self.where, case)
        refused.args = (_OF_JAX.sub("", str(refused)),)
        return refused

    def facts(self, traces: list[Trace], cores: int) -> list[Facts]:
        """What is known of the model, its distribution and its batches."""
        return [self.known]

    @property
    def patterns(self) -> Mapping[str, Place]:
        """The keys of the distribution's LayoutMap, with the lines that set them; {} without one."""
        layout_map = self.distribution and _keras.layout_map(self.distribution)
        return lines.of_patterns(layout_map) if layout_map else {}

    def made(self, variable: Any) -> Place:
        """Where the program made the innermost layer that holds a variable."""
        holders = [
            layer
            for layer in _keras.layers(self.model)
            if any(held is variable for held in layer.variables)
        ]
        return next((place for place in map(lines.of, reversed(holders)) if place), NOWHERE)

    def mesh(self, cores: int) -> dict[str, int]:
        """The sizes of the mesh's axes, as it is laid on the cores; {} without a distribution."""
        if self.distribution is None:
            return {}
        mesh = self.distribution.device_mesh
        sizes = dict(zip(mesh.axis_names, map(int, mesh.shape), strict=True))
        if len(sizes) == 1 and not self.mesh_axes and not self._leaves_devices_out:
            return dict.fromkeys(sizes, cores)
        return sizes | dict(self.mesh_axes or {})

    @property
    def _leaves_devices_out(self) -> bool:
        """Whether the program takes fewer devices than it has."""
        return self.distribution is not None and self._devices < jax.device_count()

    @property
    def _devices(self) -> int:
        return math.prod(self.distribution.device_mesh.shape)

    def lower(self, cores: int, mode: Mode = Mode.TRAIN, batch: int | None = None) -> Program:
        """The step, split over the cores as the program's distribution says."""
        if batch is not None:
            raise InputUnfit("a JAX step is judged only with the batch of its example")
        with self._as_in_fit():
            taken = self._devices if self._leaves_devices_out else cores
            program = self._built().lower(taken, self.topology, self.mesh_axes)
        program.api, program.cores = Api.KERAS_JAX, cores
        return program

    def feed(self, cores: int) -> AbstractContextManager[tuple[Any, int | None]]:
        """The batches as fit reads them."""
        return nullcontext((_Sizes(self.data) if self.data.is_pipeline else None, None))


def _named(variables: Variables) -> dict[str, Any]:
    """Variables by their paths, where several have one with a number behind it."""
    named: dict[str, Any] = {}
    for variable in chain(*variables):
        number, name = 1, variable.path
        while name in named:
            number, name = number + 1, f"{variable.path}_{number + 1}"
        named[name] = variable
    return named


def _own_line(method: Any) -> Place:
    """Where a method is defined; NOWHERE where Keras, or another package, defines it."""
    function = inspect.unwrap(method)
    return NOWHERE if is_installed(function.__code__.co_filename) else place(function)


class _Sizes:
    """The examples of each batch of an epoch, again and again."""

    def __init__(self, data: FitData) -> None:
        self._data = data

    def __iter__(self) -> Iterator[int]:
        return self._data.sizes()
