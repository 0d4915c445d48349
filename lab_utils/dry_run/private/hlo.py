"""The protocol buffer of a lowered step: its message classes come with TensorFlow.

tests/test_dry_run_private.py fails where they have moved.
"""

from typing import Any

from lab_utils.dry_run.unavailable import Unavailable


def module(serialized: bytes) -> Any:
    """A serialized HloModuleProto (message of xla/service/hlo.proto), parsed.

    Names and ids that count the functions of this process are taken out, so that the same step
    always gives the same bytes: serialise it with `deterministic=True`.

    Raises:
        Unavailable: TensorFlow is not installed.
    """
    try:
        from tensorflow.compiler.xla.service import hlo_pb2
    except ImportError as error:
        raise Unavailable(
            "a lowered step is read with TensorFlow, which cannot be imported here "
            f"({error}). Install it with: pip install tensorflow-cpu"
        ) from error

    parsed = hlo_pb2.HloModuleProto.FromString(serialized)
    for computation in parsed.computations:  # its name counts, its id does not
        entry = computation.id == parsed.entry_computation_id
        computation.name = "step" if entry else f"computation.{computation.id}"
    parsed.name = parsed.entry_computation_name = "step"
    parsed.id = 0
    return parsed
