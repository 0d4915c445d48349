"""What names a batch size: an argument, a key, the place of one in a call."""

import re

import libcst as cst

from lab_utils.port.record import argument, code

# What makes batches -> where its size stands; those below `padded_batch` are applied to a dataset.
SIZE_AT = {
    "batch": 0, "padded_batch": 0,
    "map_and_batch": 1, "batch_and_drop_remainder": 0, "padded_batch_and_drop_remainder": 0,
}  # fmt: skip
_OTHER_BATCH = re.compile(r"(^|_)(drop|keep|use|is|has|last|first|num|n|per)_", re.IGNORECASE)


def size_of(call: cst.Call) -> cst.Arg | None:
    """The argument that says how large the batches are that a call makes."""
    name = code(call.func).rpartition(".")[2]
    at = 2 if name == "numpy_input_fn" else SIZE_AT.get(name)
    return None if at is None else argument(call, "batch_size", at)


def batch_key(value: cst.BaseExpression) -> str:
    """The key of the batch size in {"batch_size": 32} or dict(batch_size=32), as text; "" for others."""
    if isinstance(value, cst.Dict):
        given = [e for e in value.elements if isinstance(e, cst.DictElement) and is_batch_key(e)]
        return code(given[0].key) if given else ""
    is_dict = isinstance(value, cst.Call) and code(value.func) == "dict"
    return '"batch_size"' if is_dict and argument(value, "batch_size") else ""


def is_batch_key(element: cst.DictElement) -> bool:
    """Whether a dict's entry is "batch_size", which TPUEstimator keeps for itself."""
    return isinstance(element.key, cst.SimpleString) and element.key.evaluated_value == "batch_size"


def says_batch(given: cst.Arg) -> bool:
    """Whether an argument is a batch size, by its keyword or its own name."""
    named = (
        given.keyword.value
        if given.keyword
        else code(given.value).rpartition(".")[2].rstrip("\"']")
    )
    if _OTHER_BATCH.search(named) or code(given.value) in ("True", "False", "None"):
        return False
    return named.lower().replace("_", "").endswith(("batchsize", "batch"))
