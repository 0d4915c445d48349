"""One training or evaluation step as each core runs it: plain data, no TensorFlow."""

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from lab_utils.common.enums import StrEnum
from lab_utils.common.figures import memory
from lab_utils.common.source import NOWHERE, Place


class Role(StrEnum):
    """What an argument or a result of the program is."""

    FEATURE = "feature"
    LABEL = "label"
    VARIABLE = "variable"
    CONSTANT = "constant"
    HOST = "host"  # sent to the host
    LOSS = "loss"


class Api(StrEnum):
    """What a program trains with."""

    ESTIMATOR = "TPUEstimator"
    STRATEGY = "tf.distribute"
    JAX = "JAX"
    KERAS_JAX = "Keras on JAX"


@dataclass(frozen=True)
class Input:
    """An argument of the program. `dtype` is numpy's name ("float32", "bfloat16", "int64" ...)."""

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: str
    trainable: bool = False

    @property
    def bytes(self) -> int:
        """The size of the data itself, without padding."""
        # "float8_e4m3fn" and "int4", too, which NumPy does not know.
        bits = re.search(r"\d+", self.dtype)
        return math.ceil(math.prod(self.shape) * (int(bits[0]) if bits else 8) / 8)


@dataclass(frozen=True)
class Matmul:
    """A matmul or convolution as the program has it: FLOP a step, rounds of loops counted.

    `dtypes` are those of its operands in HLO's words ("f32", "bf16"). `precise` says that the program asks
    for more than the one rounding to bfloat16 that a TPU does by default.
    """

    flops: float
    dtypes: tuple[str, ...]
    precise: bool = False


@dataclass(frozen=True)
class Output:
    """A result of the program: the loss, a tensor sent to the host, or a variable's new value."""

    name: str
    role: Role
    input: int | None = None  # for a variable: the number of the argument that it replaces


@dataclass(frozen=True)
class Split:
    """How an array is to be laid over a mesh: an argument of the step, or a constraint within it.

    Attributes:
        name: of the argument; "" for a constraint.
        shape, dtype: of the whole array.
        spec: for each axis the mesh axes that split it: one's name, a tuple of names, or neither.
        place: the line of the constraint.
        is_state: the step's results replace the argument.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: tuple[str | tuple[str, ...] | None, ...]
    place: Place = NOWHERE
    is_state: bool = False

    def parts(self, mesh: Mapping[str, int]) -> list[int]:
        """Into how many parts each axis of the array is to be split."""
        counts = [1] * len(self.shape)
        for axis, part in enumerate(self.spec):
            names = (part,) if isinstance(part, str) else part if isinstance(part, tuple) else ()
            counts[axis] = math.prod(mesh.get(name, 1) for name in names)
        return counts

    @property
    def bytes(self) -> int:
        """The size of the whole array."""
        return Input(self.name, Role.VARIABLE, self.shape, self.dtype).bytes

    def __str__(self) -> str:
        return f"{self.name or 'an array'} {self.dtype}{list(self.shape)} ({memory(self.bytes)})"


@dataclass(frozen=True)
class Partition:
    """How the cores share a step whose arrays have shardings.

    Attributes:
        mesh: the sizes of its axes by name; {} for a step of a single core.
        donated: the numbers of the inputs whose memory the step may take.
        splits: how its arguments and its constraints split arrays.
        is_whole: it has a mesh of several cores, and every array is whole on each of them.
        has_silent_kernels: Pallas kernels hold FLOPs that the compiler does not count.
    """

    mesh: dict[str, int]
    donated: list[int]
    has_silent_kernels: bool = False
    splits: list[Split] = field(default_factory=list)
    is_whole: bool = False

    @property
    def cores(self) -> int:
        """How many cores take part."""
        return math.prod(self.mesh.values())


@dataclass
class Origin:
    """What the live program behind a `Program` answers: its values, its batches, and the learner's lines.

    Attributes:
        start: gives what each variable starts with, and each constant, by the input's name: see `values`.
        read: yields global batches from the real input, each a list of arrays [cores, ...] for the
            inputs that are features and labels, in their order.
        loss: the line of the loss.
        place_of: the line behind an op of the framework, where the program's `hlo` does not name lines.
        place_of_write: the line of the op that gives the variable of this name a new value.
        factors: line and number of the constants that scale what is computed, by name (lower/written.py).
        with_numbers: the same step with other numbers for some of these constants.
    """

    start: Callable[[], dict[str, np.ndarray]] = dict
    read: Callable[[], Iterator[list[np.ndarray]]] = lambda: iter(())
    loss: Place = NOWHERE
    place_of: Callable[[str], Place] = lambda op: NOWHERE
    place_of_write: Callable[[str], Place] = lambda variable: NOWHERE
    factors: Callable[[], dict[str, tuple[str, float]]] = dict
    with_numbers: Callable[[Mapping[str, float]], "Program"] | None = None

    @functools.cached_property
    def values(self) -> dict[str, np.ndarray]:
        """What each variable starts with, and each constant, by the input's name; computed when asked for.

        Raises:
            CannotLower: an initializer failed.
        """
        return self.start()


@dataclass
class Program:
    """One step for one of `cores` equal cores, collectives over all of them in place.

    Plain data, but for its `origin`, which answers from the live program.

    Attributes:
        per_core_batch: not a whole number only where cores share an example.
        mode: "train", "eval", "predict", or "forward" for a bare step that trains no variable.
        hlo: a serialized HloModuleProto, or with a `partition` StableHLO as text; its parameters are
            `inputs`, its result tuple `outputs`.
        matmuls: what it multiplies, before the compiler changes it.
        named_cores: how many cores the groups of its collectives name; 0 where they name none.
        api: what the program trains with.
        random: ops that draw random numbers in the step (dropout, say), those left out that draw the
            same for each example on any number of cores.
        batch_statistics: ops that compute statistics over the core's own batch (batch norm), which reach the
            loss without a sum over the cores.
        joined_statistics: the places of variances of the core's own batch that are averaged over the cores.
        place_of_sum: where the loss is a sum over the batch, if it is.
        kernels: the lines that call kernels of Pallas.
        where: the learner's own line that the step comes from.
        reads_again: where its data end, the program reads them again, as for a new epoch.
        least_steps: how many steps it needs of its data, those of a call of train or of a loop on the
            device; None where that is not known.
        may_add_up: the loss of the whole batch may be the sum of the cores' losses, not only their mean.
        partition: how the cores share it; None where each does the same with its part of the batch.
        left_out: what of the step is not in `hlo`, or cannot be told from it, in sentences.
    """

    name: str
    mode: str
    cores: int
    per_core_batch: float
    hlo: bytes
    inputs: list[Input]
    outputs: list[Output]
    matmuls: list[Matmul] = field(default_factory=list)
    named_cores: int = 0
    api: Api = Api.ESTIMATOR
    random: list[str] = field(default_factory=list)
    batch_statistics: list[str] = field(default_factory=list)
    joined_statistics: list[Place] = field(default_factory=list)
    place_of_sum: Place = NOWHERE
    kernels: list[Place] = field(default_factory=list)
    where: Place = NOWHERE
    reads_again: bool = False
    least_steps: int | None = None
    may_add_up: bool = False
    partition: Partition | None = None
    left_out: str = ""
    origin: Origin = field(default_factory=Origin, repr=False, compare=False)

    @property
    def global_batch(self) -> int:
        """Examples that all cores take together in a step."""
        return round(self.cores * self.per_core_batch)

    @property
    def feeds(self) -> list[int]:
        """The numbers of the inputs that are features and labels."""
        roles = (Role.FEATURE, Role.LABEL)
        return [number for number, array in enumerate(self.inputs) if array.role in roles]


@dataclass(frozen=True)
class Exported:
    """A step of JAX for this machine's CPU.

    Attributes:
        blob: as jax.export serializes a function of arrays.
        mesh: name, size and type of each axis of its mesh; none for one virtual core.
        values: its arguments, whole, in their order.
    """

    blob: bytes
    mesh: list[tuple[str, int, str]]
    values: list[np.ndarray]

    @property
    def cores(self) -> int:
        """How many virtual cores it works on."""
        return math.prod(size for _, size, _ in self.mesh)


@dataclass(frozen=True)
class Slot:
    """An array of the state: the numbers of the argument and of the result that is its new value.

    Attributes:
        is_trained: its new value depends on a gradient.
        differs: the cores hold other values of it after a step, as a part of their own does.
        joined_at: where a collective joins the gradient that it depends on.
    """

    name: str
    argument: int
    result: int
    is_trained: bool
    differs: bool
    joined_at: Place


@dataclass(frozen=True)
class Comparison:
    """A step of JAX for several virtual cores, and for one core with the same examples.

    Attributes:
        one: None where the number of cores makes no difference: XLA splits the step, or there is one core.
        slots: its state.
        losses: the numbers and names of results that are a loss, one or one a core.
        is_mapped: jax.pmap maps it: its arrays have a first axis of cores.
        maps: it holds a function that is mapped over cores, by jax.pmap or jax.shard_map.
        has_values: the values are the program's own, not made up from shapes.
        examples: the numbers of the arguments that hold examples, and their axis.
        is_loop: it is a loop with all its rounds, which the program calls once.
    """

    many: Exported
    one: Exported | None
    slots: list[Slot]
    losses: list[tuple[int, str]]
    is_mapped: bool
    maps: bool
    has_values: bool
    examples: dict[int, int]
    is_loop: bool = False
