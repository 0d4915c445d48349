"""What a dry run says: findings, figures, and what became of each stage. Plain data, no TensorFlow."""

from dataclasses import dataclass, field

from lab_utils.common.enums import StrEnum
from lab_utils.common.figures import Figure, FigureTable, scaled
from lab_utils.common.source import Place
from lab_utils.runtime.chips import Roofline

# Below this time of a step its figures say nothing about the speed of a training: what a step costs in
# addition to them (dispatch, infeed) is longer.
LEAST_STEP_SECONDS = 1e-3


class Stage(StrEnum):
    """The stages of a dry run, in their order."""

    TRACE = "trace"
    READ = "read"
    COMPILE = "compile"
    RUN = "run"
    FEED = "feed"


class Mode(StrEnum):
    """What a step is for. Estimator itself calls prediction "infer" (`key`)."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "predict"
    SERVING = "serving"  # what export_saved_model writes for a CPU
    FORWARD = "forward"  # a bare step that trains no variable

    @property
    def key(self) -> str:
        """The mode as tf.estimator.ModeKeys names it."""
        return "infer" if self is Mode.PREDICT else str(self)

    @property
    def activity(self) -> str:
        """What goes on in it: "training", "evaluation", "prediction" or "serving"."""
        return {"train": "training", "eval": "evaluation", "predict": "prediction"}.get(self, self)


class Status(StrEnum):
    """What became of a stage; one that is unneeded is of other programs, and leaves nothing out."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNNEEDED = "unneeded"


class Severity(StrEnum):
    """How much a finding matters: an error stops the port on a TPU or makes its results wrong."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing to fix in a port.

    `rule` is a stable id (`TPU101`) with a page of its own. `place` is the learner's own place: a file
    or notebook cell with its line, and the op; `where` is the same in words. `message` is the text that
    TensorFlow or the compiler gave, or would have given on a TPU ("" where there is none: the silent
    faults). `because_of` is the rule of another mistake, where this may only be its consequence: the
    finding counts for nothing where that rule found something.
    """

    rule: str
    stage: Stage
    severity: Severity
    place: Place
    why: str
    fix: str
    lab: str
    message: str = ""
    because_of: str = ""

    @property
    def where(self) -> str:
        """The place in words: "model.py:41, in model_fn: `y = tf.gather(names, ids)` (op GatherV2)"."""
        return str(self.place)


@dataclass
class StageResult:
    """What one stage did; `detail` says why it ended so, or sums up."""

    stage: Stage
    status: Status
    detail: str = ""
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


@dataclass
class Memory(FigureTable):
    """Bytes of a core's memory that one compiled step takes, by part.

    Attributes:
        arguments: variables and input.
        temporaries: what the step itself holds, padding included.
        outputs: those that are no variable's new value, which takes its old one's place.
        code: the program.
        available: what the compiler lets a program use.
        needed: the sum, where it is more than that.
    """

    arguments: Figure | None = None
    temporaries: Figure | None = None
    outputs: Figure | None = None
    code: Figure | None = None
    available: Figure | None = None
    needed: Figure | None = None

    @property
    def parts(self) -> dict[str, float]:
        """Bytes of each part that is known, in the order in which reports show them."""
        return {name: self[name].value for name in MEMORY_PARTS if name in self}

    @property
    def used(self) -> float | None:
        """Bytes that the step needs; None where the compiler did not say."""
        if self.needed is not None:
            return self.needed.value
        return sum(self.parts.values()) if self.parts else None


MEMORY_PARTS = ("arguments", "temporaries", "outputs", "code")


@dataclass
class Cost(FigureTable):
    """What one compiled step costs a core.

    Attributes:
        flops, bytes: FLOP and bytes of HBM traffic of a step.
        peak_flops, peak_bandwidth: of the core, as published.
        step_seconds: the roofline bound on the step.
        examples_per_second: of a core, at that bound.
        all_reduce_bytes: all-reduced over the cores in a step.
        cycles: of the compiler's schedule, without exchanges.
        estimated_seconds: of a step, by that schedule (compile/forecast.py).
        link_seconds: what its exchanges between chips take on the links.
        exchange_seconds: of the estimated time, what these exchanges add: the core computes during the rest.
        estimated_rate: examples/s of a core in that time.
    """

    flops: Figure | None = None
    bytes: Figure | None = None
    peak_flops: Figure | None = None
    peak_bandwidth: Figure | None = None
    step_seconds: Figure | None = None
    examples_per_second: Figure | None = None
    all_reduce_bytes: Figure | None = None
    cycles: Figure | None = None
    estimated_seconds: Figure | None = None
    link_seconds: Figure | None = None
    exchange_seconds: Figure | None = None
    estimated_rate: Figure | None = None

    @property
    def roofline(self) -> Roofline | None:
        """The bound that follows from the figures; None where one of the four is missing or 0."""
        four = (self.flops, self.bytes, self.peak_flops, self.peak_bandwidth)
        if any(figure is None or figure.value <= 0 for figure in four):
            return None
        return Roofline(*(figure.value for figure in four))


@dataclass(frozen=True)
class LineCost:
    """What one line of the learner's costs a core in a compiled step; `place` is empty for what has no line.

    `cycles` are estimated by the TPU compiler, and none for collectives; a fusion counts to the line of
    its last op. `bytes` are of HBM, `flops` of matmuls and convolutions.
    """

    place: Place
    cycles: float
    bytes: float
    flops: float


@dataclass
class AxisExchanges:
    """What the cores of a step exchange over one axis of their mesh.

    Attributes:
        over: the axis, or several: "data", "data and model"; without a mesh "all cores".
        seconds: on the links, computed from bytes and the published speed of a link.
        bytes: of whole arrays, by the kind of exchange ("all-reduce" ...).
    """

    over: str
    seconds: float = 0.0
    bytes: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        sizes = ", ".join(f"{kind} of {scaled(size, 'B')}" for kind, size in self.bytes.items())
        return f"{scaled(self.seconds, 's')} over {self.over} ({sizes})"


@dataclass
class CompiledStep:
    """What the TPU compiler said of one program (`name`: "train step"), as one core runs it.

    `cost` is empty where the compiler refused the program, or could not fit it. `lines` are the ten most
    expensive ones. `on_chip`: arrays lie in the chip's own memory, and never reach HBM. `cores` is how
    many take part, where that is not all of the topology's. `exchanges` are those over each axis of the mesh.
    """

    name: str
    memory: Memory = field(default_factory=Memory)
    cost: Cost = field(default_factory=Cost)
    lines: list[LineCost] = field(default_factory=list)
    exchanges: list[AxisExchanges] = field(default_factory=list)
    mode: Mode = Mode.TRAIN
    on_chip: bool = False
    cores: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the compiler took the program, and it fits in a core's memory."""
        return bool(self.cost) and self.memory.needed is None


@dataclass
class Feed(FigureTable):
    """The input pipeline: what was measured here, and what the TPU could take.

    Attributes:
        examples_per_second: of the pipeline, measured.
        host_cores: of this machine's `machine_cores`, those that the pipeline kept busy.
        required: examples/s that the cores of one host take, as estimated, or at most.
        host_cores_needed: cores like these that would deliver it.
    """

    examples_per_second: Figure | None = None
    host_cores: Figure | None = None
    machine_cores: Figure | None = None
    required: Figure | None = None
    host_cores_needed: Figure | None = None


@dataclass
class Numerics:
    """The steps of stage run in float32, with a TPU's matmuls, and in float32 with examples in another order.

    Attributes:
        losses, tpu_losses, other_losses: of each step, the mean over the cores; empty where it returns none.
        tpu_weights: how far the trained variables are from those of float32 after the steps, as a share of
            how far these have moved; None where none has.
        other_weights: the same of the examples in another order.
    """

    losses: list[float]
    tpu_losses: list[float]
    other_losses: list[float]
    tpu_weights: float | None = None
    other_weights: float | None = None

    @property
    def tpu_loss(self) -> float:
        """The largest difference of a step's loss from float32, as a share of the largest loss."""
        return self._apart(self.tpu_losses)

    @property
    def other_loss(self) -> float:
        """The same of the examples in another order: what the step's own noise is."""
        return self._apart(self.other_losses)

    def _apart(self, losses: list[float]) -> float:
        scale = max(map(abs, self.losses), default=0) or 1.0
        pairs = zip(losses, self.losses, strict=True)
        return max((abs(a - b) for a, b in pairs), default=0.0) / scale
