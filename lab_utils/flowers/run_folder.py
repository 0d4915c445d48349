"""What a training run keeps in its folder, beside the Estimator's files: labels.txt and history.jsonl."""

import itertools
import json
import math
import os
import shutil
from pathlib import Path

from lab_utils.common import files

# What TensorFlow leaves where it was killed: an export that it did not rename, tensors without an index.
_UNFINISHED = ("export/temp-*", "model.ckpt-*_temp", "*.tempstate*")


def remove_unfinished(output_dir: str) -> None:
    """Removes what a killed run has left in its folder on this machine; call it with the folder locked."""
    if files.is_remote(output_dir):
        return
    files.remove_unfinished(output_dir)
    for pattern in _UNFINISHED:
        for path in Path(output_dir).glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def difference(one: list[str], other: list[str]) -> str:
    """Where two lists of classes differ, in words; "" where they do not."""
    for number, (left, right) in enumerate(itertools.zip_longest(one, other), start=1):
        if left != right:
            names = ("none" if name is None else repr(name) for name in (left, right))
            return f"class {number} is {' and '.join(names)}"
    return ""


def split_labels(text: str) -> list[str]:
    """The class names in the text of a labels.txt: one a line, as the converter takes them."""
    return text.removesuffix("\n").split("\n")


def keep_labels(output_dir: str, labels: list[str]) -> str:
    """Writes labels.txt before the first step, or compares with it; its path.

    Raises:
        RuntimeError: the folder is of a training on other classes, or on these in another order.
    """
    from lab_utils.estimator import tf

    path = os.path.join(output_dir, "labels.txt")
    text = "".join(f"{label}\n" for label in labels)
    if not tf.io.gfile.exists(path):
        files.write(path, text)
        return path
    with tf.io.gfile.GFile(path, "rb") as file:
        known = file.read().decode(errors="replace")
    if differs := difference(split_labels(known), labels):
        raise RuntimeError(
            f"{output_dir} holds a training on other classes ({differs} in the records): give another "
            "--output_dir, or the records that it was trained on"
        )
    return path


def as_newest(saved_model: str) -> str:
    """Gives an export the largest number of its folder, which servers load; its path.

    The number is the time, in seconds: after a clock was set back, an earlier export has a larger one.
    """
    from lab_utils.estimator import tf

    folder, name = os.path.split(saved_model)
    names = (each.rstrip("/") for each in tf.io.gfile.listdir(folder))
    largest = max(int(each) for each in names if each.isdecimal())
    if int(name) == largest:
        return saved_model
    newest = os.path.join(folder, str(largest + 1))
    tf.io.gfile.rename(saved_model, newest)
    return newest


def read_history(path: str, classes: int) -> list[dict]:
    """The evaluations so far. A line that cannot be read is left out, and its evaluation made again."""
    from lab_utils.estimator import tf

    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path, "rb") as file:
        lines = file.read().decode(errors="replace").splitlines()
    records = []
    for line in lines:
        try:
            record = json.loads(line)
            numbers = [record[name] for name in ("step", "accuracy", "cross_entropy", "images")]
            whole = type(record["step"]) is int and all(map(math.isfinite, numbers))
            rows = [len(row) for row in record["confusion"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if whole and rows == [classes] * classes:
            records.append(record)
    if len(records) < len(lines):
        lost = len(lines) - len(records)
        print(f"{path}: {lost} of {len(lines)} evaluations cannot be read and are left out.")
    return records


def write_history(path: str, records: list[dict]) -> None:
    """Writes all evaluations, one a line."""
    files.write(path, "".join(json.dumps(record) + "\n" for record in records))
