"""What a program makes in the scope of its TPUStrategy, and what outside of it."""

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.frontends.caller import maker


@dataclass
class _Made:
    """A Keras model or metric that the program made: where, and whether in the scope."""

    known: weakref.ref
    line: Place
    inside: bool


class Scope:
    """The Keras models and metrics that a program made, and the variables that it made in the scope.

    Attributes:
        has_strategy: the program has made a TPUStrategy.
        metrics: to be noted in by `watched`.
    """

    def __init__(self) -> None:
        self.has_strategy, self._depth = False, 0
        self._models: list[_Made] = []
        self.metrics: list[_Made] = []
        self._variables: dict[int, weakref.ref] = {}  # by id() of what they hold: they have no hash

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Context manager: what is made now is made in the scope."""
        from lab_utils.estimator import tf

        def noted(create: Callable, **options: Any) -> Any:
            variable = create(**options)
            self._variables[id(_held(variable))] = weakref.ref(variable)
            return variable

        self._depth += 1
        try:
            with tf.variable_creator_scope(noted):
                yield
        finally:
            self._depth -= 1

    def watched(self, init: Callable, noted_in: list[_Made] | None = None) -> Callable:
        """As `init`, the __init__ of Keras models, which are noted, or of others, noted in that list."""
        made = self._models if noted_in is None else noted_in

        @functools.wraps(init)
        def noted(model: Any, *arguments: Any, **options: Any) -> None:
            init(model, *arguments, **options)
            if not any(each.known() is model for each in made):
                made.append(_Made(weakref.ref(model), maker(model), self._depth > 0))

        noted.__signature__ = inspect.signature(
            init
        )  # which Keras 3 reads, and not the wrapped one's
        return noted

    def outside(self, model: Any = None) -> Place:
        """Where a model was made outside of the scope; NOWHERE if in it, or if there is no TPUStrategy.

        A model of which a part was made outside counts, too. Without a model, as in a loop of one's own:
        where the last one was made, if nothing at all was made in the scope.
        """
        if not self.has_strategy:
            return NOWHERE
        if model is None:
            nothing = not self._variables and not any(each.inside for each in self._models)
            return self._models[-1].line if self._models and nothing else NOWHERE
        own = next((each for each in self._models if each.known() is model), None)
        if own is None or not own.inside:
            return own.line if own else NOWHERE
        strangers = {id(variable) for variable in _weights(model) if not self._holds(variable)}
        for part in self._models:
            if not part.inside and not strangers.isdisjoint(map(id, _weights(part.known()))):
                return part.line
        return own.line if strangers else NOWHERE

    def outside_in(self, step: Callable) -> Place:
        """Where the function of a loop itself names what was made outside of the scope; NOWHERE if nothing.

        For a metric, it is the line that made it.
        """
        if not self.has_strategy:
            return NOWHERE
        from lab_utils.estimator import tf

        named = inspect.getclosurevars(inspect.unwrap(step))
        values = tf.nest.flatten([*named.nonlocals.values(), *named.globals.values()])
        for metric in self.metrics:
            known = metric.known()
            if any(known is each for each in values) and not all(map(self._holds, _weights(known))):
                return metric.line
        variables = (each for each in values if isinstance(each, tf.Variable))
        return NOWHERE if all(map(self._holds, variables)) else place(inspect.unwrap(step))

    def _holds(self, variable: Any) -> bool:
        known = self._variables.get(id(_held(variable)), lambda: None)()
        return known is not None and _held(known) is _held(variable)


def _held(variable: Any) -> Any:
    """What a variable and Keras' wrapper around it share: mixed precision puts one around each."""
    return getattr(variable, "handle", variable)


def _weights(model: Any) -> list[Any]:
    """The weights of a model or a metric as variables of TensorFlow.

    There are none before it is built, or when it is gone.
    """
    from lab_utils.estimator import tf

    try:
        weights = getattr(model, "weights", None) or getattr(model, "variables", ())
    except ValueError:
        return []
    own = [
        each if isinstance(each, tf.Variable) else getattr(each, "value", None) for each in weights
    ]
    return [each for each in own if each is not None]  # a vocabulary is none, and stands among them
