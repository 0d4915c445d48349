"""Why a step cannot be lowered, and what a port has to fix then. No TensorFlow is imported here."""

import re
import textwrap

from lab_utils.common.source import NOWHERE, Place, place, uncoloured
from lab_utils.dry_run.advice import advice
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.wording import some

_NEEDS_CONSTANT = re.compile(
    r"compile-time constant|evaluated to concrete values at compile time|fixed tensor list size"
)
NO_BOUND, LOOP_STATE = (
    "fixed tensor list size",
    "Input and output shapes of loop body do not match",
)
_LONGEST = 300  # characters of a message


def shortened(message: str) -> str:
    """A message on one line without the stack that it ends in, cut between two words where it is long."""
    text = re.split(r" Stack trace for op definition| \[\[\{\{node ", " ".join(message.split()))[0]
    text = text.rstrip(".")
    return textwrap.shorten(text, _LONGEST, placeholder=" [...]") if len(text) > _LONGEST else text


class CannotLower(Exception):
    """There is no program for this step.

    `op_type` and `where` name the op and the learner's line, empty where the error names none.
    `only_here` says that a TPU would take it: the limit is that of this machine's TensorFlow.
    """

    def __init__(
        self, message: str, *, op_type: str = "", where: Place = NOWHERE, only_here: bool = False
    ) -> None:
        super().__init__(message)
        self.op_type, self.where, self.only_here = op_type, where, only_here

    def in_the_way(self) -> str:
        """Why what follows from the step is not known, and what to do first."""
        finding = self.finding()
        why = f"fix {finding.rule} first" if finding else shortened(str(self))
        return f"its step could not be built: {why}"

    def finding(self) -> Finding | None:
        """What the port has to fix; None where only this machine stands in the way."""
        message = str(self)
        if self.only_here:
            return None
        if _NEEDS_CONSTANT.search(message):
            case = "loop" if NO_BOUND in message else "size"
            return finding("TPU301", self.where, message=message, case=case)
        lacking = self.op_type and "No registered" in message
        reason, case = f"it has no {self.op_type} op" if lacking else shortened(message), "op"
        if LOOP_STATE in message:
            reason, case = _grows(message), "loop"
        return finding("TPU302", self.where, message=message, reason=reason, case=case)


class StepRaised(CannotLower):
    """Python raised while the step's graph was built: no op of XLA's is at fault."""

    def finding(self) -> Finding | None:
        """TPU199, as for a model_fn that raises."""
        message = str(self)
        if _NEEDS_CONSTANT.search(message):
            return super().finding()
        facts = {"mode": "train", "error": shortened(message), "hint": advice(message)}
        return finding("TPU199", self.where, message=message, **facts)


class InputUnfit(CannotLower, ValueError):
    """The batches cannot be fed to cores: a shape is not fixed, or does not divide.

    Or nothing is computed from them. The message is our own, and ends with what to do.
    """

    def finding(self) -> None:
        """No rule says so: the message is the stage's detail."""


class IndivisibleAxis(ValueError):
    """An argument's axis cannot be split as its PartitionSpec says, which JAX refuses too."""


class NotJax(CannotLower):
    """The step raised while JAX traced or lowered it; `case` says what to do, in the words of TPU343."""

    def __init__(self, error: Exception, where: Place, case: str, **facts: str) -> None:
        prefix = "" if isinstance(error, IndivisibleAxis) else f"{type(error).__name__}: "
        super().__init__(uncoloured(f"{prefix}{error}"), where=place(error) or where)
        self.facts = {"case": case} | facts

    def finding(self) -> Finding:
        """TPU343, with JAX's own words."""
        message = str(self)
        facts = {"reason": shortened(message)} | self.facts
        return finding("TPU343", self.where, message=message, **facts)


class NothingKept(CannotLower):
    """The step changes what jax.jit has copied, and returns nothing."""

    def finding(self) -> Finding:
        """TPU408, as a run would show it."""
        return finding("TPU408", self.where, steps=1, case="copied")


NOTHING_COMPUTED = (
    "the step returns nothing that it computes from its arguments, so there is nothing to judge: return the "
    "loss, the gradients or the new state"
)


def _grows(message: str) -> str:
    """What a loop does to its state, by a message that lists all shapes of it twice."""
    before, _, after = message.partition(") vs. (")
    pairs = zip(re.findall(_SHAPE, before), re.findall(_SHAPE, after), strict=False)
    changes = [f"{old} becomes {new}" for old, new in pairs if old != new]
    return f"a loop changes the shape of its state from one iteration to the next: {some(changes)}"


_SHAPE = r"\b[a-z]+\d*\[[\d,]*\]"
