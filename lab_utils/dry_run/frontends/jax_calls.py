"""A step of JAX and the calls of it: what it is called with, and what JAX traces of one call.

People hand over what they call: a jitted function, a method, a functools.partial, Flax's nnx.jit, Equinox's
filter_jit, jax.pmap, or a function of their own around one of these. Flax and Equinox are not imported.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, wraps
from itertools import islice, repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from lab_utils.dry_run.facts import jaxpr as read_jaxpr
from lab_utils.dry_run.private import jax as _jax
from lab_utils.dry_run.unavailable import Unavailable

FEW = 8  # examples of a stream, to see whether shapes change
# What a function raises that reads the value of what JAX traces.
TRACING_ERRORS = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)


class Call(NamedTuple):
    """A call of a step.

    Attributes:
        function: what is traced: what JAX, NNX or Equinox jitted, without the partials and methods around it;
            any other callable as it is.
        args, kwargs: its arguments by position and by name. What a partial binds is among those of a jitted
            function, and of any other callable a constant.
    """

    function: Callable
    args: tuple
    kwargs: dict[str, Any]

    @classmethod
    def of(
        cls, step: Callable, args: tuple, kwargs: Mapping[str, Any] = MappingProxyType({})
    ) -> "Call":
        """The call of a step with these arguments."""
        inner, bound, keywords = unbound(step)
        if hasattr(inner, "trace") or hasattr(inner, "donate_first"):
            return cls(inner, (*bound, *args), {**keywords, **kwargs})
        return cls(partial(step, **kwargs) if kwargs else step, args, {})

    @property
    def leaves(self) -> list[Any]:
        """The leaves of all arguments, those by name last."""
        return jax.tree.leaves((self.args, self.kwargs))

    def with_leaves(self, leaves: list[Any]) -> "Call":
        """The same call with others in their place."""
        structure = jax.tree.structure((self.args, self.kwargs))
        return Call(self.function, *jax.tree.unflatten(structure, leaves))


def examples(step: Callable, data: Any) -> list[tuple]:
    """The positional arguments of each example call of `step`.

    A tuple is the arguments where the step takes as many, else the one argument. An iterator, a dataset or a
    loader as one of the arguments stands for its first elements.

    Raises:
        TypeError: the step cannot be called so.
        ValueError: a stream is empty.
    """
    call = data if type(data) is tuple else (data,)
    if _why_not(step, call) and not _why_not(step, (data,)):
        call = (data,)
    if reason := _why_not(step, call):
        raise TypeError(
            f"the step cannot be called with the example: {reason}. Give the arguments of one call "
            "as a tuple, such as (state, batch); bind all other arguments with functools.partial"
        )
    if not any(map(_is_stream, call)):
        return [jax.tree.map(_abstract, call)]
    columns = [islice(part, FEW) if _is_stream(part) else repeat(part) for part in call]
    calls = [jax.tree.map(_abstract, arguments) for arguments in zip(*columns, strict=False)]
    if not calls:
        raise ValueError("the stream of batches is empty")
    return calls


def trace(call: Call) -> Any:
    """The jax.stages.Traced of one call.

    What JAX or NNX jitted is traced by its own means. Any other callable is jitted here, with the donation
    and the shardings that a jitted function in it asks for.

    Raises:
        Exception: whatever the step raises.
    """
    function, args, kwargs = call
    if hasattr(function, "trace"):
        traced = function.trace(*args, **kwargs)
        return getattr(traced, "traced", traced)  # NNX keeps JAX's own in its own
    if hasattr(function, "donate_first"):  # Equinox's filter_jit, which holds the function as fn
        donated = [
            n for n in range(len(args)) if (function.donate_rest if n else function.donate_first)
        ]
        of_arrays, arrays = _arrays_alone(partial(inspect.unwrap(function), **kwargs), args)
        return jax.jit(of_arrays, donate_argnums=donated).trace(*arrays)
    try:
        return _as_inner_asks(function, args)
    except Exception:
        # What is not an array may be a size, a switch or a function: it then is a constant.
        if all(map(is_array, jax.tree.leaves(args))):
            raise
        return _as_inner_asks(*_arrays_alone(function, args))


def without_refs(calls: list[Call]) -> list[Call]:
    """Calls of a step that changes arguments of type jax.Ref in place, as calls of one that returns them.

    The new function returns its arguments, with None in place of all but jax.Ref, and the step's results.
    """
    first = calls[0]
    if not any(map(_jax.is_ref, jax.tree.leaves([call.args for call in calls]))):
        return calls
    refs = [_jax.is_ref(leaf) for leaf in jax.tree.leaves(first.args)]

    def changed(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        pairs = zip(leaves, refs, strict=True)
        given = [jax.new_ref(leaf) if is_ref else leaf for leaf, is_ref in pairs]
        results = first.function(*structure.unflatten(given), **first.kwargs)
        new = [each[...] if is_ref else None for each, is_ref in zip(given, refs, strict=True)]
        return structure.unflatten(new), results

    held = [
        n
        for n, each in enumerate(first.args)
        if (leaves := jax.tree.leaves(each)) and all(map(_jax.is_ref, leaves))
    ]
    function = jax.jit(changed, donate_argnums=held)

    def values(leaf: Any) -> Any:
        return leaf[...] if _jax.is_ref(leaf) else leaf

    return [Call(function, jax.tree.map(values, call.args), {}) for call in calls]


def statics(call: Call) -> list[Any]:
    """What a call gives that is a constant of its compiled program: what is not an array for Equinox or pmap.

    What jax.pmap takes as an array it would not take as a constant.
    """
    inner, bound, keywords = unbound(call.function)
    others = [leaf for leaf in jax.tree.leaves((bound, *call[1:], keywords)) if not is_array(leaf)]
    if hasattr(inner, "donate_first"):
        return others
    if not others or not is_pmap(inner):
        return []
    try:
        _as_inner_asks(call.function, call.args)
    except Exception:
        return others
    return []


def loses_updates(call: Call) -> bool:
    """Whether jax.jit takes an optimizer of Flax NNX: it hands the step a copy, as nnx.jit does not.

    What the step changes in it is lost, where it does not return it.
    """
    nnx = sys.modules.get("flax.nnx")
    if not nnx or not hasattr(call.function, "trace") or hasattr(call.function, "jitted_fn"):
        return False
    arguments = (*call.args, *call.kwargs.values())
    return any(isinstance(argument, nnx.Optimizer) for argument in arguments)


def computes_gradients(function: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a call computes gradients: it then is a step of training, or a part of one.

    Raises:
        Exception: whatever the function raises while JAX traces it.
    """
    traced = trace(Call.of(function, args, kwargs))
    return any(map(_jax.is_of_gradient, _jax.equations(traced.jaxpr.jaxpr)))


def stand_ins(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a call would return, uncomputed: the state as it was, and zeros for all else.

    They are new objects, by which the next call shows what comes back.
    """
    shapes = _shapes(function, args, kwargs)
    old = arrays((args, kwargs))
    wanted, structure = jax.tree.flatten(shapes)
    numbers = [n for n, leaf in enumerate(wanted) if is_array(leaf)]
    pairs = read_jaxpr.paired(
        read_jaxpr.children(jax.tree.structure(_arrays_in_place((*args, kwargs)))),
        jax.tree.structure(_arrays_in_place(shapes)),
        old,
        [wanted[n] for n in numbers],
    )
    values = {result: old[argument] for argument, result in pairs}
    for k, n in enumerate(numbers):
        wanted[n] = _copy(values[k]) if k in values else _zeros(wanted[n])
    return jax.tree.unflatten(structure, wanted)


def arrays(tree: Any) -> list[Any]:
    """The arrays of a pytree, in their order."""
    return list(filter(is_array, jax.tree.leaves(tree)))


def abstract(tree: Any) -> Any:
    """A pytree with the shapes of its arrays in their place."""

    def shape(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        # a random key has no weak type
        kind = {"weak_type": getattr(leaf, "weak_type", False), "sharding": leaf.sharding}
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, **kind)

    return jax.tree.map(shape, tree)


def is_trained(leaf: Any) -> bool:
    """Whether an array may be a parameter: floats, and not a single number."""
    return is_array(leaf) and bool(leaf.shape) and "float" in str(leaf.dtype)


def _shapes(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a call returns, with shapes in place of arrays."""
    if hasattr(function, "donate_first"):
        return sys.modules["equinox"].filter_eval_shape(function, *args, **kwargs)
    if hasattr(function, "jitted_fn"):  # NNX; what the call changes in place stays as it is
        return sys.modules["flax.nnx"].eval_shape(partial(function.fun, **kwargs), *args)
    if hasattr(function, "eval_shape"):
        return function.eval_shape(*args, **kwargs)
    call = partial(function, **kwargs)
    try:
        return jax.eval_shape(call, *args)
    except Exception:  # an argument that is not an array, as in `trace`
        of_arrays, given = _arrays_alone(call, args)
        return jax.eval_shape(of_arrays, *given)


def _copy(array: Any) -> Any:
    """The same values in another object, and in the same memory where that goes."""
    if not isinstance(array, jax.Array):
        return jax.numpy.asarray(array)
    shards = [shard.data for shard in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, shards)


def _zeros(shape: Any) -> Any:
    if _jax.is_key(shape):
        numbers = jax.eval_shape(jax.random.key_data, shape)
        data = jax.numpy.zeros(numbers.shape, numbers.dtype)
        return jax.random.wrap_key_data(data, impl=_jax.key_kind(shape))
    return jax.numpy.zeros(shape.shape, shape.dtype)


def leaf_numbers(call: Call, traced: Any) -> dict[int, int]:
    """By the number of a call's leaf that of the array that JAX traces of it; constants have none.

    Raises:
        Unavailable: what was traced is not what the call's function says that it takes.
    """
    leaves, variables = call.leaves, traced.jaxpr.jaxpr.invars
    if hasattr(call.function, "trace"):
        taken = list(_not_static(call))
    else:
        # As `trace` traces it: with all its leaves or, where these are more, with the arrays.
        given = range(len(jax.tree.leaves(call.args)))
        arrays = [n for n in given if is_array(leaves[n])]
        taken = arrays if len(arrays) == len(variables) else list(given)
    shapes = [np.shape(leaves[n]) for n in taken]
    if shapes != [variable.aval.shape for variable in variables]:
        raise Unavailable("JAX does not say which of the call's arguments are the step's arrays")
    return {leaf: number for number, leaf in enumerate(taken)}


def _not_static(call: Call) -> Iterator[int]:
    """The numbers of the leaves that what JAX or NNX jitted does not take as constants.

    Flax NNX hands over once what two arguments share, as a model and its optimizer do: the first counts.
    """
    is_nnx = hasattr(call.function, "jitted_fn")
    kind = sys.modules["flax.nnx"].Variable if is_nnx else ()
    static = _jax.static_arguments(
        getattr(call.function, "jitted_fn", call.function), len(call.args)
    )
    seen: set[int] = set()
    number = 0
    arguments = [*enumerate(call.args), *sorted(call.kwargs.items())]
    for name, argument in arguments:
        for part in jax.tree.leaves(argument, is_leaf=lambda part: isinstance(part, kind)):
            size = len(jax.tree.leaves(part))
            if name not in static and id(part) not in seen:
                yield from range(number, number + size)
            if isinstance(part, kind):
                seen.add(id(part))
            number += size


def traced_leaves(call: Call, traced: Any) -> dict[int, Any]:
    """By the number of an array that JAX traces, the leaf of the call.

    Raises:
        Unavailable: as leaf_numbers.
    """
    leaves = call.leaves
    return {number: leaves[leaf] for leaf, number in leaf_numbers(call, traced).items()}


def is_pmap(function: Callable) -> bool:
    """Whether jax.pmap made it: the only one of JAX's that can be lowered and not traced."""
    lowers = hasattr(function, "lower") and not hasattr(function, "trace")
    return lowers and inspect.isfunction(function)


def unbound(step: Callable) -> tuple[Callable, tuple, dict[str, Any]]:
    """The function in partials and methods, with the arguments that these bind."""
    bound: tuple = ()
    keywords: dict[str, Any] = {}
    while True:
        if inspect.ismethod(step):
            step, bound = step.__func__, (step.__self__, *bound)
        elif isinstance(step, partial):
            bound, keywords = (*step.args, *bound), step.keywords | keywords
            step = step.func
        else:
            return step, bound, keywords


def _as_inner_asks(step: Callable, call: tuple) -> Any:
    """A callable of arrays, with the donation and the shardings that a jitted function in it asks for."""
    traced = jax.jit(step).trace(*call)
    wishes = _jax.wishes(traced)
    if not wishes:
        return traced
    donated, arguments, start = [], [], 0
    for number, argument in enumerate(call):
        leaves, tree = jax.tree.flatten(argument)
        inner = [wishes.get(start + n, _jax.Wish()) for n in range(len(leaves))]
        start += len(leaves)
        if leaves and all(wish.donated for wish in inner):
            donated.append(number)
        if any(wish.sharding for wish in inner):
            argument = jax.tree.unflatten(tree, map(_with_sharding, leaves, inner))
        arguments.append(argument)
    return jax.jit(step, donate_argnums=donated).trace(*arguments)


def _with_sharding(leaf: Any, wish: _jax.Wish) -> Any:
    if wish.sharding is None or not is_array(leaf):
        return leaf
    weak = getattr(leaf, "weak_type", False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=wish.sharding, weak_type=weak)


def _arrays_alone(step: Callable, call: tuple) -> tuple[Callable, tuple]:
    """A function of the arrays in `call`, for which all else in it are constants; and these arrays."""

    @wraps(inspect.unwrap(step) if not isinstance(step, partial) else step.func)
    def of_arrays(*arrays: Any) -> Any:
        def merge(array: Any, other: Any) -> Any:
            return other if array is None else array

        whole = jax.tree.map(merge, arrays, call, is_leaf=lambda leaf: leaf is None)
        return _arrays_in_place(step(*whole))

    of_arrays.__signature__ = inspect.signature(step)
    return of_arrays, _arrays_in_place(call)


def _arrays_in_place(tree: Any) -> Any:
    """A pytree with None in place of what is not an array."""
    return jax.tree.map(lambda leaf: leaf if is_array(leaf) else None, tree)


def is_array(leaf: Any) -> bool:
    """Whether a leaf of a pytree is an array, of whatever library, or the shape of one."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _is_stream(value: Any) -> bool:
    """Whether `value` yields batches: an iterator, a tf.data dataset, a loader; no array, no pytree."""
    if is_array(value) or isinstance(value, str | bytes | type):
        return False
    return hasattr(value, "__next__") or (
        hasattr(value, "__iter__") and jax.tree_util.all_leaves([value])
    )


def _abstract(leaf: Any) -> Any:
    """A leaf as JAX takes it: an array of another library as its shape and type, the rest as it is."""
    ours = jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic
    if not is_array(leaf) or isinstance(leaf, ours) or _jax.is_ref(leaf):
        return leaf
    dtype = getattr(leaf.dtype, "as_numpy_dtype", None) or str(leaf.dtype).rpartition(".")[2]
    return jax.ShapeDtypeStruct(tuple(leaf.shape), jax.numpy.dtype(dtype))


def _why_not(step: Callable, call: tuple) -> str:
    """Why `step` cannot be called so; "" where it can, or where its signature is not known."""
    try:
        with suppress(ValueError):
            inspect.signature(step).bind(*call)
    except TypeError as error:
        return str(error)
    return ""
