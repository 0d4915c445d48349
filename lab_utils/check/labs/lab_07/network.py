"""The network and its training: TODO 7d, inference, and 7e, the training step of model_fn."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.logits import expect_bare, expect_logits
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, returns, scope_of, translated, with_names
from lab_utils.estimator import tf, tpu, v1

_CLASSES = 3


def _built(
    inference: Callable, size: int, bfloat16: bool
) -> tuple[tf.Graph, tf.Tensor, dict[str, tuple]]:
    """The training graph, its logits, and the shape and type of each variable by its name."""
    with tf.Graph().as_default() as graph:
        images = v1.placeholder(tf.float32, [4, size, size, 3])
        logits = inference(images, _CLASSES, True, bfloat16)
        returns(logits, tf.Tensor, "inference", "a tensor of logits")
        kinds = {
            each.name: (each.shape.as_list(), each.dtype.base_dtype.name)
            for each in v1.global_variables()
        }
        return graph, logits, kinds


def _momentum(inference: Callable) -> float:
    """From 0, two updates of a moving average by one batch go 1 + momentum as far as one; -1 without updates."""
    random = np.random.default_rng(4)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        inference(
            tf.constant(random.uniform(-1, 1, [4, 32, 32, 3]), tf.float32), _CLASSES, True, False
        )
        average = [each for each in v1.global_variables() if "moving_mean" in each.name][0]
        updates = graph.get_collection(v1.GraphKeys.UPDATE_OPS)
        session.run(v1.global_variables_initializer())
        moved = []
        for _ in range(2):
            session.run(updates)
            moved.append(np.abs(session.run(average)).sum())
    return moved[1] / moved[0] - 1 if moved[0] else -1.0


def _answers(inference: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Logits of an untrained model, not in training, for two batches of which the first picture is the same."""
    probe = np.random.default_rng(3).uniform(-1, 1, [4, 64, 64, 3]).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        images = v1.placeholder(tf.float32, [None, *probe.shape[1:]])
        logits = inference(images, _CLASSES, False, False)
        session.run(v1.global_variables_initializer())
        other = np.concatenate([probe[:1], -probe[1:]])
        return session.run(logits, {images: probe}), session.run(logits, {images: other})


def _pooled(types: list[str]) -> str:
    """How the head pools, by the types of the graph's operations."""
    if "Max" in types:
        return "maximum"
    return (
        "mean"
        if "Sum" not in types or {"Mean", "AvgPool", "RealDiv", "Mul"} & set(types)
        else "sum"
    )


@todo(
    "7d",
    hints=(
        "Does bfloat16_scope do anything to float32 input? So where is the cast, and on what does it depend?",
        "One stage is convolution, normalisation, relu; pooling stands between stages. Which argument do two modes "
        "differ in?",
        "Which axes are positions? And which type should leave the function?",
    ),
    why="Activations in bfloat16 halve the bytes; variables and logits keep the digits that they need.",
)
def convolutions(inference: Callable) -> Cases:
    """bfloat16 in the convolutions, float32 in variables and logits, no weight for a position."""
    for bfloat16 in (False, True):
        graph, logits, variables = _built(inference, 64, bfloat16)
        found = f"With bfloat16={bfloat16}:"
        yield (
            (
                f"{found} 4 images of {_CLASSES} classes as logits (cast them to float32, the loss needs more than 8 bits)"
            ),
            f"{logits.dtype.name} {logits.shape}",
        )
        yield (
            (
                f"{found} kernels of the convolutions (3 by 3, with 32, 64, 128 and 256 filters, on the 48 channels of "
                "space_to_depth)"
            ),
            [
                shape
                for name, (shape, _) in variables.items()
                if len(shape) == 4 and "moving" not in name
            ],
        )
        operations = graph.get_operations()
        kinds = {each.outputs[0].dtype.name for each in operations if each.type == "Conv2D"}
        yield f"{found} the types in which the convolutions compute", sorted(kinds)
        yield (
            (
                f"{found} the types of the variables (8 bits would lose small updates; layers within "
                "v1.tpu.bfloat16_scope() keep them in float32)"
            ),
            sorted({kind for _, kind in variables.values()}),
        )
    larger = _built(inference, 128, False)[2]
    grown = ", ".join(name for name in variables if larger.get(name) != variables[name])
    expect(
        not grown,
        f"{grown} grows with the picture: a weight for each position. Take the mean over positions, "
        "tf.reduce_mean(net, [1, 2]), before the dense layer.",
    )
    types = [each.type for each in operations]
    bent = sum(each in ("Relu", "Maximum") for each in types)
    yield "tf.nn.relu should follow each of the four convolutions", min(bent, 4)
    yield (
        "A max_pooling2d(net, 2, 2) between two convolutions makes three of them",
        types.count("MaxPool"),
    )
    yield "What the head takes over the positions, tf.reduce_mean(net, [1, 2])", _pooled(types)
    yield (
        "The head should be one dense layer, from 256 numbers to the classes, with weights",
        [shape for shape, _ in variables.values() if len(shape) == 2],
    )
    averages = sum("moving_mean" in name for name in variables)
    yield "Batch normalisation belongs to each of the four convolutions", averages
    expect_bare(logits)
    momentum = _momentum(inference)
    expect(
        momentum >= 0,
        "With training=True batch normalisation makes no updates of its moving averages (UPDATE_OPS stays empty): "
        "pass training on to it.",
    )
    yield "The momentum of the moving averages", momentum, 4e-3
    one, two = _answers(inference)
    expect_logits(one)
    expect(
        np.allclose(one[0], two[0], rtol=1e-3, atol=1e-5),
        "With training=False a picture's logits depend on the others of its batch: pass training on to "
        "batch_normalization.",
    )
    return "bfloat16 inside, float32 weights and logits, and no weight for a position."


_STEPS = 1000
_PAIR = "host_call is a function of this notebook that makes the pair which the spec takes: host_call(loss, rate, params)."


def _plain(images: tf.Tensor, mode: str) -> tf.Tensor:
    """Stands for views: pixels as they are."""
    return tf.cast(images, tf.float32) / 255.0


def _linear(images: tf.Tensor, classes: int, training: bool, bfloat16: bool) -> tf.Tensor:
    """Stands for inference: a linear layer that starts at zero, and a counter among the UPDATE_OPS."""
    counter = v1.get_variable("updates", initializer=0, trainable=False)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, counter.assign_add(1))
    flat = tf.reshape(images, [images.shape[0], -1])
    return v1.layers.dense(flat, classes, kernel_initializer=v1.zeros_initializer())


def _spec(model_fn: Callable, use_tpu: bool, rate: Any) -> tuple[Any, int, list[tuple]]:
    """The spec of a training step, how many optimizers it wrapped for a TPU, and what host_call got."""
    truths = np.arange(12, dtype=np.int32) % 3
    pixels = np.zeros([12, 8, 8, 3], np.uint8)
    pixels[np.arange(12), truths] = 255
    features = {"image": tf.constant(pixels), "weight": tf.ones([12])}
    wrapped, calls = [], []
    host_call = scope_of(model_fn)["host_call"]

    def recorded(loss: Any, rate: Any, params: Any) -> Any:
        calls.append((loss, rate))
        return host_call(loss, rate, params)

    def wrap(optimizer: Any, *_: Any, **__: Any) -> Any:
        wrapped.append(optimizer)
        return optimizer

    model = with_names(model_fn, views=_plain, inference=_linear, host_call=recorded)
    params = {
        "labels": ["a", "b", "c"],
        "image_size": 8,
        "train_steps": _STEPS,
        "model_dir": "never_written",
        "bfloat16": False,
        "use_tpu": use_tpu,
        "learning_rate": rate,
    }
    with mock.patch.object(v1.tpu, "CrossShardOptimizer", wrap), translated("host_call", _PAIR):
        return model(features, tf.constant(truths), "train", params), len(wrapped), calls


@todo(
    "7e",
    hints=(
        "On a TPU the optimizer is wrapped, as in lab 02.",
        "What makes ops that are created below it wait for others? v1.get_collection gives those others.",
        "host_call(...) returns what the spec takes under that name.",
    ),
    why="The moving averages change only if the step waits for their updates.",
)
def training(model_fn: Callable) -> Cases:
    """One step: averages updated, gradients summed over cores where there are several, one step counted."""
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        rate = v1.placeholder_with_default(0.1, [])
        spec, wrapped, calls = _spec(model_fn, False, rate)
        returns(spec, tpu.TPUEstimatorSpec, "model_fn", "a tpu.TPUEstimatorSpec")
        expect(
            spec.train_op is not None and spec.loss is not None, "The spec has no loss or train_op."
        )
        expect(
            bool(spec.host_call),
            "The spec has no host_call: TensorBoard would see nothing of a training on a TPU.",
        )
        expect(bool(calls), _PAIR)
        yield (
            (
                'CrossShardOptimizers without params["use_tpu"], where there is one copy of the model (on a CPU they have '
                "no kernel)"
            ),
            wrapped,
        )
        (updates,) = (each for each in v1.global_variables() if each.op.name == "updates")
        session.run(v1.global_variables_initializer())
        start = session.run(spec.loss)
        yield (
            "What host_call(loss, rate, params) gets for the loss and the rate",
            session.run(list(calls[0])),
            1e-3,
        )
        session.run(spec.train_op, {rate: 0.0})
        yield (
            "The global step after one run of train_op (give minimize the global_step)",
            session.run(step),
        )
        yield (
            (
                "How often the step runs the UPDATE_OPS, in which batch normalisation keeps its moving averages (without "
                "them evaluation uses those of an untrained model; make the train_op depend on them)"
            ),
            session.run(updates),
        )
        yield (
            "The loss after a step with a learning rate of 0 (give the optimizer rate)",
            session.run(spec.loss),
            1e-5,
        )
        for _ in range(40):
            session.run(spec.train_op)
        end = session.run(spec.loss)
        session.run(v1.global_variables_initializer())
        session.run(step.assign(_STEPS))  # where the cosine has come down to 0
        session.run(spec.train_op)
        last = session.run(spec.loss)
    expect(
        end < 0.9 * start,
        f"Forty steps on one batch bring the loss from {start:.3f} to {end:.3f}: the optimizer is to minimize the "
        "loss.",
    )
    expect(
        abs(last - start) < 1e-4,
        "At the last step, where the decayed rate is 0, the variables still move: give the optimizer `rate`, not "
        'params["learning_rate"].',
    )
    with tf.Graph().as_default():
        v1.train.create_global_step()
        wrapped = _spec(model_fn, True, 0.5)[1]
    yield (
        'CrossShardOptimizers with params["use_tpu"] (without one the cores would drift apart)',
        wrapped,
    )
    return "Averages first, then one step, with gradients all-reduced over the cores of a TPU."
