"""Writes dry_run/ops/xla_tpu_jit.json: the ops, and their types, that a TPU's compiler has kernels for.

Only TensorFlow's wheel for TPUs registers them, and that wheel overwrites tensorflow-cpu, so this runs in
an environment of its own. No TPU is needed:

    python3.11 -m venv ops && ops/bin/pip install tensorflow-tpu==2.19.1 libtpu==0.0.10
    TPU_SKIP_MDS_QUERY=1 TF_CPP_MIN_LOG_LEVEL=3 ops/bin/python lab_utils/teach/make_op_table.py
"""

import datetime
import json
from importlib import metadata
from pathlib import Path

from lab_utils.common import command

DEVICE = "XLA_TPU_JIT"
TABLE = Path(__file__).parents[1] / "dry_run" / "ops" / "xla_tpu_jit.json"


def registered() -> dict[str, dict[str, list[str]]]:
    """Op -> {type attribute: dtype names allowed}, of all kernels for the device.

    Raises:
        RuntimeError: this TensorFlow registers none, or one op twice.
    """
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    @tf.function(jit_compile=True)
    def any_program(x):
        return x + 1.0

    # The compiler's kernels are registered when it first compiles.
    any_program.experimental_get_compiler_ir(tf.zeros([2]))(stage="stablehlo", platform_name="TPU")
    table: dict[str, dict[str, list[str]]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type != DEVICE:
            continue
        types = {
            constraint.name: sorted(
                tf.dtypes.as_dtype(allowed).name for allowed in constraint.allowed_values.list.type
            )
            for constraint in kernel.constraint
        }
        if table.setdefault(kernel.op, types) != types:
            raise RuntimeError(f"{kernel.op} has two kernels with different types")
    if not table:
        raise RuntimeError(f"TensorFlow {tf.__version__} here registers no {DEVICE} kernels")
    return dict(sorted(table.items()))


def main() -> int:
    """Writes the table, one op a line; equal lists of types are written once."""
    table = registered()
    type_lists = sorted({tuple(types) for attrs in table.values() for types in attrs.values()})
    header = {
        "device": DEVICE,
        "wheel": f"tensorflow-tpu {metadata.version('tensorflow-tpu')}",
        "libtpu": metadata.version("libtpu"),
        "made": datetime.date.today().isoformat(),
    }
    ops = []
    for op, attrs in table.items():
        numbers = {attr: type_lists.index(tuple(types)) for attr, types in attrs.items()}
        ops.append(f"{json.dumps(op)}: {json.dumps(numbers)}")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in header.items()]
    lines += ['"types": [', ",\n".join(map(json.dumps, type_lists)), "],"]
    lines += ['"ops": {', ",\n".join(ops), "}"]
    TABLE.write_text("{\n" + "\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    command.run(main)
