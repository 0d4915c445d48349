"""Importing this puts back names that private modules of TensorFlow had once, for tf-slim 1.1.0."""

import importlib

from lab_utils.estimator import v1

# Private modules, and what they had in version 1; it stands in tf.compat.v1 today.
_NAMES = {
    "tensorflow.python.framework.ops": (
        "IndexedSlices", "Tensor", "TensorShape", "convert_to_tensor_or_indexed_slices",
        "register_tensor_conversion_function",
    ),
    "tensorflow.python.ops.array_ops": ("stack", "unstack"),
    "tensorflow.python.ops.control_flow_ops": ("Assert", "case", "cond", "while_loop"),
}  # fmt: skip

for _module, _left in _NAMES.items():
    for _name in _left:
        vars(importlib.import_module(_module)).setdefault(_name, getattr(v1, _name))
