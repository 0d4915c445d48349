"""The checks of lab 11, JAX by hand: a step split over examples and over weights, what each exchanges, how long."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.outcome import CannotCheck
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import returns, several

_DEVICES, _WIDTH, _BATCH = 8, 16, 32
_SHAPES = {"inner": (_WIDTH, 4 * _WIDTH), "outer": (4 * _WIDTH, _WIDTH)}


def _devices() -> list[Any]:
    """Eight virtual devices. Raises CannotCheck where JAX has started with fewer."""
    import jax

    with contextlib.suppress(RuntimeError):  # JAX has started
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", _DEVICES)
    if len(jax.devices()) < _DEVICES:
        raise CannotCheck(
            f"JAX has started with {len(jax.devices())} device here, and this needs {_DEVICES}: restart the kernel "
            "and run the cells from the top."
        )
    return jax.devices()[:_DEVICES]


def _step(weights: dict, x: Any, target: Any) -> tuple[dict, Any]:
    import jax
    import jax.numpy as jnp

    def loss_of(weights: dict) -> Any:
        out = jax.nn.relu(x @ weights["inner"]) @ weights["outer"]
        return jnp.mean((out - target) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


def _parts(make: Callable, name: str, reasons: dict[str, str]) -> Cases:
    """What the learner's step gives each device, with a reason for each, and what it computes."""
    import jax

    step = make(_step, _devices())
    returns(step, callable(step), name, "the jitted step, jax.jit(step, ...)")
    draw = np.random.default_rng(5).standard_normal
    weights = {key: draw(shape).astype(np.float32) / 4 for key, shape in _SHAPES.items()}
    example = weights, *(draw((_BATCH, _WIDTH)).astype(np.float32) for _ in range(2))
    jitted = step if hasattr(step, "lower") else jax.jit(step)
    compiled = jitted.lower(*example).compile()
    inputs, outputs = compiled.input_shardings[0], compiled.output_shardings
    yield f"Devices in the mesh, out of {_DEVICES}", len(jax.tree.leaves(inputs)[0].device_set)
    for key, shape in _SHAPES.items():
        label = f"What each device holds of {key}, which has the shape {shape}: {reasons[key]}"
        yield label, inputs[0][key].shard_shape(shape)
    for key, sharding in zip(("x", "target"), inputs[1:], strict=True):
        label = f"What each device gets of {key}, which has the shape {(_BATCH, _WIDTH)}: {reasons['batch']}"
        yield label, sharding.shard_shape((_BATCH, _WIDTH))
    for key, shape in _SHAPES.items():
        label = f"What each device holds of the new {key}: {reasons['new']}"
        yield label, outputs[0][key].shard_shape(shape)
    label = "The new weights and the loss should be what the step computes on one device"
    yield label, jax.tree.map(np.asarray, jitted(*example)), 1e-4


@todo(
    "11a",
    hints=(
        "The mesh takes an array of devices and a tuple of names, one for each axis of that array.",
        "A PartitionSpec names, axis by axis, along which mesh axis an array is split. An empty one splits nothing.",
        "in_shardings has one entry for each argument of step; one entry can stand for a whole dict.",
    ),
    why="The batch is split, the weights are on every device, and the compiler adds the all-reduce.",
)
def over_examples(data_parallel: Callable) -> Cases:
    """Each device holds all weights and its share of the batch."""
    whole = "each device should hold all weights"
    reasons = {
        "inner": whole,
        "outer": whole,
        "batch": "the first axis counts the examples, and each device should get its share of them",
        "new": "out_shardings should match in_shardings, so that the next step accepts the new weights",
    }
    yield from _parts(data_parallel, "data_parallel", reasons)
    return f"Each of {_DEVICES} devices holds all weights and {_BATCH // _DEVICES} of {_BATCH} examples."


@todo(
    "11b",
    hints=(
        "The columns of inner belong to the rows of outer: which axis of each has 4 * width entries?",
        "weights is a dict. Its entry in in_shardings is a dict as well, with the same keys.",
        "Each device sees the whole batch.",
    ),
    why="Each device computes some of the hidden units for all examples, and only their sum is exchanged.",
)
def over_weights(tensor_parallel: Callable) -> Cases:
    """Each device holds some hidden units: columns of inner, the same rows of outer."""
    reasons = {
        "inner": "all rows of some columns, as otherwise the devices exchange sums of [batch, 4 * width]",
        "outer": "the rows that belong to its columns of inner",
        "batch": "each device should see the whole batch",
        "new": "the new weights should be split like the old ones; out_shardings has an entry for them",
    }
    yield from _parts(tensor_parallel, "tensor_parallel", reasons)
    return f"Each of {_DEVICES} devices holds {4 * _WIDTH // _DEVICES} of {4 * _WIDTH} units."


@todo(
    "11c",
    hints=(
        "Data-parallel: each device computes something from its own examples, and all need the sum. What is it?",
        "Tensor-parallel: the product with outer is a sum over all hidden units. What shape does this product have?",
        "A float32 has four bytes.",
    ),
    why="Gradients have the shape of the weights; the sums of a split layer have the shape of its output.",
    slips=(
        Slip(
            "return 4 * weights, 4 * batch * width",
            "return weights, 4 * batch * width",
            "In the data-parallel case, count bytes, not numbers.",
        ),
        Slip(
            "return 4 * weights, 4 * batch * width",
            "return 4 * weights, batch * width",
            "In the tensor-parallel case, count bytes, not numbers.",
        ),
        Slip(
            "return 4 * weights, 4 * batch * width",
            "return weights, batch * width",
            "Count bytes, not numbers.",
        ),
        Slip(
            "weights = 2 * width",
            "weights = width",
            "The data-parallel step all-reduces the gradients of two matrices.",
        ),
        Slip(
            "return 4 * weights, 4 * batch * width",
            "return 4 * weights, 16 * batch * width",
            "The tensor-parallel step "
            "all-reduces the output; the hidden units stay on their devices.",
        ),
        Slip(
            "return 4 * weights, 4 * batch * width",
            "return 4 * weights, 8 * batch * width",
            "The tensor-parallel step "
            "needs no gradient for x, which is data: it all-reduces nothing in the backward pass.",
        ),
    ),
)
def by_hand(all_reduce_bytes: Callable) -> Cases:
    """Bytes that one device all-reduces in a step, both ways, for several sizes."""
    for batch, width in ((512, 1024), (4096, 1024), (64, 256)):
        sizes = all_reduce_bytes(batch, width)
        noun = "two numbers, (data-parallel, tensor-parallel)"
        returns(sizes, several(sizes, 2), "all_reduce_bytes", noun)
        for way, bytes_ in zip(("data-parallel", "tensor-parallel"), sizes, strict=True):
            label = f"Bytes that the {way} step all-reduces, for a batch of {batch} and a width of {width}"
            yield label, bytes_, 1e-4  # the loss itself may be counted
    return "The one step all-reduces gradients, the other activations. Now ask the compiler."


@todo(
    "11d",
    hints=(
        "How large is a piece, and how many of them does a device send in one round? How many rounds are there?",
        "All these bytes leave through two links, half of them through each.",
    ),
    why="Each device sends nearly twice the array, whatever the number of devices: a ring scales.",
    slips=(
        Slip(
            "return 2 * (devices",
            "return (devices",
            "There are two rounds: the sums have to travel to all devices as well.",
        ),
        Slip(
            "/ (2 * link)",
            "/ link",
            "A device sends in both directions at once, half of the bytes through each link.",
        ),
        Slip(
            "(devices - 1)",
            "devices",
            "A device keeps one piece to itself: it sends n - 1 pieces, and not n.",
        ),
        Slip(
            "piece = bytes_ / devices",
            "piece = bytes_",
            "A piece is one n-th of the array, and not all of it.",
        ),
        Slip("2 * (devices - 1) *", "2 *", "In each round a device sends n - 1 pieces."),
    ),
)
def ring(all_reduce_seconds: Callable) -> Cases:
    """Twice n - 1 pieces of an n-th, over two links."""
    for bytes_, devices, link in ((4000, 4, 100), (4000, 2, 100), (9e6, 9, 5e5), (7e8, 256, 9e10)):
        label = f"{bytes_:g} bytes, {devices} devices, {link:g} bytes/s per link"
        pieces = f"a device sends 2 x {devices - 1} pieces of {bytes_ / devices:g} bytes over two links, in seconds"
        yield f"{label}: {pieces}", all_reduce_seconds(bytes_, devices, link)
    label = "One device has nobody to send to, so 4000 bytes take 0 s"
    yield label, all_reduce_seconds(4000, 1, 100.0)
    return "A device sends two rounds of n - 1 pieces, so each link carries nearly the whole array."  # fmt: skip
