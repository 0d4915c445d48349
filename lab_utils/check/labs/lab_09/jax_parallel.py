"""JAX by hand: TODO 9g, a step split over examples, 9h, over weights, 9i, the bytes that each exchanges, and 9j, how long."""

import contextlib
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from lab_utils.check.outcome import CannotCheck, Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

DEVICES, WIDTH, BATCH = 8, 16, 32
FULL = {"inner": (WIDTH, 4 * WIDTH), "outer": (4 * WIDTH, WIDTH)}


def _devices() -> list[Any]:
    """Eight virtual devices. Raises CannotCheck where JAX has started with fewer."""
    import jax

    with contextlib.suppress(RuntimeError):  # JAX has started
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", DEVICES)
    if len(jax.devices()) < DEVICES:
        raise CannotCheck(
            f"JAX has started with {len(jax.devices())} device here, and this needs {DEVICES}: restart the "
            "kernel and run the cells from the top."
        )
    return jax.devices()[:DEVICES]


def _step(weights: dict, x: Any, target: Any) -> tuple[dict, Any]:
    import jax
    import jax.numpy as jnp

    def loss_of(weights: dict) -> Any:
        out = jax.nn.relu(x @ weights["inner"]) @ weights["outer"]
        return jnp.mean((out - target) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss


def _example() -> tuple[dict, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5).standard_normal
    weights = {name: draw(shape).astype(np.float32) / 4 for name, shape in FULL.items()}
    x, target = (draw((BATCH, WIDTH)).astype(np.float32) for _ in range(2))
    return weights, x, target


class _Split:
    """What the learner's step gives each device, and what it computes."""

    def __init__(self, make: Callable, name: str) -> None:
        import jax

        step = make(_step, _devices())
        expect(
            callable(step),
            f"{name} should return the jitted step, jax.jit(step, ...); yours returns {a(step)}.",
        )
        jitted = step if hasattr(step, "lower") else jax.jit(step)
        example = _example()
        compiled = jitted.lower(*example).compile()
        inputs, outputs = compiled.input_shardings[0], compiled.output_shardings
        self.devices = len(jax.tree.leaves(inputs)[0].device_set)
        self.weights = {n: inputs[0][n].shard_shape(shape) for n, shape in FULL.items()}
        self.batch = [each.shard_shape((BATCH, WIDTH)) for each in inputs[1:]]
        self.updated = {n: outputs[0][n].shard_shape(shape) for n, shape in FULL.items()}
        found, right = jitted(*example), jax.jit(_step)(*example)
        self.apart = max(
            float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())
            for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(right), strict=True)
        )

    def expect_devices_and_values(self) -> None:
        expect(
            self.devices == DEVICES,
            f"{DEVICES} devices were given, and your mesh has {self.devices}: make it of all of them.",
        )
        expect(
            self.apart < 1e-4,
            f"The step computes something else than on one device: the results differ by {self.apart:.2g}.",
        )


@todo(
    "9g",
    hints=(
        "The mesh takes an array of devices and a tuple of names, one for each axis of that array.",
        "A PartitionSpec names, axis by axis, along which mesh axis an array is split. An empty one splits nothing.",
        "in_shardings has one entry for each argument of step; one entry stands for a whole dict.",
    ),
    why="The batch is split, the weights are on every device, and the compiler adds the all-reduce.",
)
def over_examples(data_parallel: Callable) -> str:
    """Each device holds all weights and its share of the batch."""
    split = _Split(data_parallel, "data_parallel")
    expect(
        split.weights == FULL,
        f"Each device should hold all weights. In yours it holds {split.weights['inner']} of {FULL['inner']} "
        f"and {split.weights['outer']} of {FULL['outer']}.",
    )
    share = (BATCH // split.devices, WIDTH)
    for what, shape in zip(("x", "target"), split.batch, strict=True):
        expect(
            shape != (BATCH, WIDTH),
            f"Each device gets all {BATCH} examples of {what}: split its first axis along the mesh.",
        )
        expect(
            shape == share,
            f"Each device should get {share} of {what}, whose shape is {(BATCH, WIDTH)}; in yours it gets "
            f"{shape}. The first axis counts the examples.",
        )
    expect(
        split.updated == FULL,
        "The new weights come out split: with out_shardings as for the weights that go in, the next step can "
        "take them.",
    )
    split.expect_devices_and_values()
    return f"{DEVICES} devices, {share[0]} of {BATCH} examples each, all weights on each: the same step."


@todo(
    "9h",
    hints=(
        "The columns of inner belong to the rows of outer: which axis of each has 4 * width entries?",
        "weights is a dict. Its entry in in_shardings is a dict as well, with the same keys.",
        "Each device sees the whole batch.",
    ),
    why="Each device computes some of the hidden units for all examples, and only their sum is exchanged.",
)
def over_weights(tensor_parallel: Callable) -> str:
    """Each device holds some hidden units: columns of inner, the same rows of outer."""
    split = _Split(tensor_parallel, "tensor_parallel")
    expect(
        split.weights != FULL,
        "Each device holds all weights: split inner and outer, so that each device has its part.",
    )
    inner = (WIDTH, 4 * WIDTH // split.devices)
    outer = (4 * WIDTH // split.devices, WIDTH)
    expect(
        split.weights["inner"] == inner,
        f"inner has the shape {FULL['inner']}. A device should hold {inner}, all rows of some columns; in "
        f"yours it holds {split.weights['inner']}. Otherwise sums of [batch, 4 * width] are exchanged.",
    )
    expect(
        split.weights["outer"] == outer,
        f"outer has the shape {FULL['outer']}. A device should hold {outer}, the rows that belong to its "
        f"columns of inner; in yours it holds {split.weights['outer']}.",
    )
    expect(
        all(shape == (BATCH, WIDTH) for shape in split.batch),
        f"Each device should see the whole batch, {(BATCH, WIDTH)}; in yours it gets {split.batch[0]} of x "
        f"and {split.batch[1]} of target.",
    )
    expect(
        split.updated == split.weights,
        "The new weights should come out split as they go in: out_shardings has an entry for them.",
    )
    split.expect_devices_and_values()
    return f"{DEVICES} devices, {inner[1]} of {4 * WIDTH} hidden units each: the same step."


@todo(
    "9i",
    hints=(
        "Data-parallel: what has each device computed from its own examples that all devices need the sum of?",
        "Tensor-parallel: x @ inner needs no exchange. What shape has the product with outer, a sum over all units?",
        "A float32 has four bytes.",
    ),
    why="Gradients have the shape of the weights; the sums of a split layer have the shape of its output.",
)
def by_hand(all_reduce_bytes: Callable) -> str:
    """Bytes that one device all-reduces in a step, both ways, for several sizes."""
    for batch, width in ((512, 1024), (4096, 1024), (64, 256)):
        found = all_reduce_bytes(batch, width)
        expect(
            isinstance(found, tuple | list) and len(found) == 2,
            f"Return two numbers, (data-parallel, tensor-parallel); yours returns {a(found)}.",
        )
        right = 8 * width * width * 4, batch * width * 4
        reasons = (
            {1 / 4: "count bytes, not numbers", 1 / 2: "there are two matrices"},
            {
                1 / 4: "count bytes, not numbers",
                4: "the hidden units stay where they are; the output is summed",
                2: "x is data, so nothing is exchanged on the way back",
            },
        )
        for which, own, true, why in zip(
            ("data-parallel", "tensor-parallel"), found, right, reasons, strict=True
        ):
            if math.isclose(own, true, abs_tol=8):  # the loss itself may be counted
                continue
            told = next((text for ratio, text in why.items() if math.isclose(own / true, ratio)), "")
            raise Wrong(
                f"For a batch of {batch} and a width of {width}, {which}, {true:,} bytes are all-reduced; "
                f"yours says {own:,.0f}.{f' Hint: {told}.' if told else ''}"
            )
    return "Gradients in one case, activations in the other. Now ask the compiler."


@todo(
    "9j",
    hints=(
        "How large is a piece, and how many of them does a device send in one round? How many rounds are there?",
        "All these bytes leave through two links, half of them through each.",
    ),
    why="Each device sends nearly twice the array, whatever the number of devices: a ring scales.",
)
def ring(all_reduce_seconds: Callable) -> str:
    """Twice n - 1 pieces of an n-th, over two links."""
    for bytes_, devices, link in ((4000, 4, 100.0), (4000, 2, 100.0), (9e6, 9, 5e5), (4000, 1, 100.0), (7e8, 256, 9e10)):
        found = all_reduce_seconds(bytes_, devices, link)
        expect(
            isinstance(found, Real) and not isinstance(found, bool),
            f"all_reduce_seconds should return seconds, a number; yours returns {a(found)}.",
        )
        right = (devices - 1) / devices * bytes_ / link
        told = f"{bytes_:g} bytes, {devices} devices, {link:g} bytes/s a link"
        if devices == 1:
            expect(found == 0, f"{told}: one device has nobody to send to, 0 s; yours gives {found:g} s.")
            continue
        for ratio, why in (
            (0.5, "there are two rounds: the sums have to travel to all devices as well"),
            (2, "a device sends in both directions at once, half of the bytes through each link"),
            (devices / (devices - 1), "a device keeps one piece to itself: it sends n - 1 pieces, and not n"),
            (devices, "a piece is one n-th of the array, and not all of it"),
            (1 / (devices - 1), "in each round a device sends n - 1 pieces"),
        ):
            expect(
                not math.isclose(found, ratio * right, rel_tol=1e-6) or math.isclose(ratio, 1),
                f"{told}: yours gives {found:.4g} s, {ratio:.3g} times the right one. Perhaps {why}.",
            )
        expect(
            math.isclose(found, right, rel_tol=1e-6),
            f"{told}: a device sends 2 x {devices - 1} pieces of {bytes_ / devices:g} bytes over two links, which takes "
            f"{right:.4g} s; yours gives {found:.4g} s.",
        )
    return "Two rounds of n - 1 pieces, in both directions: nearly the whole array through each link."
