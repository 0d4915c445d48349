"""What all classes of facts share: a fact is computed once, when first needed, and so is its absence."""

from collections.abc import Callable
from typing import Any, ClassVar

from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.unavailable import Unavailable

# The modes that have a step on a core; serving is a graph for the host.
STEPS = (Mode.TRAIN, Mode.EVAL, Mode.PREDICT)
GRAPHS = (*STEPS, Mode.SERVING)


class fact:
    """Marks a method of `Facts` as a fact: computed when first asked for, and kept; so is its absence."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        # The name that functools.cached_property gives it: others look for the function there.
        self.func = func
        self.__doc__ = func.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, facts: Any, owner: type | None = None) -> Any:
        if facts is None:
            return self
        if self.name not in facts.known:
            try:
                facts.known[self.name] = self.func(facts)
            except Unavailable as why:
                facts.known[self.name] = why
            except CannotLower as error:
                facts.refused = error
                facts.known[self.name] = Unavailable(error.in_the_way())
        value = facts.known[self.name]
        if isinstance(value, Unavailable):
            raise Unavailable(*value.args)
        return value


class Facts:
    """What is known of one mode of what was handed over.

    A subclass has the facts of its kind of program, as methods marked with `fact`, and plain attributes for
    what is known from the start.

    Attributes:
        modules: of this package, whose rules are asked of such programs, in this order.
        stopped_by: the rule whose mistake kept the graph of the mode from being built, "" for none.
        refused: why the step of the mode cannot be built, once a fact that needs it was asked for.
    """

    modules: ClassVar[tuple[str, ...]] = ()
    stopped_by = ""
    refused: CannotLower | None = None

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.known: dict[str, Any] = {}

    def not_read(self) -> list[str]:
        """Sentences on what no rule reads of the program."""
        return []

    def has(self, names: tuple[str, ...]) -> bool:
        """Whether such programs have all the facts of those names, available or not."""
        return {*dir(type(self)), *vars(self)}.issuperset(names)
