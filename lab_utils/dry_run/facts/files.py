"""The files that an input pipeline reads."""

import re
from os.path import isfile
from typing import Any

import numpy as np

from lab_utils.common.source import Place, place
from lab_utils.dry_run.facts.pipeline import chain_of_dataset, graphs_of_dataset
from lab_utils.dry_run.graphs import everywhere
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf

_NO_NAMES = "The list of files is empty"


def missing_files(graph: Any) -> list[tuple[str, Place]]:
    """What an input pipeline lacks of its files, in words, and the line: as far as constants tell it."""
    missing = []
    for op in everywhere(graph):
        if op.type == "TensorSliceDataset":
            if any(map(_tensorflow.is_empty_list, op.inputs)):
                missing.append((_NO_NAMES, place(op)))
        elif op.type == "MatchingFiles":
            patterns = tf.get_static_value(op.inputs[0])
            if patterns is not None and (unmet := _unmet(np.atleast_1d(patterns))):
                missing.append((f"No file matches {unmet}", place(op)))
    return missing


def missing_files_of_dataset(dataset: tf.data.Dataset, where: Place) -> list[tuple[str, Place]]:
    """The same of a dataset that fit or a strategy is given at `where`."""
    lists = (each for each in chain_of_dataset(dataset) if _tensorflow.slices_nothing(each))
    return [(_NO_NAMES, where) for _ in lists][:1]


def _unmet(patterns: np.ndarray) -> str:
    """The patterns in words, where they are of this machine and no file fits; "" for others."""
    texts = [pattern.decode() for pattern in patterns]
    if not texts or any("://" in text or tf.io.gfile.glob(text) for text in texts):
        return ""
    return " or ".join(map(repr, texts[:3]))


# Ops that read files whose names are their first input.
_READERS = re.compile(
    r"(ReadFile|MatchingFiles|(TFRecord|TextLine|FixedLengthRecord)Dataset(V\d)?)$"
)


def local_files_of(graph: Any) -> list[tuple[str, Place]]:
    """A path of this machine that each op of an input pipeline reads, and its line.

    Names that a function gets are among the strings of the graph, as far as they are constants: such a string
    counts where it is the name of a file here.
    """
    ops = list(everywhere(graph))
    readers = [op for op in ops if _READERS.match(op.type)]
    texts = [text for op in ops if readers and op.type == "Const" for text in _texts(op.outputs[0])]
    found = []
    for op in readers:
        names = _texts(op.inputs[0])
        local = _first_local(names) if names else _first_existing(texts)
        found += [(local, place(op))] if local else []
    return found


def local_files_of_dataset(dataset: tf.data.Dataset, where: Place) -> list[tuple[str, Place]]:
    """The same of a dataset that fit or a strategy is given at `where`."""
    chain = chain_of_dataset(dataset)
    given = [text for each in chain for text in _tensorflow.strings_of_dataset(each)]
    names = [text for each in chain for text in _tensorflow.files_of_dataset(each)]
    if local := _first_local(names):
        return [(local, where)]
    ops = [op for graph in graphs_of_dataset(dataset) for op in everywhere(graph)]
    readers = [op for op in ops if _READERS.match(op.type)]
    local = _first_existing(given) if readers else ""
    return [(local, place(op)) for op in readers] if local else []


def _texts(tensor: tf.Tensor) -> list[str]:
    """The strings of a constant; none of other tensors."""
    if tensor.dtype != tf.string or (value := tf.get_static_value(tensor)) is None:
        return []
    return [text.decode(errors="replace") for text in np.ravel(value)]


def _first_local(names: list[str]) -> str:
    return next((name for name in names if name and "://" not in name), "")


def _first_existing(texts: list[str]) -> str:
    return next((text for text in texts if text and "://" not in text and isfile(text)), "")
