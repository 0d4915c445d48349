"""What a run finds in its folder: the newest whole checkpoint, its classes, its evaluations so far."""

import json
import os
import re
from typing import Any

import numpy as np
import tensorflow as tf

from lab_utils.common import files

_STEP = re.compile(r"model\.ckpt-(\d+)\.index$")
# What an evaluation holds (task.py makes them), as JSON keeps it.
_EVALUATION = dict(step=int, accuracy=float, cross_entropy=float, images=int, confusion=list)


def damage(path: str) -> str:
    """Reads every tensor of a checkpoint, as restoring would; what was wrong, or ""."""
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            value = reader.get_tensor(name)  # checks the checksum as well
            if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all():
                return f"{name} is not finite: training diverged"
    # IndexError: the file was cut short.
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        return str(error).splitlines()[0]
    return ""


def resume_point(model_dir: str) -> int:
    """Points the `checkpoint` file of `model_dir` at the newest whole checkpoint.

    A damaged checkpoint stays on disk and is passed over with a printed line: training then writes that
    step again. The files decide, not the `checkpoint` file, which a crash can leave behind or torn.

    Returns:
        The global step that training goes on from; 0 where there is no checkpoint.

    Raises:
        RuntimeError: there are checkpoints, but none can be read.
    """
    paths = {
        int(match[1]): name.removesuffix(".index")
        for name in tf.io.gfile.glob(f"{model_dir}/model.ckpt-*.index")
        if (match := _STEP.search(name))
    }
    for step in sorted(paths, reverse=True):
        problem = damage(paths[step])
        if not problem:
            whole = [paths[s] for s in sorted(paths) if s <= step]
            tf.compat.v1.train.update_checkpoint_state(model_dir, paths[step], whole)
            return step
        print(f"Checkpoint {paths[step]} is damaged ({problem}):\ngoing back to the one before.")
    if paths:
        raise RuntimeError(
            f"No checkpoint in {model_dir} can be read. To start again, move the folder away. To "
            "continue, restore an undamaged copy of the last model.ckpt files."
        )
    return 0


def text(path: str) -> str:
    """The text of a file, local or gs://; "" where there is none."""
    if not tf.io.gfile.exists(path):
        return ""
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read().decode(errors="replace")


def keep_labels(folder: str, labels: list[str]) -> str:
    """Writes labels.txt before the first step, or compares with it; its path.

    Raises:
        RuntimeError: the folder is of a training on other classes, or on these in another order.
    """
    path = os.path.join(folder, "labels.txt")
    lines = "".join(f"{label}\n" for label in labels)
    earlier = text(path) or lines
    if earlier != lines:
        raise RuntimeError(
            f"{folder} holds a training with other classes ({', '.join(earlier.splitlines())}, but "
            f"the records have {', '.join(labels)}): give another --output_dir, or the records "
            "that this training used"
        )
    files.write(path, lines)
    return path


def read_history(folder: str) -> list[dict[str, Any]]:
    """The evaluations of a run so far, each with its `step`, in their order.

    A line that is damaged is left out, with a printed line.
    """
    path, records = os.path.join(folder, "history.jsonl"), []
    for number, line in enumerate(text(path).splitlines(), 1):
        record = _object(line)
        if all(type(record.get(name)) is kind for name, kind in _EVALUATION.items()):
            records.append(record)
        else:
            print(f"{path}, line {number}: damaged, and left out.")
    return sorted(records, key=lambda record: record["step"])


def read_result(path: str) -> dict[str, Any]:
    """The result of an earlier run; {} where there is none, or it is damaged, which a printed line says."""
    content = text(path)
    if content and not _object(content):
        print(f"{path}: damaged, and written again.")
    return _object(content)


def _object(content: str) -> dict[str, Any]:
    """A JSON object; {} where the text is none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
