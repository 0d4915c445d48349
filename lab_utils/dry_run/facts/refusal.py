"""What a TPU, or TPUEstimator, refuses of a program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lab_utils.common.source import Place


@dataclass(frozen=True)
class Refusal:
    """Why a program is not taken, as a rule's finding says it.

    Attributes:
        id: of that rule.
        where: the line to blame.
        facts: what the texts of the rule's page need, by name.
        message: what was raised.
        because_of: the rule of whose mistake it may be a consequence only.
    """

    id: str
    where: Place
    facts: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    message: str = ""
    because_of: str = ""

    @property
    def cause(self) -> str:
        """The rule to fix first."""
        return self.because_of or self.id
