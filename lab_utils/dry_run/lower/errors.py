"""Why a step cannot be lowered: TensorFlow's XLA bridge's errors, with the learner's line."""

import re
import textwrap
from typing import Any

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.advice import advice
from lab_utils.dry_run.graphs import moves_to_host
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding

_NEEDS_CONSTANT = re.compile(
    r"compile-time constant|evaluated to concrete values at compile time|fixed tensor list size"
)


def shortened(message: str, most: int = 300) -> str:
    """A message on one line without the stack that it ends in, at most so long; cut between two words."""
    text = re.split(r" Stack trace for op definition| \[\[\{\{node ", " ".join(message.split()))[0]
    return (
        textwrap.shorten(text, most, placeholder=" ...").rstrip(".")
        if len(text) > most
        else text.rstrip(".")
    )


class CannotLower(Exception):
    """XLA has no program for this step.

    `op_type` and `where` name the op and the learner's line, empty where the error names none.
    `only_here` says that a TPU would take it: the limit is that of this machine's TensorFlow.
    """

    def __init__(
        self, message: str, *, op_type: str = "", where: Place = NOWHERE, only_here: bool = False
    ) -> None:
        super().__init__(message)
        self.op_type, self.where, self.only_here = op_type, where, only_here

    def finding(self) -> Finding | None:
        """What the port has to fix; None where only this machine stands in the way."""
        message = str(self)
        if self.only_here:
            return None
        if _NEEDS_CONSTANT.search(message):
            return finding("TPU301", self.where, message=message)
        lacking = self.op_type and "No registered" in message
        reason = f"it has no {self.op_type} op" if lacking else shortened(message)
        return finding("TPU302", self.where, message=message, reason=reason)


class StepRaised(CannotLower):
    """Python raised while the step's graph was built: no op of XLA's is at fault."""

    def finding(self) -> Finding | None:
        """TPU199, as for a model_fn that raises."""
        message = str(self)
        if _NEEDS_CONSTANT.search(message):
            return super().finding()
        facts = {"mode": "train", "error": shortened(message), "hint": advice(message)}
        return finding("TPU199", self.where, message=message, **facts)


class InputUnfit(ValueError):
    """The batches of input_fn cannot be fed to cores: a shape is not fixed, or does not divide.

    Or nothing is computed from them.
    """


NOTHING_COMPUTED = (
    "the step returns nothing that it computes from its arguments, so there is nothing to judge: return the "
    "loss, the gradients or the new state"
)


def explain(error: Exception, graph: Any) -> CannotLower:
    """The bridge's error, with the op that it names looked up in the graph that the learner built."""
    text = " ".join(str(getattr(error, "message", error)).split())
    names = re.findall(r"\{+node ([^}]+)\}", text)
    operations = (_tensorflow.find_operation(graph, name) for name in names)
    operation = next((op for op in operations if op is not None), None)
    unsupported = re.search(r"XLA_CPU_JIT: (\w+) \(", text)
    op_type = unsupported[1] if unsupported else operation.type if operation is not None else ""
    where = place(operation) if operation is not None else NOWHERE
    only_here = bool(unsupported) and (op_table.compiles(op_type) or moves_to_host(graph))
    text = text.removeprefix("Failed getting HLO text: ").strip("'")
    text = re.sub(r"\{\{function_node [^}]*\}\}|\(?The op is created at:.*", "", text)
    return CannotLower(text, op_type=op_type, where=where, only_here=only_here)
