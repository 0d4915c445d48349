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
    """Op -> {type attribute: dtype names allowed}, of all kernels for the device; none on another wheel."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    @tf.function(jit_compile=True)
    def any_program(x):
        return x + 1.0

    # The compiler's kernels are registered when it first compiles.
    any_program.experimental_get_compiler_ir(tf.zeros([2]))(stage="stablehlo", platform_name="TPU")
    table = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == DEVICE:
            table[kernel.op] = {
                constraint.name: sorted(
                    tf.dtypes.as_dtype(allowed).name
                    for allowed in constraint.allowed_values.list.type
                )
                for constraint in kernel.constraint
            }
    return dict(sorted(table.items()))


def main() -> int:
    """Writes the table, one op a line; equal lists of types are written once."""
    table = registered()
    types = sorted({tuple(names) for attrs in table.values() for names in attrs.values()})
    header = {
        "device": DEVICE,
        "wheel": f"tensorflow-tpu {metadata.version('tensorflow-tpu')}",
        "libtpu": metadata.version("libtpu"),
        "made": datetime.date.today().isoformat(),
    }
    ops = []
    for op, attrs in table.items():
        numbers = {attr: types.index(tuple(names)) for attr, names in attrs.items()}
        ops.append(f"{json.dumps(op)}: {json.dumps(numbers)}")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in header.items()]
    lines += ['"types": [', ",\n".join(map(json.dumps, types)), "],"]
    lines += ['"ops": {', ",\n".join(ops), "}"]
    TABLE.write_text("{\n" + "\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    command.run(main)
