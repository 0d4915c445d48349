"""The way to a TPU: what must stand in the environment before the import, and whether it answers."""

import os
import socket
import sys
import urllib.parse

from packaging.version import Version

from lab_utils.common.notices import quiet
from lab_utils.runtime import chips
from lab_utils.runtime.install import version
from lab_utils.runtime.places import detect

# The Keras team's example for v5p and v6e sets these (keras-team/keras-io,
# examples/keras_rs/distributed_embedding_tf.py at 93145b5, read 2026-11-21).
_PJRT = {
    "PJRT_DEVICE": "TPU",
    "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true",
    "TF_XLA_FLAGS": "--tf_mlir_enable_mlir_bridge=true "
    "--tf_mlir_enable_convert_control_to_data_outputs_pass=true "
    "--tf_mlir_enable_merge_control_flow_pass=true",
}
# libtpu is a compiler here, and should look neither for a cloud machine nor for other hosts.
NO_CHIP = {
    "TPU_SKIP_MDS_QUERY": "1",  # the metadata server of a cloud machine
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_MIN_LOG_LEVEL": "2",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # by several processes at once
}

# The first and last libtpu that goes with a tensorflow-tpu. With a later one the import of 2.20.0 ends the
# process (seen 2026-11-21).
_PAIRS = {
    "2.19.1": ("0.0.10", "0.0.10"),
    "2.20.0": ("0.0.14", "0.0.31"),
}
ANSWER = 20  # seconds that a TPU's address has to take a connection
ADVICE = (
    "tensorflow-tpu==2.19.1 with libtpu==0.0.10 (Python 3.11 or 3.12), or tensorflow-tpu==2.20.0 with "
    "libtpu==0.0.21.1 (Python 3.13)"
)


def prepare_tpu(framework: str = "") -> str:
    """Sets the variables that the framework needs, before it is imported; keeps what is set already.

    Args:
        framework: "tensorflow" or "jax"; by default TensorFlow where tensorflow-tpu is installed, else JAX.

    Returns:
        A sentence: the machine, and what was set.

    Raises:
        RuntimeError: the framework has been imported without them, or it would end the process.
    """
    machine = detect()
    installed = version("tensorflow-tpu")
    framework = framework or ("tensorflow" if installed else "jax")
    if framework == "tensorflow" and installed:
        _refuse_wrong_pair(installed)
    # JAX looks for the chips by itself; images of older TPUs set what they need.
    pjrt = framework == "tensorflow" and chips.needs_pjrt(machine.generation)
    variables = NO_CHIP if not machine.chips else _PJRT | _libtpu_path() if pjrt else {}
    missing = {name: value for name, value in variables.items() if name not in os.environ}
    if missing and machine.chips and framework in sys.modules:
        raise RuntimeError(
            f"{framework} was imported before {', '.join(missing)} could be set: restart the process or "
            "kernel, and call prepare_tpu() first"
        )
    quiet()
    os.environ.update(missing)
    if not machine.chips:
        return f"{machine}: the code runs on the {machine.accelerator}."
    if pjrt and not installed:
        return (
            f"{machine}, but tensorflow-tpu, the TensorFlow that can use it, is missing. Use JAX "
            f"(KERAS_BACKEND=jax), or install {ADVICE}."
        )
    change = f"set {', '.join(missing)}" if missing else "nothing had to be set"
    return f"{machine}: {change} for {framework}."


def answers(address: str, seconds: float = ANSWER) -> None:
    """Waits until a TPU's address takes a connection; TensorFlow itself would wait for ever.

    Args:
        address: grpc://HOST:PORT; another form, such as "" for this machine, is not asked.
        seconds: how long in all.

    Raises:
        RuntimeError: nothing answers there.
    """
    if not address.startswith("grpc://"):
        return
    where = urllib.parse.urlsplit(address)
    try:
        if not where.hostname or not where.port:
            raise OSError("an address is grpc://HOST:8470")
        socket.create_connection((where.hostname, where.port), seconds).close()
    except (OSError, ValueError) as error:  # ValueError: a port above 65535
        raise RuntimeError(
            f"nothing answered at {address} within {seconds:g} s ({error})"
        ) from None


def _libtpu_path() -> dict[str, str]:
    """The variable by which TensorFlow finds libtpu.so."""
    try:
        import libtpu
    except ImportError:
        return {}
    return {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": libtpu.get_library_path()}


def _refuse_wrong_pair(installed: str) -> None:
    """Raises RuntimeError where importing TensorFlow with this libtpu would end the process."""
    libtpu = version("libtpu")
    if not libtpu or installed not in _PAIRS:
        return
    first, last = _PAIRS[installed]
    if not Version(first).release <= Version(libtpu).release[:3] <= Version(last).release:
        raise RuntimeError(
            f"tensorflow-tpu {installed} needs libtpu {first} to {last}, but this is libtpu "
            f"{libtpu}, and importing both can end the process. Install {ADVICE}"
        )
