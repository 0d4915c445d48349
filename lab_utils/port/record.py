"""What a port leaves to a person, and what the passes over a file share. No TensorFlow."""

from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst.metadata import PositionProvider, QualifiedNameProvider, QualifiedNameSource


@dataclass(frozen=True, order=True)
class Left:
    """One thing that is left to a person: its line in the old file, what to do, and the lab on it."""

    line: int
    what: str
    lab: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" + (f" (lab {self.lab})" if self.lab else "")


class NotPython(Exception):
    """The file cannot be read as Python 3; the message says where, and what to do."""


@dataclass
class Style:
    """How a file names TensorFlow.

    Attributes:
        v1: its name for version 1's API: "tf", or "tf.compat.v1" where `tf` is TensorFlow 2's.
    """

    v1: str = "tf"

    def name(self, place: str) -> str:
        """An expression for a place below tf.compat.v1, or in a package."""
        head = place.partition(".")[0]
        return place if head in ("tf_slim", "lab_utils") else f"{self.v1}.{place}"


@dataclass
class Job:
    """One file under way: `left` and `imports` (modules that the new code names) grow."""

    style: Style = field(default_factory=Style)
    left: set[Left] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)


class Pass(cst.CSTTransformer):
    """A pass over a file that knows lines and what names stand for."""

    METADATA_DEPENDENCIES = (PositionProvider, QualifiedNameProvider)

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job

    def line(self, node: cst.CSTNode) -> int:
        """The line of a node of the file as it was."""
        return self.get_metadata(PositionProvider, node).start.line

    def leave_to_a_person(self, node: cst.CSTNode, what: str, lab: str = "") -> None:
        """Lists it."""
        self.job.left.add(Left(self.line(node), what, lab))

    def imported(self, node: cst.CSTNode) -> str:
        """What an imported name of TensorFlow stands for, without compat.v1: "estimator.Estimator"."""
        for name in self.get_metadata(QualifiedNameProvider, node, ()):
            if name.source is QualifiedNameSource.IMPORT and name.name.startswith("tensorflow."):
                return tf_path(name.name)
        return ""


def tf_path(name: str) -> str:
    """`tensorflow.compat.v1.train.X` as `train.X`; "" for tensorflow itself."""
    path = name.removeprefix("tensorflow").lstrip(".")
    for prefix in ("compat.v1", "compat.v2"):
        if path == prefix or path.startswith(f"{prefix}."):
            path = path[len(prefix) :].lstrip(".")
    if path.startswith("python.estimator."):
        path = f"estimator.{path.rpartition('.')[2]}"
    return path


def code(node: Any) -> str:
    """A node as source text."""
    return cst.Module([]).code_for_node(node)


def argument(call: cst.Call, name: str, position: int | None = None) -> cst.Arg | None:
    """The argument `name` of a call, or the one at `position`."""
    for index, each in enumerate(call.args):
        if each.keyword and each.keyword.value == name:
            return each
        if index == position and not each.keyword and not each.star:
            return each
    return None


def keyword(name: str, value: str) -> cst.Arg:
    """name=value, as an argument."""
    return cst.Arg(
        keyword=cst.Name(name),
        value=cst.parse_expression(value),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )


def called(call: cst.Call, function: str, arguments: list[cst.Arg]) -> cst.Call:
    """The call with another function and other arguments; where they stand on lines is kept."""
    ended = call.args[-1].comma if call.args else cst.MaybeSentinel.DEFAULT
    comma = next((a.comma for a in call.args if isinstance(a.comma, cst.Comma)), None) or cst.Comma(
        whitespace_after=cst.SimpleWhitespace(" ")
    )
    new = [
        a
        if isinstance(a.comma, cst.Comma) and a is not call.args[-1]
        else a.with_changes(comma=comma)
        for a in arguments
    ]
    if new:
        new[-1] = new[-1].with_changes(comma=ended)
    return call.with_changes(func=cst.parse_expression(function), args=new)
