"""TODO 7d: convolutions in bfloat16, a pooled head, float32 logits."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.logits import expect_bare, expect_logits
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf, v1

CLASSES = 3
FILTERS = (32, 64, 128, 256)


def built(inference: Callable, size: int, bfloat16: bool) -> tuple[tf.Graph, dict]:
    """The training graph, and the shape and type of each variable by its name."""
    with tf.Graph().as_default() as graph:
        images = v1.placeholder(tf.float32, [4, size, size, 3])
        logits = inference(images, CLASSES, True, bfloat16)
        expect(
            isinstance(logits, tf.Tensor),
            f"inference should return a tensor of logits; yours returns {a(logits)}.",
        )
        expect(
            logits.shape.as_list() == [4, CLASSES],
            f"4 images of 3 classes should give logits [4, 3]; yours are {logits.shape}.",
        )
        expect(
            logits.dtype == tf.float32,
            f"With bfloat16={bfloat16} the logits leave as {logits.dtype.name}: cast them to float32, the "
            "loss needs more than 8 bits.",
        )
        variables = v1.global_variables()
        v1.add_to_collection("logits of the check", logits)
        kinds = {each.name: (each.shape.as_list(), each.dtype.base_dtype) for each in variables}
        return graph, kinds


def _logits_of(graph: tf.Graph) -> tf.Tensor:
    return graph.get_collection("logits of the check")[0]


def _momentum(inference: Callable) -> float:
    """The momentum of batch normalisation: from 0, two updates by one batch go 1 + momentum as far as one."""
    random = np.random.default_rng(4)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        images = tf.constant(random.uniform(-1, 1, [4, 32, 32, 3]), tf.float32)
        inference(images, CLASSES, True, False)
        average = next(each for each in v1.global_variables() if "moving_mean" in each.name)
        updates = graph.get_collection(v1.GraphKeys.UPDATE_OPS)
        session.run(v1.global_variables_initializer())
        moved = []
        for _ in range(2):
            session.run(updates)
            moved.append(np.abs(session.run(average)).sum())
    return moved[1] / moved[0] - 1


def answers(inference: Callable, batches: list[np.ndarray]) -> list[np.ndarray]:
    """Logits of an untrained model for each batch, not in training."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        images = v1.placeholder(tf.float32, [None, *batches[0].shape[1:]])
        logits = inference(images, CLASSES, False, False)
        session.run(v1.global_variables_initializer())
        return [session.run(logits, {images: each}) for each in batches]


@todo(
    "7d",
    hints=(
        'Does bfloat16_scope do anything to float32 input? So where is the cast, and on what does it depend?',
        'One stage is convolution, normalisation, relu; pooling stands between stages. Which argument do two modes differ in?',
        'Which axes are positions? And which type should leave the function?',
    ),
    why='Activations in bfloat16 halve the bytes; variables and logits keep the digits that they need.',
)
def convolutions(inference: Callable) -> str:
    """bfloat16 in the convolutions, float32 in variables and logits, no weight for a position."""
    for bfloat16 in (False, True):
        graph, variables = built(inference, 64, bfloat16)
        operations = graph.get_operations()
        convolutions = [each for each in operations if each.type == "Conv2D"]
        kernels = [
            shape for name, (shape, _) in variables.items() if len(shape) == 4 and "moving" not in name
        ]
        wanted = [[3, 3, *pair] for pair in zip((48, *FILTERS), FILTERS, strict=False)]
        expect(
            kernels == wanted,
            "The stack should be four convolutions of 3 by 3, with 32, 64, 128 and 256 filters, on the 48 "
            f"channels of space_to_depth: kernels {wanted}. Yours: {kernels}.",
        )
        kinds = {each.outputs[0].dtype for each in convolutions}
        expect(
            kinds == {tf.bfloat16 if bfloat16 else tf.float32},
            f"With bfloat16={bfloat16} the convolutions compute in {' and '.join(k.name for k in kinds)}.",
        )
        stored = [name for name, (_, kind) in variables.items() if kind != tf.float32]
        expect(
            not stored,
            f"These variables are bfloat16: {', '.join(stored[:3])}. Small updates would be lost in 8 bits. "
            "Layers within v1.tpu.bfloat16_scope() keep their variables in float32.",
        )
    _, larger = built(inference, 128, False)
    grown = [name for name in variables if larger.get(name) != variables[name]]
    expect(
        not grown,
        f"{', '.join(grown[:2])} grows with the picture: a weight for each position. Take the mean over "
        "positions, tf.reduce_mean(net, [1, 2]), before the dense layer.",
    )
    types = [each.type for each in operations]
    bent = sum(each in ("Relu", "Maximum") for each in types)
    expect(
        bent >= len(FILTERS),
        f"tf.nn.relu should follow each of the four convolutions; there are {bent} of them.",
    )
    pools = types.count("MaxPool")
    expect(
        pools == len(FILTERS) - 1,
        f"A max_pooling2d(net, 2, 2) between two convolutions makes three of them; yours has {pools}.",
    )
    expect(
        "Max" not in types,
        "The head takes the maximum over the positions: take the mean, tf.reduce_mean(net, [1, 2]).",
    )
    expect(
        "Sum" not in types or {"Mean", "AvgPool", "RealDiv", "Mul"} & set(types),
        "The head takes the sum over the positions: take the mean, tf.reduce_mean(net, [1, 2]).",
    )
    dense = [shape for shape, _ in variables.values() if len(shape) == 2]
    expect(
        dense == [[FILTERS[-1], CLASSES]],
        f"The head should be one dense layer, from 256 numbers to the classes; yours has weights {dense}.",
    )
    averages = [name for name in variables if "moving_mean" in name]
    expect(
        len(averages) == len(FILTERS),
        f"Batch normalisation belongs to each of the four convolutions; there are {len(averages)}.",
    )
    expect_bare(_logits_of(graph))
    expect(
        bool(graph.get_collection(v1.GraphKeys.UPDATE_OPS))
        or not any("moving" in name for name in variables),
        "With training=True batch normalisation makes no updates of its moving averages (UPDATE_OPS stays "
        "empty): pass training on to it.",
    )
    momentum = _momentum(inference)
    expect(
        abs(momentum - 0.97) < 4e-3,
        f"The momentum of the moving averages should be 0.97; yours is {momentum:.3g}.",
    )
    probe = np.random.default_rng(3).uniform(-1, 1, [4, 64, 64, 3]).astype(np.float32)
    other = np.concatenate([probe[:1], -probe[1:]])
    one, two = answers(inference, [probe, other])
    expect_logits(one)
    expect(
        np.allclose(one[0], two[0], rtol=1e-3, atol=1e-5),
        "With training=False a picture's logits depend on the others of its batch: pass training on to "
        "batch_normalization.",
    )
    return "bfloat16 inside, float32 weights and logits, and no weight for a position."
