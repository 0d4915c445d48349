"""What TensorFlow reads of this machine: its own file functions, checkpoints, and the ops that name files.

Each op is seen when it is made, within a graph or outside of one. `check()` says which private name moved.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf

# isort: split
from tensorflow.python.framework import op_callbacks
from tensorflow.python.lib.io import file_io
from tensorflow.python.training import py_checkpoint_reader

_LONGEST = 4096  # bytes of a path
_READERS = """
    CSVDataset CSVDatasetV2 FixedLengthRecordDataset FixedLengthRecordDatasetV2
    InitializeTableFromTextFile InitializeTableFromTextFileV2 ReadFile RestoreV2 TFRecordDataset
    TFRecordDatasetV2 TextLineDataset
    """
_PATTERNS = {"MatchingFiles", "MatchingFilesDataset", "ExperimentalMatchingFilesDataset"}
_CACHES = {"CacheDataset", "CacheDatasetV2"}
_OTHERS = """
    DatasetToTFRecord DistributedSave ExperimentalCSVDataset ExperimentalLMDBDataset
    FixedUnigramCandidateSampler GenerateVocabRemapping LMDBDataset ListSnapshotChunksDataset
    LoadAndRemapMatrix LoadDataset ReaderRead ReaderReadUpTo ReaderReadUpToV2 ReaderReadV2
    RecordInput Restore RestoreSlice SaveDataset SaveDatasetV2 SnapshotChunkDataset SnapshotDataset
    SnapshotDatasetReader SnapshotDatasetV2 Timestamp WriteFile
    """
# They make strings that are not constants, and may be names of files.
_MAKERS = """
    AsString CSVDataset CSVDatasetV2 DecodeCSV EagerPyFunc LookupTableFind LookupTableFindV2
    ParseExample ParseExampleDataset ParseExampleDatasetV2 ParseExampleV2 ParseSequenceExample
    ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample PyFunc PyFuncStateless
    ReadFile RegexReplace StaticRegexReplace StringFormat StringJoin StringLower StringSplit
    StringSplitV2 StringStrip StringUpper Substr TextLineDataset UnicodeEncode
    """


@functools.cache
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Reading:
    """Tells `evidence` (evidence.py) of each op that reads, and of each string that may name a file."""

    def __init__(self, evidence: Any) -> None:
        self._evidence = evidence
        self._makers: dict[Any, str] = {}  # the outermost graph -> the first op that makes strings

    def made(
        self,
        kind: Any,
        inputs: Any,
        attributes: Any,
        outputs: Any,
        op_name: Any = None,
        graph: Any = None,
    ) -> None:
        """An op was made. It returns None: the op's own outputs stay."""
        kind = kind.decode() if isinstance(kind, bytes) else kind
        outermost = graph
        while getattr(outermost, "outer_graph", None) is not None:
            outermost = outermost.outer_graph
        if kind in _words(_OTHERS) or (kind in _CACHES and self._values(inputs[1]) != [b""]):
            self._evidence.doubts.append(f"the op {kind}")
        for each in [*inputs, *outputs] if kind == "Const" else inputs:
            for value in self._values(each) or ():
                self._string(value)
        if kind in _PATTERNS:
            self._named(kind, inputs[0], self._evidence.searched)
        if kind in _words(_READERS):
            at = 1 if kind.startswith("InitializeTable") else 0
            if self._values(inputs[at]) is None and (
                maker := self._makers.get(outermost) or self._inner(inputs[at])
            ):
                self._evidence.doubts.append(f"{kind} of a name that {maker} may have made")
        if kind in _words(_MAKERS):
            self._makers.setdefault(outermost, kind)

    @staticmethod
    def _values(tensor: Any) -> list[bytes] | None:
        """The strings of a tensor; None where they are not known, or it holds none."""
        if getattr(tensor, "dtype", None) != tf.string:
            return None
        value = tf.get_static_value(tensor)
        return (
            None
            if value is None
            else [each for each in value.reshape(-1)]
            if hasattr(value, "reshape")
            else [value]
        )

    def _string(self, value: bytes) -> None:
        if not value or len(value) > _LONGEST or b"\0" in value:
            return
        text = value.decode(errors="surrogateescape")
        if "://" in text:
            self._evidence.doubts.append(f"{text[:100]} lies elsewhere")
        elif any(each in text for each in "*?["):
            pass  # a pattern is noted with the op that takes it
        else:
            for path in (text, f"{text}.index", f"{text}.data-00000-of-00001"):
                self._evidence.read(path)

    def _named(self, kind: str, tensor: Any, note: Callable[[str], None]) -> None:
        values = self._values(tensor)
        if values is None:
            self._evidence.doubts.append(f"{kind} of a pattern that is computed")
        for value in values or ():
            note(value.decode(errors="surrogateescape"))

    @staticmethod
    def _inner(tensor: Any) -> str:
        """An op of the tensor's own function that makes it from other strings; "" where there is none."""
        waiting, seen = [tensor], set()
        while waiting:
            op = getattr(waiting.pop(), "op", None)
            if op is None or op.name in seen:
                continue
            seen.add(op.name)
            if op.type not in (
                "Placeholder",
                "Const",
                "Identity",
                "Reshape",
                "PlaceholderWithDefault",
                "ExpandDims",
            ):
                return op.type
            waiting += op.inputs
        return ""


@contextmanager
def told(evidence: Any) -> Iterator[None]:
    """Context manager: `evidence` hears of what TensorFlow reads."""
    reading = Reading(evidence)
    original = file_io._pywrap_file_io
    with ExitStack() as stack:
        op_callbacks.add_op_callback(reading.made)
        stack.callback(op_callbacks.remove_op_callback, reading.made)
        stack.enter_context(
            mock.patch.object(file_io, "_pywrap_file_io", _Files(original, evidence))
        )
        new_reader = py_checkpoint_reader.NewCheckpointReader

        def checkpoint(filepattern: Any) -> Any:
            reading._string(os_bytes(filepattern))
            return new_reader(filepattern)

        stack.enter_context(
            mock.patch.object(py_checkpoint_reader, "NewCheckpointReader", checkpoint)
        )
        yield


def os_bytes(path: Any) -> bytes:
    """A path as bytes."""
    return path if isinstance(path, bytes) else str(path).encode(errors="surrogateescape")


class _Files:
    """TensorFlow's file functions; what they are asked for is told."""

    def __init__(self, original: Any, evidence: Any) -> None:
        self._original, self._evidence = original, evidence

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._original, name)
        note = {
            "GetChildren": self._evidence.listed,
            "GetMatchingFiles": self._evidence.searched,
        }.get(name, self._evidence.read)
        if name.startswith(
            ("Writable", "Create", "Recursively", "Delete", "Rename", "Copy", "Token", "File_")
        ):
            return function

        def noted(path: Any = None, *arguments: Any, **options: Any) -> Any:
            text = os_bytes(path).decode(errors="surrogateescape")
            if "://" in text:
                self._evidence.doubts.append(f"{text[:100]} lies elsewhere")
            elif path is not None:
                note(text)
            return function(path, *arguments, **options)

        return noted


_NAMES = (
    (op_callbacks, "add_op_callback"),
    (op_callbacks, "remove_op_callback"),
    (file_io, "_pywrap_file_io"),
    (py_checkpoint_reader, "NewCheckpointReader"),
)


def check() -> list[str]:
    """A sentence for each private name that this TensorFlow does not have."""
    return _tensorflow.missing(_NAMES, f"TensorFlow {tf.__version__}", __file__)
