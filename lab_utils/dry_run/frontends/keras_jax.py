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
from functools import cached_property
from types import MappingProxyType
from typing import Any

import jax
import keras
import numpy as np

from lab_utils.common.source import NOWHERE, Place, is_installed, place
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.facts.jax import KerasJaxFacts
from lab_utils.dry_run.frontends import jax_cores
from lab_utils.dry_run.frontends import keras_jax_effects as effects
from lab_utils.dry_run.frontends import keras_lines as lines
from lab_utils.dry_run.frontends.jax import JaxWorkload
from lab_utils.dry_run.frontends.jax_calls import Call
from lab_utils.dry_run.frontends.keras_jax_data import FitData
from lab_utils.dry_run.lower import sharded
from lab_utils.dry_run.lower.errors import CannotLower, IndivisibleAxis, InputUnfit, NotJax
from lab_utils.dry_run.private import keras as _keras
from lab_utils.dry_run.private import process
from lab_utils.dry_run.program import Api, Comparison, Program
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Trace

# Of a message of JAX: lines on which of Keras' functions was traced.
_OF_JAX = re.compile(r"\nThe error occurred while tracing .*|\nSee https://docs\.jax\.dev.*", re.S)


class KerasJaxWorkload(JaxWorkload):
    """A compiled Keras model on JAX with what fit is given: data.FitData, or its first argument.

    A tuple of arrays is one batch.

    Raises:
        TypeError: the model is not compiled, or fit does not take such data.
    """

    backend = "JAX"
    labs = MappingProxyType({"11": "10"})  # of a step of JAX, which here is that of Keras
    _leak = "leak of Keras"

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
        self.recorded = self.state_argnums = self.batch_argnums = (
            None  # Keras itself says what is what
        )
        self.is_pmap, self.effects = False, []
        try:
            self.data.adapter  # noqa: B018  (Keras refuses here what fit does not take)
        except (TypeError, ValueError, LookupError) as error:
            raise TypeError(f"fit does not accept these data: {error}") from error

    @property
    def _precision(self) -> str | None:
        return self.data.precision

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

    @cached_property
    def inner(self) -> Any:
        """The jitted step: of the variables by their names, and a batch."""
        model, names, sizes = self.model, self._names, list(map(len, self.variables))
        trained_at = self.observed.trained_at

        def train_step(variables: dict[str, Any], data: Any) -> tuple[Any, dict[str, Any]]:
            values = iter([variables[name] for name in names])
            state = tuple([next(values) for _ in range(size)] for size in sizes)
            logs, new = lines.at(trained_at, lambda: model.train_step(state, data))
            return logs, dict(zip(names, jax.tree.leaves(new), strict=True))

        shardings = {name: each.sharding for name, each in self._shapes.items()}
        outputs = None if self.distribution is None else (None, shardings)
        return jax.jit(train_step, donate_argnums=0, out_shardings=outputs)

    @cached_property
    def variables(self) -> tuple[list[Any], ...]:
        """The variables of the step in the order of Keras: trained, others, the optimizer's, metrics'.

        Raises:
            CannotLower: as `_build`.
        """
        self._build()
        model = self.model
        return (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )

    @cached_property
    def _names(self) -> list[str]:
        names: dict[str, None] = {}
        for variable in [variable for part in self.variables for variable in part]:
            number, name = 1, variable.path
            while name in names:
                number, name = number + 1, f"{variable.path}_{number + 1}"
            names[name] = None
        return list(names)

    @cached_property
    def _shapes(self) -> dict[str, Any]:
        """Shape and type of each variable, with the sharding that the distribution gives it."""
        whole = [variable for part in self.variables for variable in part]
        return {
            name: jax.ShapeDtypeStruct(
                tuple(variable.shape), variable.dtype, sharding=self._sharding(variable)
            )
            for name, variable in zip(self._names, whole, strict=True)
        }

    def _sharding(self, variable: Any) -> Any:
        if self.distribution is None:
            return None
        layout = self.distribution.get_variable_layout(variable)
        return getattr(layout, "backend_layout", layout)

    @cached_property
    def calls(self) -> list[Call]:
        """The step with the arguments of the first calls, as shapes."""
        batches = map(self._abstract, self.data.first)
        return [Call(self.inner, (self._shapes, batch), {}) for batch in batches]

    @cached_property
    def state(self) -> list[tuple[int, int]]:
        """Pairs (number of a variable's array, number of the result that is its new value)."""
        first = len(self.traces[0].jaxpr.jaxpr.outvars) - len(self._names)
        return [(number, first + number) for number in range(len(self._names))]

    @cached_property
    def batch(self) -> set[int]:
        """The numbers of the arrays that hold examples: all but the variables."""
        return set(range(len(self._names), len(self.traces[0].jaxpr.jaxpr.invars)))

    def comparison(self, share: int) -> Comparison:
        """The step for virtual cores of this machine, with the model's own values and its first batch.

        Raises:
            Incomparable: it cannot be run here.
        """
        whole = [variable for part in self.variables for variable in part]
        values = {n: np.asarray(v.value) for n, v in zip(self._names, whole, strict=True)}
        arguments = self.calls[0].leaves
        shardings = {number: each.sharding for number, each in enumerate(arguments)}
        roles = jax_cores.Roles(self.state, self.batch, shardings)

        def trace(call: Call) -> Any:
            _, batch = call.args
            with self._as_in_fit():
                return self._traced(Call(self.inner, (self._shapes, self._abstract(batch)), {}))

        call = Call(self.inner, (values, self.data.first[0]), {})
        with self._as_in_fit():
            return jax_cores.comparison(
                call, self.traces[0], trace, roles, is_pmap=False, share=share
            )

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

    @cached_property
    def traces(self) -> list[Any]:
        """As of JaxWorkload."""
        if self.data.has_strings:
            raise InputUnfit("the batch holds strings")
        calls = self.calls
        self._check_layouts()
        variables = [variable for part in self.variables for variable in part]
        kept = _keras.without_values(variables if self.data.is_pipeline else [])
        with self._as_in_fit(), kept, effects.noted() as self.effects:
            return [self._traced(call) for call in calls]

    def _check_layouts(self) -> None:
        """Raises NotJax, at the layer's line, where a variable cannot be split as its layout says."""
        variables = [variable for part in self.variables for variable in part]
        for variable, (name, array) in zip(variables, self._shapes.items(), strict=True):
            if array.sharding is None:
                continue
            spec, mesh = tuple(array.sharding.spec), dict(array.sharding.mesh.shape)
            try:
                sharded.local_shape(array.shape, spec, mesh, name)
            except IndivisibleAxis as error:
                raise NotJax(error, self.made(variable) or self.where, "layout") from error

    def _build(self) -> None:
        """Makes the variables, where the program has not.

        Raises:
            CannotLower: the model cannot be called with the batch, or its train_step is not one of JAX.
        """
        if self._not_built is not None:
            raise self._not_built

    @cached_property
    def _not_built(self) -> CannotLower | None:
        """Why the variables cannot be made; None when they are. A second try would fail elsewhere."""
        copies = _keras.one_copy() if self.data.keeps_one_copy else nullcontext()
        with self._as_in_fit(), copies:
            try:
                _keras.build(self.model, self.data.first[0])
            except Exception as error:  # whatever the program's call raises
                # Keras hides what a model's call raises behind advice on how to build it.
                hidden = isinstance(error, RuntimeError) and error.__context__
                return self._of_program(hidden or error)
        try:
            inspect.signature(self.model.train_step).bind((), ())
        except TypeError as error:
            return NotJax(error, place(type(self.model).train_step), "signature")
        return None

    def _refusal(self, error: Exception) -> CannotLower:
        if self.model.run_eagerly or not self.model.jit_compile:  # TPU256
            text = f"Keras runs this step op by op, and JAX cannot trace it as a whole: {error}"
            where = place(error) or self.where
            return CannotLower(_OF_JAX.sub("", text), where=where, only_here=True)
        return self._of_program(error)

    def _of_program(self, error: Exception) -> CannotLower:
        if process.newer_jax() or "not found for platform tpu" in str(error):
            return super()._refusal(error)
        of_jax = type(error).__module__.startswith("jax")
        case = "metric" if _keras.lacks_value(error) else "values" if of_jax else "Python"
        refused = NotJax(error, self.where, case)
        refused.args = (_OF_JAX.sub("", str(refused)),)
        return refused

    def facts(self, traces: list[Trace], cores: int) -> list[Facts]:
        """What is known of the model, its distribution and its batches."""
        return [KerasJaxFacts(self, cores)]

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
        with self._as_in_fit():
            taken = self._devices if self._leaves_devices_out else cores
            program = super().lower(taken, mode, batch)
        program.api, program.cores = Api.KERAS_JAX, cores
        return program

    def feed(self, cores: int) -> AbstractContextManager[tuple[Any, int | None]]:
        """The batches as fit reads them."""
        return nullcontext((_Sizes(self.data) if self.data.is_pipeline else None, None))


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
