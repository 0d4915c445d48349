"""Which ops and types a TPU has, and what is said of those it lacks. No TensorFlow here.

xla_tpu_jit.json holds the kernels of device XLA_TPU_JIT that tensorflow.python.framework.kernels lists once
`experimental_get_compiler_ir(...)(stage="stablehlo", platform_name="TPU")` has compiled any function: in the
wheel tensorflow-tpu, which needs an environment of its own. notes.yaml is written by hand.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent
_RANDOM = re.compile(
    r"(Random(Uniform|StandardNormal|Gamma|Poisson|Binomial|Shuffle|Crop)|(Parameterized)?TruncatedNormal"
    r"|Multinomial|SampleDistorted|Stateful(Uniform|StandardNormal|TruncatedNormal|RandomBinomial)"
    r"|Stateless(Random(Uniform|Normal|Gamma|Poisson|Binomial)|(Parameterized)?TruncatedNormal"
    r"|Multinomial|SampleDistorted))(?!\w*(Grad|Queue))\w*"
)

CROSS_REPLICA_SUM = "CrossReplicaSum"  # of cross_replica_sum, and so of CrossShardOptimizer

_GRADIENT = re.compile(r"(^|/)(gradients|gradient_tape)(_\d+)?/")
_WRITES = re.compile(
    r"Assign\w*VariableOp|Resource(Sparse)?Apply\w+|ResourceScatter\w+|ResourceStridedSliceAssign"
)


@cache
def _table() -> dict[str, Any]:
    return json.loads((_FOLDER / "xla_tpu_jit.json").read_text(encoding="utf-8"))


@cache
def _notes() -> dict[str, Any]:
    notes = yaml.safe_load((_FOLDER / "notes.yaml").read_text(encoding="utf-8"))
    return {key: text.split() if isinstance(text, str) else text for key, text in notes.items()}


def compiles(op: str) -> bool:
    """Whether the TPU compiler has a kernel for this type of op."""
    return op in _table()["ops"]


def has_op(op: str) -> bool:
    """Whether a replica's program may hold an op of this type."""
    return compiles(op) or op in _notes()["before_compiling"]


def is_random(op: str) -> bool:
    """Whether ops of this type draw random numbers."""
    return bool(_RANDOM.fullmatch(op))


def of_gradient(name: str) -> str:
    """For an op of a gradient, how its name goes on: the name of the op that it is of. "" for others."""
    return name[match.end() :] if (match := _GRADIENT.search(name)) else ""


def writes_variable(op: str) -> bool:
    """Whether ops of this type change a variable, their first input."""
    return bool(_WRITES.fullmatch(op))


def is_kind(op: str, kind: str) -> bool:
    """Whether the op type is of one of the kinds in notes.yaml, such as "summaries", "python" or "infeed"."""
    return op in _notes()[kind]


def allowed_types(op: str) -> dict[str, list[str]]:
    """Type attribute of the op -> names of the dtypes that its kernel takes; {} if it takes any."""
    types = _table()["types"]
    return {attr: types[number] for attr, number in _table()["ops"].get(op, {}).items()}


def instead(op: str) -> str | None:
    """What to use in place of an op that the TPU lacks, or None where nothing particular is known."""
    hints = _notes()["instead"]
    return next((hint.strip() for start, hint in hints.items() if op.startswith(start)), None)
