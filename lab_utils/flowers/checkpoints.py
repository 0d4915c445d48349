"""Which checkpoint a run goes on from: the newest that can be read whole."""

import re

import numpy as np
import tensorflow as tf

_STEP = re.compile(r"model\.ckpt-(\d+)\.index$")


def _damage(path: str) -> str:
    """Reads every tensor, as restoring would; returns what was wrong, or nothing."""
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            value = reader.get_tensor(name)  # checks the checksum as well
            if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all():
                return f"{name} is not finite: training diverged"
    except (
        tf.errors.OpError,
        ValueError,
        RuntimeError,
        IndexError,
    ) as error:  # IndexError: cut short
        return str(error).splitlines()[0]
    return ""


def resume_point(model_dir: str, report=print) -> int:
    """Points the `checkpoint` file of `model_dir` at the newest whole checkpoint.

    A damaged checkpoint stays on disk and is passed over with a line to `report`: training then writes
    that step again. The files decide, not the `checkpoint` file, which a crash can leave behind or torn.

    Returns:
        The global step that training goes on from; 0 where there is no checkpoint.

    Raises:
        RuntimeError: there are checkpoints, but none can be read.
    """
    found = {
        int(match[1]): name.removesuffix(".index")
        for name in tf.io.gfile.glob(f"{model_dir}/model.ckpt-*.index")
        if (match := _STEP.search(name))
    }
    damaged = set()
    for step in sorted(found, reverse=True):
        problem = _damage(found[step])
        if not problem:
            whole = [found[s] for s in sorted(found) if s <= step]
            tf.compat.v1.train.update_checkpoint_state(model_dir, found[step], whole)
            return step
        damaged.add(step)
        report(f"Checkpoint {found[step]} is damaged ({problem}):\ngoing back to the one before.")
    if damaged:
        raise RuntimeError(
            f"No checkpoint in {model_dir} can be read. Move the folder away to start again, or put "
            "back a good copy of the last model.ckpt files."
        )
    return 0
