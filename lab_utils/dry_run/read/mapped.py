"""Whether the cores of a mapped step (jax.pmap, jax.shard_map) hold the same state after it, by its jaxpr.

Each value gets labels: the mesh axes over which the cores hold another value of it, whether it comes of a
gradient, and the collective that joined it last. A collective takes its axes away; all else passes labels on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import Place
from lab_utils.dry_run.private import jax as _tracing
from lab_utils.dry_run.read.jaxpr import inner
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding, some

# After these the cores hold the same value. After a psum_scatter or a ppermute they do not.
_JOINS = re.compile(r"psum(?!_scatter)|pmax|pmin|all_gather")


@dataclass(frozen=True)
class Joined:
    """The collective at `place` joined a value of a gradient."""

    place: Place


class _Mark:
    """A label other than an axis."""


GRADIENT = _Mark()  # the value depends on a gradient
COPIES = _Mark()  # the cores begin with the same value, though each has its own

Labels = frozenset  # of names of axes, marks, and Joined
_NONE: Labels = frozenset()


def labels(jaxpr: Any, copies: set[int], *, is_pmap: bool) -> list[Labels]:
    """The labels of each result of a step; `copies` are the numbers of arguments that cores hold alike."""
    given = [Labels({COPIES}) if n in copies else _NONE for n in range(len(jaxpr.invars))]
    return _Follow(is_pmap).through(jaxpr, given)


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
        for body in inner(equation):
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

    def through(self, jaxpr: Any, given: Sequence[Labels]) -> list[Labels]:
        known = dict(zip(map(id, jaxpr.invars), given, strict=True))

        def of(variable: Any) -> Labels:
            return known.get(id(variable), _NONE)

        for equation in jaxpr.eqns:
            results = self._of_equation(equation, [of(variable) for variable in equation.invars])
            if _tracing.is_of_gradient(equation):
                results = [result | {GRADIENT} for result in results]
            known.update(zip(map(id, equation.outvars), results, strict=True))
        return [of(variable) for variable in jaxpr.outvars]

    def _of_equation(self, equation: Any, given: list[Labels]) -> list[Labels]:
        name, parameters = equation.primitive.name, equation.params
        if _JOINS.match(name):
            return self._joined(equation, given)
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
        bodies = list(inner(equation))
        if len(bodies) == 1 and len(bodies[0].invars) == len(given):
            return self.through(bodies[0], given)
        return [_NONE.union(*given)] * len(equation.outvars)

    def _joined(self, equation: Any, given: list[Labels]) -> list[Labels]:
        names = equation.params.get("axes", equation.params.get("axis_name"))
        names = names if isinstance(names, tuple) else (names,)
        if equation.params.get("axis_index_groups") is not None:
            names = ()
        place = _tracing.place(equation)
        results = []
        for of in given:
            kept = Labels(
                label for label in of if label not in names and not isinstance(label, Joined)
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
        entering = [
            of - {COPIES} if COPIES in of else of | mesh_axes(spec)
            for of, spec in zip(given, parameters["in_specs"], strict=True)
        ]
        leaving = self.through(_open(parameters["jaxpr"]), entering)
        if self.is_pmap:
            return leaving
        meant = [mesh_axes(spec) for spec in parameters["out_specs"]]
        if parameters.get("check_vma"):  # JAX itself has checked the others
            return [Labels(label for label in of if not isinstance(label, str)) for of in leaving]
        return [of - names for of, names in zip(leaving, meant, strict=True)]

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


def arrays_apart(
    jaxpr: Any, state: list[tuple[int, int]], copies: set[int], *, is_pmap: bool
) -> Iterator[tuple[int, int, bool]]:
    """Arrays of the state that cores hold otherwise after a step: the pair of numbers, and whether trained.

    Without a gradient in the step all arrays of floats count as trained. Single numbers are left out.
    `copies` are the numbers of arguments that cores hold alike before it.
    """
    found = labels(jaxpr, copies, is_pmap=is_pmap)
    has_gradients = any(GRADIENT in of for of in found)
    for argument, result in state:
        aval = jaxpr.invars[argument].aval
        size = aval.size // aval.shape[0] if is_pmap and aval.shape and aval.shape[0] else aval.size
        if "float" in str(aval.dtype) and size > 1 and axes(found[result]):
            yield argument, result, GRADIENT in found[result] or not has_gradients


def read(
    jaxpr: Any, state: list[tuple[int, int]], copies: set[int], where: Place, *, is_pmap: bool
) -> list[Finding]:
    """TPU245 for trained arrays that the cores do not join, else TPU246 for statistics; `where`: the step."""
    apart = list(arrays_apart(jaxpr, state, copies, is_pmap=is_pmap))
    trained = [(argument, result) for argument, result, is_trained in apart if is_trained]
    arrays = trained or [(argument, result) for argument, result, _ in apart]
    if not arrays:
        return []
    names = _tracing.names(jaxpr)
    some_are_joined = len(arrays) < sum(
        "float" in str(jaxpr.invars[n].aval.dtype) for n, _ in state
    )
    maker = _tracing.maker(jaxpr, jaxpr.outvars[arrays[0][1]]) if some_are_joined else None
    place = (_tracing.place(maker) if maker else None) or where
    rule = "TPU245" if trained else "TPU246"
    return [finding(rule, place, arrays=some(names[argument] for argument, _ in arrays))]
