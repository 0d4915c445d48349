"""A faster network: TODO 8c, the pooled head, 8d, the learner's own, and 8e, bfloat16."""

from collections.abc import Callable

import numpy as np

from lab_utils.check import todos
from lab_utils.check.outcome import CannotCheck
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf, v1

SIDE = 152  # pixels
RATE = 400_000  # images/s of a v2-8 in float32, at least
FLOP = 0.1e9  # for each image and training step, at least


def _logits(inference: Callable, side: int = SIDE) -> tf.Tensor:
    """The logits of a batch of four in the default graph, after a look at their kind."""
    images = v1.placeholder(tf.float32, [4, side, side, 3], name="images")
    logits = inference(images)
    name = getattr(inference, "__name__", "the function")
    expect(
        isinstance(logits, tf.Tensor), f"{name} should return logits; yours returns {a(logits)}."
    )
    expect(
        logits.shape.as_list() == [4, 5],
        f"Logits of 4 images and 5 kinds of flower have shape [4, 5]; yours {logits.shape}.",
    )
    expect(
        logits.dtype == tf.float32,
        f"The loss wants float32 logits; yours are {logits.dtype.name}: cast them at the end.",
    )
    return logits


def _weights() -> int:
    return sum(v.shape.num_elements() for v in v1.trainable_variables())


def _looks_everywhere(logits: tf.Tensor) -> bool:
    """Whether the logits change with the pixels of each corner and of the middle."""
    random = np.random.default_rng(0)
    images = random.uniform(0, 1, logits.graph.get_tensor_by_name("images:0").shape)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        before = session.run(logits, {"images:0": images})
        end = images.shape[1] - 40
        for row, column in ((0, 0), (0, end), (end, 0), (end, end), (end // 2, end // 2)):
            changed = images.copy()
            changed[:, row : row + 40, column : column + 40] = random.uniform(0, 1, (4, 40, 40, 3))
            if np.allclose(before, session.run(logits, {"images:0": changed}), atol=1e-7):
                return False
    return True


@todo(
    "8c",
    hints=(
        "x is [B, height, width, 20]: which axes are positions?",
        "x = tf.reduce_mean(x, [1, 2]), then the two dense layers of inference_old.",
    ),
)
def pooled(inference_pooled: Callable) -> str:
    """A mean over positions in place of a weight for each."""
    with tf.Graph().as_default():
        logits = _logits(inference_pooled)
        shapes = [v.shape.as_list() for v in v1.trainable_variables()]
        expect(
            [5, 5, 3, 10] in shapes and [5, 5, 10, 20] in shapes,
            "One thing at a time: the two convolutions should stay as they are.",
        )
        expect(
            _weights() < 50_000,
            f"There are still {_weights():,} weights: one for each position and filter. Pool before the "
            "first dense layer.",
        )
        expect(
            any(shape[-1] == 300 for shape in shapes),
            "One thing at a time: the dense layer of 300 should stay, after the pooling.",
        )
        expect(
            [20, 300] in shapes,
            "The dense layer of 300 should get the 20 numbers of each image, one for each filter.",
        )
        expect(
            _looks_everywhere(logits),
            "The logits do not depend on all positions: pool over height and width.",
        )
        weights = _weights()
    return f"{weights:,} weights, where each position had its own."


@todo(
    "8d",
    hints=(
        "Begin with tf.nn.space_to_depth(images, 4): [B, 38, 38, 48]. Then 3 by 3 convolutions.",
        "32 filters at 38 by 38 are enough for a start; after a max_pooling2d(x, 2, 2) take 128.",
        "conv2d 32, max_pooling2d, conv2d 128, tf.reduce_mean(x, [1, 2]), dense 5.",
    ),
)
def fast(inference_fast: Callable) -> str:
    """A bound that is high enough, of a network that does enough; asks the TPU compiler."""
    with tf.Graph().as_default() as graph:
        logits = _logits(inference_fast)
        convolutions = sum("Conv" in op.type for op in graph.get_operations())
        expect(convolutions >= 2, f"At least two convolutions; yours has {convolutions}.")
        expect(
            _weights() < 3_000_000,
            f"It has {_weights():,} weights, to be read, updated and summed in each step: pool before a "
            "dense layer.",
        )
        expect(
            _looks_everywhere(logits),
            "The logits do not depend on all positions of the images: part of them is cut off.",
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
    bound = "memory traffic" if memory > arithmetic else "arithmetic"
    expect(
        rate >= RATE,
        f"At most {rate:,.0f} images/s, bound by {bound} ({1e3 * memory:.1f} ms for "
        f"{cost['bytes'].value / 1e9:.2f} GB, {1e3 * arithmetic:.1f} ms for the arithmetic): fewer positions "
        "early on.",
    )
    return f"At most {rate:,.0f} images/s, with {flop / 1e9:.2f} GFLOP for each."


def _cost(inference: Callable) -> dict:
    """What the compiler says of the training step, 128 images a core of a v2-8."""
    from lab_utils.dry_run import dry_run

    port = todos.solved(8).port_of(inference, SIDE, 128, 8)
    report = dry_run(*port, "v2:2x2", stages=["compile"], progress=False)
    if not report.cost:
        stage = next(stage for stage in report.stages if stage.stage == "compile")
        expect(stage.status != "failed", f"The step cannot be compiled: {stage.detail}")
        errors = [f.why for f in report.findings]
        expect(not errors, " ".join(errors))
        raise CannotCheck(stage.detail)
    return report.cost


@todo(
    "8e",
    hints=(
        "Three steps: cast the images, call inference under the scope, cast its logits.",
        "with v1.tpu.bfloat16_scope(): logits = inference(tf.cast(images, tf.bfloat16))",
    ),
)
def bfloat16(in_bfloat16: Callable) -> str:
    """bfloat16 between the layers, float32 variables and logits."""
    seen = []

    def probe(images):
        seen.append(images.dtype)
        x = v1.layers.conv2d(images, 16, 3, strides=4, name="convolution")
        seen.append(x.dtype)
        return v1.layers.dense(tf.reduce_mean(x, [1, 2]), 5, name="head")

    with tf.Graph().as_default():
        narrow = in_bfloat16(probe)
        expect(
            callable(narrow),
            f"in_bfloat16 should return a function of the images; yours returns {a(narrow)}.",
        )
        images = v1.placeholder(tf.float32, [4, SIDE, SIDE, 3])
        logits = narrow(images)
        expect(bool(seen), "Your function never calls `inference`.")
        expect(
            isinstance(logits, tf.Tensor), f"It should return logits; yours returns {a(logits)}."
        )
        kinds = {v.dtype.base_dtype for v in v1.trainable_variables()}
        expect(
            set(seen) == {tf.bfloat16},
            f"The layers should calculate in bfloat16; they get {seen[0].name} and give {seen[1].name}.",
        )
        expect(
            kinds == {tf.float32},
            "The variables are bfloat16: small updates to them would be lost. Build the layers under "
            "v1.tpu.bfloat16_scope().",
        )
        expect(
            logits.dtype == tf.float32,
            f"The logits are {logits.dtype.name}, and the loss wants float32: cast them.",
        )
    return "bfloat16 between the layers; variables and logits stay float32."
