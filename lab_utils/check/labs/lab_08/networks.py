"""TODO 8b: a faster network of the learner's own."""

from collections.abc import Callable

import numpy as np

from lab_utils.check import sources
from lab_utils.check.labs import logits
from lab_utils.check.outcome import CannotCheck
from lab_utils.check.todos import todo
from lab_utils.check.tools import expect, returns, same
from lab_utils.estimator import tf, v1

SIDE = 152  # pixels
RATE = 400_000  # images/s of a v2-8 in float32, at least
FLOP = 0.1e9  # for each image and training step, at least


def _images() -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 1, [4, SIDE, SIDE, 3]).astype(np.float32)


@todo(
    "8b",
    hints=(
        "Begin with tf.nn.space_to_depth(images, 4): everything after it works on a sixteenth of the positions.",
        "Few filters where the positions are many, more of them after a pooling.",
        "If the bound is too low, look at what the message says of bytes and arithmetic; if the FLOP are too few, "
        "add filters late.",
    ),
    why="Positions cost more than filters: take them away first.",
)
def fast(inference_fast: Callable) -> str:
    """A bound that is high enough, of a network that does enough; asks the TPU compiler."""
    count = _weights(inference_fast, SIDE)
    with tf.Graph().as_default() as graph:
        result = _logits(inference_fast, SIDE)
        kernels = [v for v in v1.trainable_variables() if v.shape.rank == 4]
        used = [each is not None for each in tf.gradients(result, kernels)] if kernels else []
        message = (
            f"At least two convolutions; yours has {sum(used)} whose result the logits depend on."
        )
        expect(sum(used) >= 2, message)
        kinds = {v.dtype.base_dtype for v in v1.trainable_variables()}
        kinds |= {op.outputs[0].dtype for op in graph.get_operations() if op.type == "Conv2D"}
        expect(
            kinds == {tf.float32},
            "This rung is to be reached in float32, variables and convolutions: bfloat16 is the next one, and "
            "keeps variables in float32.",
        )
        _expect_all_positions(result)
    try:
        larger = _weights(inference_fast, 2 * SIDE)
    except Exception:  # made for one size of image
        larger = count
    expect(
        count == larger,
        f"It has {count:,} weights, and more where the images are larger: the head has a weight for each "
        "position. Pool over all positions, tf.reduce_mean(x, [1, 2]), before the dense layer.",
    )
    cost = _cost(inference_fast)
    rate, flop = cost["examples_per_second"].value * 8, cost["flops"].value / 128
    expect(
        flop >= FLOP,
        f"{rate:,.0f} images/s at most, but of {flop / 1e9:.3f} GFLOP an image: the network should do at "
        f"least {FLOP / 1e9}. More filters, where the positions are few.",
    )
    memory = cost["bytes"].value / cost["peak_bandwidth"].value
    arithmetic = cost["flops"].value / cost["peak_flops"].value
    bound = "HBM traffic" if memory > arithmetic else "FLOPs"
    expect(
        rate >= RATE,
        f"At most {rate:,.0f} images/s, bound by {bound} ({1e3 * memory:.1f} ms for "
        f"{cost['bytes'].value / 1e9:.2f} GB, {1e3 * arithmetic:.1f} ms for the arithmetic): fewer positions "
        "early on.",
    )
    return f"At most {rate:,.0f} images/s, with {flop / 1e9:.2f} GFLOP for each."


def _logits(inference: Callable, side: int) -> tf.Tensor:
    """The logits of a batch of four in the default graph, after a look at their kind."""
    result = inference(v1.placeholder(tf.float32, [4, side, side, 3], name="images"))
    returns(result, tf.Tensor, "inference_fast", "logits")
    same(result.shape, [4, 5], "The shape of the logits of 4 images and 5 kinds of flower")
    same(result.dtype, tf.float32, "The type of the logits")
    return result


def _weights(inference: Callable, side: int) -> int:
    with tf.Graph().as_default():
        _logits(inference, side)
        return sum(v.shape.num_elements() for v in v1.trainable_variables())


def _expect_all_positions(result: tf.Tensor) -> None:
    """Raises Wrong unless these are logits, and change with the pixels of each corner and of the middle."""
    logits.expect_bare(result)
    images, end = _images(), SIDE - 40
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        before = session.run(result, {"images:0": images})
        logits.expect_logits(before)
        for row, column in ((0, 0), (0, end), (end, 0), (end, end), (end // 2, end // 2)):
            changed = images.copy()
            changed[:, row : row + 40, column : column + 40] = images[::-1, :40, :40]
            expect(
                not np.allclose(before, session.run(result, {"images:0": changed}), atol=1e-7),
                "The logits do not depend on all positions of the images: part of them is cut off.",
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
