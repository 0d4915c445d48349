"""What is known of a step of JAX, and of a model of Keras on JAX, before it is compiled."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from lab_utils.common.source import Place
from lab_utils.dry_run.facts.base import Facts, fact
from lab_utils.dry_run.facts.mapped import Followed, follow
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.private import keras as _keras
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import in_words

_Known = TypeVar("_Known")

_EAGER = (
    "How fast the program is: it calls jax.grad outside of jax.jit, so a TPU runs one op after another. "
    "The gradients were judged as if they were jitted, so jit the whole step."
)
_NO_STATE = (
    "How the program uses the step's results: none of them replaces an argument, so the dry run could not "
    "judge an update outside of the step. Jit the whole step, or say which arguments are state, as in "
    "dry_run(step, arguments, state_argnums=0)."
)
_ONLY_TRAINING = (
    "Evaluation and prediction with the model, which are not compiled, and the input pipeline, of which "
    "only the batches are read."
)


@dataclass(frozen=True)
class Effect:
    """What a line of the program does in Python while JAX traces the step: once, and not in each step.

    `what` it does with `result`, in words; `case` is that of TPU253.
    """

    place: Place
    what: str
    result: str
    case: str


class JaxFacts(Facts):
    """Of a step of JAX.

    Attributes:
        where: the step's own line.
        called_at: the line that calls the step, where a run of the program has shown it; else the step's own.
        is_pmap: jax.pmap maps it.
    """

    modules = ("jax", "mapped", "donated")

    def __init__(
        self, workload: Any, called_at: Place, *, is_pmap: bool = False, is_jitted: bool = True
    ) -> None:
        """`workload` makes the step; `is_jitted`: the program compiles it as one."""
        super().__init__(Mode.TRAIN)
        self._workload = workload
        self.where, self.called_at = workload.where, called_at
        self.is_pmap, self._is_jitted = is_pmap, is_jitted

    def not_read(self) -> list[str]:
        """What a step outside of jax.jit, or one without a state, leaves out."""
        sentences = [] if self._is_jitted else [_EAGER]
        try:
            return sentences if self.state else [*sentences, _NO_STATE]
        except Unavailable:
            return sentences

    def built(self) -> Any:
        """The step, for those who lower it.

        Raises:
            CannotLower: it cannot be built.
        """
        try:
            return self.step
        except Unavailable:
            if self.refused:
                raise self.refused from None
            raise

    @fact
    def step(self) -> Any:
        """The step with the arguments of each call, as JAX traces it: a JaxStep."""
        return self._workload.traced_step()

    @fact
    def traced(self) -> Any:
        """The step, traced with the arguments of the first call."""
        return self.step.traced

    @fact
    def jaxpr(self) -> Any:
        """The jaxpr of that."""
        return self.traced.jaxpr.jaxpr

    @fact
    def state(self) -> list[tuple[int, int]]:
        """Pairs (number of an argument's array, number of the result that is its new value)."""
        return self.step.state

    @fact
    def followed(self) -> Followed:
        """How what the cores hold alike, and what differs, reaches the results."""
        return follow(self.jaxpr, self.step.copies, is_pmap=self.is_pmap)


class Variables(NamedTuple):
    """The variables of a step in the order of Keras."""

    trained: list[Any]
    others: list[Any]
    optimizers: list[Any]
    metrics: list[Any]


class KerasJaxFacts(JaxFacts):
    """Of a model of Keras on JAX, with the data that fit is given.

    Attributes:
        model: it is compiled.
        topology, cores: of the TPU system.
        place_of_batches: the line that calls fit.
        axis: of the mesh, over which batches are split; "" without a distribution.
        mesh: the sizes of its axes on those cores.
    """

    modules = ("keras_jax", *JaxFacts.modules)

    def __init__(self, workload: Any, cores: int) -> None:
        """`workload` is the KerasJaxWorkload."""
        super().__init__(workload, called_at=workload.where)
        self._data, self._distribution = workload.data, workload.distribution
        self.model, self.topology, self.cores = workload.model, workload.topology, cores
        self.place_of_batches, self.mesh = workload.feed_place, workload.mesh(cores)
        self.axis = self._distribution.batch_dim_name if self._distribution else ""

    def not_read(self) -> list[str]:
        """What fit does beside its steps, too."""
        return [_ONLY_TRAINING, *super().not_read()]

    def _from_data(self, ask: Callable[[], _Known]) -> _Known:
        try:
            return ask()
        except CannotLower:
            raise
        except Exception as error:  # whatever the program's own reader raises
            why = f"reading the data of fit raised {in_words(error)}"
            raise Unavailable(why) from error

    @fact
    def has_strings(self) -> bool:
        """Whether the batches hold text."""
        return self._from_data(lambda: self._data.has_strings)

    def _check_batches(self) -> None:
        if self.has_strings:
            raise Unavailable("the batches hold strings: fix TPU119 first")

    @fact
    def lacks(self) -> str:
        """The argument of fit without which an epoch, or its evaluation, never ends; "" for none."""
        return self._from_data(lambda: self._data.lacks)

    @fact
    def beyond_32_bits(self) -> int:
        """The largest integer of the first batches that JAX cuts; 0 for none."""
        self._check_batches()
        return self._data.beyond_32_bits

    @fact
    def batch(self) -> int:
        """The examples of a batch."""
        self._check_batches()
        return self._data.size

    @fact
    def batches_in_epoch(self) -> int | None:
        """How many batches make an epoch; None where that is not known."""
        return self._data.adapter.num_batches

    @fact
    def rest(self) -> int:
        """The examples of a last, shorter batch of an epoch; 0 for none."""
        self._check_batches()
        rest = self._from_data(lambda: self._data.rest)
        if rest is None and self._data.is_pipeline:
            raise Unavailable(
                "it is not known whether the last batch of an epoch is shorter than the others"
            )
        return rest or 0

    @fact
    def built_variables(self) -> Variables:
        """The variables of the step, which Keras makes for the first batch where the program has not."""
        self._check_batches()
        return self._workload.built_variables()

    @fact
    def step(self) -> Any:
        """As of JaxFacts: a KerasStep."""
        return self._workload.traced_step(self.built_variables)

    @fact
    def effects(self) -> list[Effect]:
        """What the program's lines did in Python while JAX traced the step."""
        return self.step.effects

    @fact
    def layers(self) -> list[Any]:
        """All layers of the model."""
        return _keras.layers(self.model)

    @fact
    def layers_with_weights(self) -> list[Any]:
        """Those that hold variables."""
        held = set(map(id, self.variables))
        return [each for each in self.layers if not held.isdisjoint(map(id, each.weights))]

    @fact
    def variables(self) -> list[Any]:
        """The model's own variables."""
        return [*self.built_variables.trained, *self.built_variables.others]

    @fact
    def trained(self) -> list[Any]:
        """The variables that are trained."""
        return self.built_variables.trained

    @fact
    def rate(self) -> float | None:
        """The optimizer's learning rate; None where a schedule gives it, or it has none."""
        return _keras.constant_rate(self.model.optimizer)

    @fact
    def devices(self) -> int:
        """How many devices the mesh has; 1 without a distribution."""
        return math.prod(self.mesh.values())

    @fact
    def early(self) -> dict[str, Place]:
        """The paths of variables that were made before the distribution, with the lines of their layers."""
        if self._distribution is None:
            return {}
        made = self._workload.made
        return {v.path: made(v) for v in self.variables if _keras.built_sharding(v) is None}

    @fact
    def patterns(self) -> Mapping[str, Place]:
        """The keys of the LayoutMap, with the lines that set them; {} without one."""
        return self._workload.patterns

    @fact
    def paths(self) -> list[str]:
        """The paths that a LayoutMap may name: of variables, and of the results of layers."""
        outputs = [f"{layer.path}/output" for layer in self.layers]
        return [variable.path for variable in self.variables] + outputs
