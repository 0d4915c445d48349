"""Whether the cores of a mapped step (jax.pmap, jax.shard_map) hold the same state after it, by its jaxpr.

Each value gets labels: the mesh axes over which the cores hold another value of it, whether it comes of a
gradient, and the collective that joined it last. A collective takes its axes away; all else passes labels on.
What is drawn within a mapped function has a label of its own until it meets an argument.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import Place
from lab_utils.dry_run.private import jax as _tracing

# After these the cores hold the same value. After a psum_scatter or a ppermute they do not.
_JOINS = re.compile(r"psum(?!_scatter)|pmax|pmin|all_gather")
_EXCHANGES = re.compile(r"psum_scatter|reduce_scatter|ppermute|all_to_all")
# What dropout and noise do to examples; a matmul with what is drawn is another matter, as weights are.
_MEETS = ("add", "add_any", "sub", "mul", "div", "select_n")


@dataclass(frozen=True)
class Joined:
    """The collective at `place` joined a value of a gradient."""

    place: Place


@dataclass(frozen=True)
class Rows:
    """A value depends on several rows a core of an array that is split over `axis`, as a batch is."""

    axis: str


@dataclass(frozen=True)
class Drawn:
    """A random number that all cores draw alike at `place`."""

    place: Place


class _Mark:
    """A label other than an axis."""


GIVEN = _Mark()  # the value depends on an argument of the step
GRADIENT = _Mark()  # the value depends on a gradient
COPIES = _Mark()  # the cores begin with the same value, though each has its own

Labels = frozenset  # of names of axes, marks, and Joined
_NONE: Labels = frozenset()


@dataclass(frozen=True)
class Followed:
    """The labels of each result of a step; and the lines that draw alike on all cores what examples meet."""

    labels: list[Labels]
    drawn_alike: list[Place]


def follow(jaxpr: Any, copies: set[int], *, is_pmap: bool) -> Followed:
    """Follows labels through a step; `copies` are the numbers of arguments that cores hold alike."""
    way = _Follow(is_pmap)
    found = way.of_step(jaxpr, copies)
    return Followed(found, list(way.drawn_alike))


def axes(of: Labels) -> set[str]:
    """The mesh axes over which cores hold other values."""
    return {label for label in of if isinstance(label, str)}


def joined_at(of: Labels) -> Place:
    """The last line at which a gradient was joined on the way to a value; no place where none was."""
    places = [label.place for label in of if isinstance(label, Joined)]
    return max(places, key=lambda place: (bool(place), place.line or 0), default=Place())


def specs(jaxpr: Any) -> dict[int, Any] | None:
    """By the number of a step's argument how the one mapped function in it splits that; None: there is none.

    Only arguments are listed that reach the mapped function as they are.
    """
    return _specs(jaxpr, {id(variable): number for number, variable in enumerate(jaxpr.invars)})


def _specs(jaxpr: Any, numbers: dict[int, int]) -> dict[int, Any] | None:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "shard_map":
            pairs = zip(equation.invars, equation.params["in_specs"], strict=True)
            return {numbers[id(var)]: spec for var, spec in pairs if id(var) in numbers}
        for body in _tracing.bodies(equation):
            if len(body.invars) == len(equation.invars):
                pairs = zip(body.invars, equation.invars, strict=True)
                known = {id(a): numbers[id(b)] for a, b in pairs if id(b) in numbers}
                if (found := _specs(body, known)) is not None:
                    return found
    return None


def mesh_axes(spec: Any) -> set[str]:
    """The mesh axes that a PartitionSpec names."""
    parts = (part if isinstance(part, tuple) else (part,) for part in spec)
    return {name for part in parts for name in part if isinstance(name, str)}


class _Follow:
    """The way of labels through the equations of a step."""

    def __init__(self, is_pmap: bool) -> None:
        self.is_pmap = is_pmap
        self.is_mapped = False  # within what is mapped over several cores
        self.within: list[Any] = []  # the equation that is looked at, behind those that hold it
        self.drawn_alike: dict[Place, None] = {}  # where, and what examples of several cores meet

    def of_step(self, jaxpr: Any, copies: set[int]) -> list[Labels]:
        """The labels of its results; `copies` are the numbers of arguments that cores hold alike."""
        arguments = range(len(jaxpr.invars))
        given = [Labels({GIVEN, COPIES} if n in copies else {GIVEN}) for n in arguments]
        return self.through(jaxpr, given)

    def through(self, jaxpr: Any, given: Sequence[Labels]) -> list[Labels]:
        known = dict(zip(map(id, jaxpr.invars), given, strict=True))

        def of(variable: Any) -> Labels:
            return known.get(id(variable), _NONE)

        for equation in jaxpr.eqns:
            self.within.append(equation)
            results = self._of_equation(equation, [of(variable) for variable in equation.invars])
            self.within.pop()
            if _tracing.is_of_gradient(equation):
                results = [result | {GRADIENT} for result in results]
            known.update(zip(map(id, equation.outvars), results, strict=True))
        return [of(variable) for variable in jaxpr.outvars]

    def _of_equation(self, equation: Any, given: list[Labels]) -> list[Labels]:
        name, parameters = equation.primitive.name, equation.params
        if _JOINS.match(name):
            return self._joined(equation, given)
        if _EXCHANGES.match(name):
            return [_without_rows(of, _axis_names(equation)) for of in given]
        if name == "random_bits":
            return [self._drawn(given[0])]
        if name == "axis_index":
            return [Labels({parameters["axis_name"]})]
        special = {
            "shard_map": self._mapped,
            "scan": self._scan,
            "while": self._while,
            "cond": self._cond,
        }
        if name in special:
            return special[name](equation, given)
        bodies = list(_tracing.bodies(equation))
        if len(bodies) == 1 and len(bodies[0].invars) == len(given):
            return self.through(bodies[0], given)
        return [self._together(name, given)] * len(equation.outvars)

    def _drawn(self, key: Labels) -> Labels:
        """Of what is drawn with a key; JAX's own functions, which it traces once, have no line."""
        kept = key - {GIVEN}
        if axes(key) or not self.is_mapped:
            return kept
        lines = filter(None, map(_tracing.place, reversed(self.within)))
        return kept | {Drawn(next(lines, Place()))}

    def _together(self, name: str, given: list[Labels]) -> Labels:
        """Of what an op makes of several values: the numbers drawn are found where they meet examples."""
        together = _NONE.union(*given)
        if GIVEN not in together:
            return together
        if name in _MEETS and axes(together):
            drawn = [of for of in given if GIVEN not in of and not axes(of)]
            places = [label.place for of in drawn for label in of if isinstance(label, Drawn)]
            self.drawn_alike |= dict.fromkeys(places)
        return Labels(label for label in together if not isinstance(label, Drawn))

    def _joined(self, equation: Any, given: list[Labels]) -> list[Labels]:
        names = _axis_names(equation)
        if equation.params.get("axis_index_groups") is not None:
            names = ()
        place = _tracing.place(equation)
        results = []
        for of in given:
            kept = Labels(
                label
                for label in _without_rows(of, names)
                if label not in names and not isinstance(label, Joined)
            )
            is_gradient = GRADIENT in of or _tracing.is_of_gradient(equation)
            results.append(kept | {Joined(place)} if is_gradient else kept)
        return (
            results
            if len(results) == len(equation.outvars)
            else [_NONE.union(*results)] * len(equation.outvars)
        )

    def _mapped(self, equation: Any, given: list[Labels]) -> list[Labels]:
        parameters = equation.params
        sizes = dict(parameters["mesh"].shape)
        entering = [
            of - {COPIES}
            if COPIES in of
            else of | mesh_axes(spec) | set(map(Rows, _several(variable.aval, spec, sizes)))
            for of, spec, variable in zip(
                given, parameters["in_specs"], equation.invars, strict=True
            )
        ]
        around, self.is_mapped = self.is_mapped, self.is_mapped or parameters["mesh"].size > 1
        leaving = self.through(_open(parameters["jaxpr"]), entering)
        self.is_mapped = around
        if self.is_pmap:
            return leaving
        # JAX itself has checked the others
        is_checked = bool(parameters.get("check_vma"))
        has_gradients = any(GRADIENT in of for of in leaving)
        results = []
        for of, spec, variable in zip(
            leaving, parameters["out_specs"], equation.outvars, strict=True
        ):
            meant = axes(of) if is_checked else mesh_axes(spec)
            if has_gradients and GRADIENT not in of:  # statistics, a row of which each core makes
                meant -= set(_single(variable.aval, spec, sizes)) & {
                    label.axis for label in of if isinstance(label, Rows)
                }
            results.append(Labels(each for each in of if each not in meant))
        return results

    def _scan(self, equation: Any, given: list[Labels]) -> list[Labels]:
        parameters, body = equation.params, _open(equation.params["jaxpr"])
        start = parameters["num_consts"]
        end = start + parameters["num_carry"]
        carry = given[start:end]
        for _ in range(len(carry) + 2):
            results = self.through(body, [*given[:start], *carry, *given[end:]])
            new = [old | result for old, result in zip(carry, results, strict=False)]
            if new == carry:
                break
            carry = new
        return [*carry, *results[len(carry) :]]

    def _while(self, equation: Any, given: list[Labels]) -> list[Labels]:
        parameters = equation.params
        first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
        consts, carry = given[first : first + second], given[first + second :]
        body = _open(parameters["body_jaxpr"])
        for _ in range(len(carry) + 2):
            results = self.through(body, [*consts, *carry])
            new = [old | result for old, result in zip(carry, results, strict=True)]
            if new == carry:
                break
            carry = new
        (rounds,) = self.through(_open(parameters["cond_jaxpr"]), [*given[:first], *carry])
        return [of | axes(rounds) for of in carry]

    def _cond(self, equation: Any, given: list[Labels]) -> list[Labels]:
        which, *given = given
        branches = [self.through(_open(branch), given) for branch in equation.params["branches"]]
        return [which.union(*results) for results in zip(*branches, strict=True)]


def _open(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def _axis_names(equation: Any) -> tuple[str, ...]:
    """The mesh axes over which a collective works."""
    names = equation.params.get("axes", equation.params.get("axis_name"))
    return names if isinstance(names, tuple) else (names,)


def _without_rows(of: Labels, names: tuple[str, ...]) -> Labels:
    """What is left of labels where the cores along these axes have exchanged their rows."""
    return of - set(map(Rows, names))


def _several(aval: Any, spec: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    """The mesh axes over which an array is split that leave several of its rows to a core."""
    for size, names in zip(aval.shape, spec, strict=False):
        names = names if isinstance(names, tuple) else (names,)
        if size > math.prod(sizes.get(name, 1) for name in names):
            yield from (name for name in names if name in sizes)


def _single(aval: Any, spec: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    """The mesh axis over which an array is split that leaves one of its rows to a core."""
    for size, name in zip(aval.shape, spec, strict=False):
        if isinstance(name, tuple) and len(name) == 1:
            (name,) = name
        if isinstance(name, str) and size == sizes[name] > 1:
            yield name
