"""Eight virtual devices of JAX, which the checks of labs 10 and 11 compute on."""

import contextlib
from typing import Any

from lab_utils.check.outcome import CannotCheck
from lab_utils.common.figures import counted

DEVICES = 8
AGAIN = "Restart the kernel, and run the cells from the top."


def eight_devices() -> list[Any]:
    """The devices; JAX is started with them, if it has not started.

    Raises:
        CannotCheck: JAX is missing, or has started with fewer.
    """
    try:
        import jax
    except ImportError:
        raise CannotCheck(f"JAX is not installed here: pip install jax. {AGAIN}") from None

    with contextlib.suppress(RuntimeError):  # JAX has started
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", DEVICES)
    if len(jax.devices()) < DEVICES:
        raise CannotCheck(
            f"JAX has started with {counted(len(jax.devices()), 'device')}, but this check needs "
            f"{DEVICES}. {AGAIN}"
        )
    return jax.devices()[:DEVICES]
