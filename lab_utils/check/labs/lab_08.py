"""The checks of lab 08: padding by hand, a faster network, bfloat16, what would help, and a TPU's rounding."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check import sources
from lab_utils.check.labs import logits
from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.outcome import CannotCheck
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import expect, returns, same
from lab_utils.estimator import tf, v1

SIDE = 152  # pixels
RATE = 150_000  # images/s of a v2-8 in float32 as the compiler estimates it, at least
FLOP = 0.1e9  # for each image and training step, at least


@todo(
    "8a",
    hints=(
        "order[0] is the number of an axis: which entry of shape belongs to that axis?",
        "What is the smallest multiple of 128 that is at least n? Only two axes are padded.",
        "The result is the number of stored elements times the bytes of each.",
    ),
    why="Only the two innermost axes are padded to tiles; the compiler's order says which axes these are.",
    slips=(
        Slip("item * ", "", "That is the number of elements: multiply it by `item` to get bytes."),
        Slip("prod(padded)", "prod(shape)", "That is the size of the array without padding."),
        Slip(
            "padded[order[1]] / 8) * 8",
            "padded[order[1]])",
            "Your function pads only the innermost axis, but the next one, "
            "order[1], is padded to a multiple of 8.",
        ),
        Slip(
            "padded = list(shape)",
            "padded = list(shape); order = (*order[1::-1], *order[2:])",
            "8 and 128 are swapped: "
            "order[0] is padded to a multiple of 128, and order[1] to a multiple of 8.",
        ),
        Slip(
            "padded = list(shape)",
            "padded = list(shape); order = order[::-1]",
            "The innermost axis is order[0], and "
            "order[1] is next to it, but your function reads `order` from its end.",
        ),
        Slip(
            "padded = list(shape)",
            "padded = list(shape); order = (-1, -2)",
            "Your function pads the last two axes of the shape instead of those that `order` names.",
        ),
        Slip(
            "padded = list(shape)",
            "padded = list(shape); order = (order.index(0), order.index(1))",
            "order[0] is the "
            "number of the innermost axis, but your function looks for axis 0 in `order`.",
        ),
        Slip(
            "math.ceil(padded[order[0]] / 128)",
            "(padded[order[0]] // 128 + 1)",
            "An array [16, 256] already fills its tiles and needs no padding, but your function adds some.",
        ),
    ),
)
def padding(stored_bytes: Callable) -> Cases:
    """Two axes filled up, in the order given."""
    for shape, order, item, layout in (
        ((100, 1024), (1, 0), 4, "104 x 1024"),
        ((16, 256), (1, 0), 4, "16 x 256, without padding"),
        ((100, 1024), (0, 1), 4, "128 x 1024"),
        ((32, 9, 9, 10), (0, 3, 2, 1), 2, "128 x 9 x 9 x 16"),
        ((9, 100, 20), (1, 2, 0), 4, "9 x 128 x 24"),
        ((20, 20), (0, 1), 4, "128 x 24 (use an axis's number, not its size)"),
    ):
        label = f"The bytes of {list(shape)}, {item} per element, which order {order} stores as {layout}"
        yield label, stored_bytes(shape, order, item)
    return "Your function pads the right axes: the innermost to a multiple of 128, and the next one to a multiple of 8."


@todo(
    "8b",
    hints=(
        "Begin with tf.nn.space_to_depth(images, 4): everything after it works on a sixteenth of the positions.",
        "Use few filters where there are many positions, and more filters after a pooling layer.",
        "If it is too slow, look at the most expensive lines of judged(inference_fast, SIDE). If it has too few FLOPs, "
        "add filters in late layers.",
    ),
    why="Positions cost more than filters, so reduce the number of positions first.",
)
def fast(inference_fast: Callable) -> str:
    """An estimated time that is short enough, of a network that does enough; asks the TPU compiler."""
    with tf.Graph().as_default() as graph:
        result = _logits(inference_fast, SIDE)
        count = _weights()
        kernels = [v for v in v1.trainable_variables() if v.shape.rank == 4]
        reach = [grad is not None for grad in tf.gradients(result, kernels)] if kernels else []
        expect(
            sum(reach) >= 2,
            f"At least two convolutions should affect the logits; yours has {sum(reach)}.",
        )
        kinds = {v.dtype.base_dtype for v in v1.trainable_variables()}
        kinds |= {op.outputs[0].dtype for op in graph.get_operations() if op.type == "Conv2D"}
        expect(
            kinds == {tf.float32},
            "Here, variables and convolutions should be float32: the next section changes to bfloat16, and even there, "
            "variables stay float32.",
        )
        _expect_all_positions(result)
    try:
        with tf.Graph().as_default():
            _logits(inference_fast, 2 * SIDE)
            larger = _weights()
    except Exception:  # made for one size of image
        larger = count
    expect(
        count == larger,
        f"The head of your network has a weight for each position: there are {count:,} weights, and more for larger images. Pool over "
        "all positions, tf.reduce_mean(x, [1, 2]), before the dense layer.",
    )
    cost = _cost(inference_fast)
    rate, flop = cost["estimated_rate"].value * 8, cost["flops"].value / 128
    expect(
        flop >= FLOP,
        f"Your network trains about {rate:,.0f} images/s, but an image takes {flop / 1e9:.3f} GFLOP and should take at least "
        f"{FLOP / 1e9}. Add filters where there are few positions.",
    )
    expect(
        rate >= RATE,
        f"About {rate:,.0f} images/s are too few: the compiler estimates {1e3 * cost['estimated_seconds'].value:.1f} ms "
        f"for a step, which takes at least {1e3 * cost['step_seconds'].value:.1f} ms for {cost['bytes'].value / 1e9:.2f} GB "
        f"and {cost['flops'].value / 1e9:.0f} GFLOP. Reduce the positions earlier.",
    )
    return f"The compiler estimates about {rate:,.0f} images/s, with {flop / 1e9:.2f} GFLOP for each image."


def _logits(inference: Callable, side: int) -> tf.Tensor:
    """The logits of a batch of four in the default graph, after a look at their kind."""
    result = inference(v1.placeholder(tf.float32, [4, side, side, 3], name="images"))
    returns(result, tf.Tensor, "inference_fast", "logits")
    same(result.shape, [4, 5], "The shape of the logits of 4 images and 5 kinds of flower")
    same(result.dtype, tf.float32, "The type of the logits")
    return result


def _weights() -> int:
    """How many trained weights the default graph has."""
    return sum(v.shape.num_elements() for v in v1.trainable_variables())


def _expect_all_positions(result: tf.Tensor) -> None:
    """Raises Wrong unless these are logits, and change with the pixels of each corner and of the middle."""
    logits.expect_bare(result)
    images = np.random.default_rng(0).uniform(0, 1, [4, SIDE, SIDE, 3]).astype(np.float32)
    end = SIDE - 40
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        before = session.run(result, {"images:0": images})
        logits.expect_logits(before)
        for row, column in ((0, 0), (0, end), (end, 0), (end, end), (end // 2, end // 2)):
            others = images.copy()
            others[:, row : row + 40, column : column + 40] = images[::-1, :40, :40]
            expect(
                not np.allclose(before, session.run(result, {"images:0": others}), atol=1e-7),
                "The logits do not depend on all positions of the images: a part of each image is cut off.",
            )


def _cost(inference: Callable) -> dict:
    """What the compiler says of the training step, 128 images a core of a v2-8."""
    from lab_utils.dry_run import dry_run

    port = sources.solved(8).port_of(inference, SIDE, 128, 8)
    report = dry_run(*port, "v2:2x2", stages=["compile"], progress=False)
    if not report.cost:
        stage = next(stage for stage in report.stages if stage.stage == "compile")
        expect(stage.status != "failed", f"The step cannot be compiled: {stage.detail}")
        errors = [f.why for f in report.findings]
        expect(not errors, " ".join(errors))
        raise CannotCheck(stage.detail)
    return report.cost


_OTHER_TYPES = "Which type do the images have when the first layer is built, and is the scope still open at that point?"


@todo(
    "8c",
    hints=(
        "For each version: which type does the first layer's input have, and is the layer built in the scope?",
        "The loss has the type of the logits that the function returns.",
    ),
    why="The layers need bfloat16 input, the scope must contain all layers, and the logits must become float32.",
)
def bfloat16(bfloat16_diagnosis: Any) -> str:
    """Five versions, two of them with the same fault."""
    right = {
        "one": ("A", "The scope does not cast anything: which type do the layers get?"),
        "two": ("B", "There is no scope. Which type do the layers give their variables?"),
        "three": ("C", "The scope and the cast of its input are right. Which type does the result have?"),
        "four": ("D", "Follow the types of the first layer's input, of the variables and of the result."),
        "five": ("B", _OTHER_TYPES),
    }  # fmt: skip
    against = {
        "five A": f"The layers still get bfloat16. {_OTHER_TYPES}",
        "five D": f"The scope ends before the network is built. {_OTHER_TYPES}",
    }
    expect_decisions(bfloat16_diagnosis, right, "ABCD", against)
    return "Only version four has bfloat16 between its layers, and float32 variables and logits."


@todo(
    "8d",
    hints=(
        "Which of the three times is the largest, and is it near another one?",
        "If the time for arithmetic or for memory is close to the estimate, which change reduces that time for each image?",
        "Where do the bytes come from: padding, weights with their gradients, or activations?",
    ),
    why="A change helps only if it reduces what takes the time, and the estimate says whether that is arithmetic, "
    "memory, or neither.",
)
def next_change(next_change: Any) -> str:
    """Four steps; the factors are those of estimated images/s on a v2-8 (tests/benchmarks/lab_08.py, 2026-11-27)."""
    right = {
        1: ("A", "The layers compute in bfloat16, and the head is pooled. What does the compiler do to a batch of 16?"),
        2: ("C", "Memory is near the estimate. Which bytes are these: pictures, activations, or weights?"),
        3: ("D", "Which of the two is near the estimate, arithmetic or memory?"),
        4: ("E", "Compare both parts with the estimate. Does the step wait for the larger one?"),
    }  # fmt: skip
    against = {
        "1 E": "The estimate is far above both times, but one of the changes still helps. What does the compiler do to a "
        "batch of 16?",
        "2 A": "That multiplies the images/s by 2.3, since a step reads the weights only once. A different change "
        "multiplies them by 17.",
        "2 B": "That changes nothing: most bytes belong to weights, which stay float32.",
        "2 D": "Memory takes four times as long as the arithmetic.",
        "2 E": "Memory takes three quarters of the estimate, so most of the time goes there.",
        "3 A": "That multiplies the images/s by only 1.01: four times the pictures need four times the FLOPs.",
        "3 E": "Arithmetic takes seven eighths of the estimate, so it is the limit.",
        "4 A": "That multiplies the images/s by only 1.01: from 128 images on nothing is padded, and there are few "
        "weights.",
        "4 B": "That moves a third fewer bytes, so the bound falls. But the estimate, which is four times as long as "
        "the bound, stays the same.",
        "4 D": "Arithmetic takes a fifth of the estimate, and memory no more than a quarter.",
    }
    expect_decisions(next_change, right, "ABCDE", against)
    return (
        "The changes multiply the estimated images/s by 2.9 in step 1 and by 17 in step 2. In step 3, arithmetic takes "
        "most of the time. In step 4, neither arithmetic nor memory does: with 32 filters most of the matrix unit is "
        "idle, so fewer positions with more filters would help. In the v6e's column, the answer to step 3 would be E, "
        "because arithmetic takes less than half of the estimate there."
    )


_APART = 0.05  # of the first loss with a TPU's matmuls, from the one in float32
_FAR = 0.01  # of a squared distance: float32 has about 0.1 % left where 160,000 is subtracted


@todo(
    "8e",
    hints=(
        "Which numbers are small: the points, the centres, or their differences?",
        "What shape has points[:, None] - centres, and over which axis do you add its squares?",
    ),
    why="The difference is small before anything is rounded, and a sum outside of a matmul is computed in float32.",
)
def squared(squared_distances: Callable) -> str:
    """The distances of float32, and a first loss that a TPU's matmuls leave as it is."""
    rng = np.random.default_rng(1)
    points, centres = (rng.uniform(100, 102, [n, 16]).astype(np.float32) for n in (6, 4))
    found = squared_distances(tf.constant(points), tf.constant(centres))
    returns(found, tf.Tensor, "squared_distances", "distances")
    same(found.shape, [6, 4], "The shape for 6 points and 4 centres")
    same(found.dtype, tf.float32, "The type of the distances")
    wanted = ((points[:, None].astype(np.float64) - centres) ** 2).sum(2)
    rooted = np.allclose(found, np.sqrt(wanted), rtol=_FAR)
    expect(not rooted, "These are distances: leave the root out, since the model takes squares.")
    expect(
        np.allclose(found, wanted, rtol=_FAR),
        f"On a CPU, the squared distance from point 0 to centre 0 should be {wanted[0, 0]:.3f}; yours is "
        f"{float(found[0, 0]):.3f}.",
    )
    lab = sources.solved(8)
    numerics = lab.rounded(lab.nearest(squared_distances), lab.sgd, steps=2).numerics
    if numerics is None:
        raise CannotCheck("The steps could not be run with a TPU's rounding.")
    exact, on_tpu = numerics.losses[0], numerics.tpu_losses[0]
    expect(
        abs(on_tpu - exact) <= _APART * abs(exact),
        f"With a TPU's matmuls the first loss is {on_tpu:.4g}, but {exact:.4g} in float32. There is still a matmul of "
        "large numbers: subtract before you multiply.",
    )
    return f"The first loss is {exact:.4g} in float32 and {on_tpu:.4g} with a TPU's matmuls."
