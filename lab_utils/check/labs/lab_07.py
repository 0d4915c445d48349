"""The checks of lab 07, the flowers model whole: the network, its training step, a patient, the export, two accuracies."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.logits import expect_bare, expect_logits
from lab_utils.check.labs.pictures import picture
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, other_names, returns, scope_of
from lab_utils.estimator import tf, tpu, v1

_CLASSES = 3


def _logits(inference: Callable, training: bool, bfloat16: bool) -> tf.Tensor:
    """The logits of a new graph, of four images between -1 and 1."""
    with tf.Graph().as_default():
        images = tf.random.stateless_uniform([4, 64, 64, 3], [1, 2], -1, 1)
        logits = inference(images, _CLASSES, training, bfloat16)
        returns(logits, tf.Tensor, "inference", "a tensor of logits")
        return logits


@todo(
    "7a",
    hints=(
        "bfloat16_scope casts no input. Where do you need a cast, then, and on which argument does it depend?",
        "Pooling stands between stages: how often is that? Which axes are height and width?",
        "Which type should the function return?",
    ),
    why="bfloat16 activations take half the bytes; variables and logits need the precision of float32.",
    slips=(
        Slip(
            "net = stage(net, filters, training)",
            "net = stage(net, filters, True)",
            "Batch normalisation gets "
            "`training`: it updates its averages in training, and uses them otherwise.",
        ),
        Slip(
            "[1, 2]", "[1]", "The mean goes over both axes of positions, height and width: [1, 2]."
        ),
    ),
)
def convolutions(inference: Callable) -> Cases:
    """bfloat16 in the convolutions, float32 in variables and logits, no weight for a position."""
    updates = {}
    for bfloat16, training in ((True, False), (False, True)):
        where = f"With bfloat16={bfloat16}:"
        logits = _logits(inference, training, bfloat16)
        operations = logits.graph.get_operations()
        variables = logits.graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
        updates[training] = len(logits.graph.get_collection(v1.GraphKeys.UPDATE_OPS))
        label = f"{where} the logits (the loss needs float32)"
        yield label, f"{logits.dtype.name} {logits.shape}"
        kinds = {op.outputs[0].dtype.name for op in operations if op.type == "Conv2D"}
        yield f"{where} the types in which the convolutions compute", sorted(kinds)
        label = f"{where} the types of the variables (layers within v1.tpu.bfloat16_scope() keep them in float32)"
        yield label, sorted({variable.dtype.base_dtype.name for variable in variables})
    kernels = [variable.shape.as_list() for variable in variables if len(variable.shape) > 1]
    label = (
        "The kernels: 3 by 3 on 48, 32, 64 and 128 channels, then a dense layer on the 256 means"
    )
    yield label, kernels
    types = [op.type for op in operations]
    label = "How often v1.layers.max_pooling2d(net, 2, 2) stands between stages"
    yield label, types.count("MaxPool")
    message = (
        "The head takes the maximum over the positions, not the mean: tf.reduce_mean(net, [1, 2])."
    )
    expect("Max" not in types, message)
    expect_bare(logits)
    for training, count in updates.items():
        yield f"Updates of moving averages with training={training}", count
    with logits.graph.as_default(), v1.Session() as session:
        session.run(v1.global_variables_initializer())
        expect_logits(session.run(logits))
    return "The convolutions compute in bfloat16, and weights and logits are float32."


def _linear(images: tf.Tensor, classes: int, training: bool, bfloat16: bool) -> tf.Tensor:
    """Stands for inference: a linear layer that starts at zero, and a counter among the UPDATE_OPS."""
    counter = v1.get_variable("updates", initializer=0, trainable=False)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, counter.assign_add(1))
    flat = tf.reshape(images, [images.shape[0], -1])
    return v1.layers.dense(flat, classes, kernel_initializer=v1.zeros_initializer())


def _spec(model_fn: Callable, use_tpu: bool) -> tuple[Any, int]:
    """The spec of a training step on twelve easy pictures, and how many optimizers it wrapped for a TPU."""
    truths = np.arange(12, dtype=np.int32) % _CLASSES
    pixels = np.zeros([12, 8, 8, 3], np.uint8)
    pixels[np.arange(12), truths] = 255
    features = {"image": tf.constant(pixels), "weight": tf.ones([12])}
    optimizers = []

    def wrap(optimizer: Any, *_: Any, **__: Any) -> Any:
        optimizers.append(optimizer)
        return optimizer

    names = {"inference": _linear, "random_views": lambda images, size, seed: images}
    params = {"labels": ["a", "b", "c"], "image_size": 8, "train_steps": 100, "learning_rate": 0.1}
    params |= {"use_bfloat16": False, "use_tpu": use_tpu, "seed": 0}
    with mock.patch.object(v1.tpu, "CrossShardOptimizer", wrap), other_names(model_fn, **names):
        spec = model_fn(features, tf.constant(truths), "train", params)
    returns(spec, tpu.TPUEstimatorSpec, "model_fn", "a tpu.TPUEstimatorSpec")
    expect(spec.train_op is not None and spec.loss is not None, "The spec has no loss or train_op.")
    return spec, len(optimizers)


@todo(
    "7b",
    hints=(
        "On a TPU the optimizer is wrapped, as in lab 02.",
        "Which context makes the ops created in it wait for other ops? v1.get_collection returns those others.",
    ),
    why="The moving averages change only if the step waits for their updates.",
    slips=(
        Slip(
            "v1.get_collection(v1.GraphKeys.UPDATE_OPS)",
            "[]",
            "Nothing runs the UPDATE_OPS: make the train_op depend on them.",
        ),
        Slip(", global_step=step", "", "The global step stays at 0: pass it to minimize."),
        Slip(
            'if params["use_tpu"]:',
            "if True:",
            "On a CPU there is one copy of the model, and no kernel for the "
            "all-reduce: wrap the optimizer only with params['use_tpu'].",
        ),
        Slip(
            'if params["use_tpu"]:',
            "if False:",
            "With params['use_tpu'] nothing all-reduces the gradients: the cores "
            "would drift apart.",
        ),
    ),
)
def training(model_fn: Callable) -> Cases:
    """One step: averages updated, gradients all-reduced where there are several cores, one step counted."""
    with tf.Graph().as_default():
        v1.train.create_global_step()
        yield 'The number of CrossShardOptimizers with params["use_tpu"]', _spec(model_fn, True)[1]
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        spec, count = _spec(model_fn, False)
        yield 'The number of CrossShardOptimizers without params["use_tpu"]', count
        (updates,) = (v for v in v1.global_variables() if v.op.name == "updates")
        session.run(v1.global_variables_initializer())
        start = session.run(spec.loss)
        session.run(spec.train_op)
        yield "The global step after one run of train_op", session.run(step)
        yield "How often one step runs the UPDATE_OPS", session.run(updates)
        for _ in range(40):
            session.run(spec.train_op)
        end = session.run(spec.loss)
    message = (
        f"Forty steps on one batch bring the loss from {start:.3f} to {end:.3f}: minimize the loss."
    )
    expect(end < 0.9 * start, message)
    return "Each step updates the averages, and all-reduces the gradients over the cores of a TPU."


enter_patient(
    "7c",
    "leaves",
    hints=(
        "The weights are the same in both evaluations. What else can differ between the two?",
        "Which lines do training and evaluation share? Which of these lines belong to training only?",
    ),
    why="Augmentation belongs to training; an evaluation that draws at random measures different pictures each time.",
)

SIZE = 32


@todo(
    "7d",
    hints=(
        "The placeholder accepts any number of strings: which shape is that?",
        "tf.map_fn assumes that output and input have one type. fn_output_signature states a different one.",
        "Which key does model_fn look up in its features?",
    ),
    why="The served model prepares pictures with the same function as evaluation.",
    slips=(
        Slip(
            ", fn_output_signature=tf.uint8",
            "",
            "map_fn assumes that its output has the type of its input, string: set "
            "fn_output_signature=tf.uint8.",
        ),
        Slip(
            '{"image_bytes": encoded}',
            '{"bytes": encoded}',
            'Callers send the pictures as "image_bytes".',
        ),
    ),
)
def serving(make_serving_input_fn: Callable) -> Cases:
    """Bytes in, what evaluation feeds the model out."""
    input_fn = make_serving_input_fn(SIZE)
    returns(input_fn, callable(input_fn), "make_serving_input_fn", "a function")
    loud = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.FATAL)  # map_fn logs what is told below
    with tf.Graph().as_default(), v1.Session() as session:
        try:
            with as_wrong(
                "not scalars|rank",
                "decode_image accepts one string, but a caller sends any number, [None]: use tf.map_fn.",
            ):
                receiver = input_fn()
        finally:
            v1.logging.set_verbosity(loud)
        message = f"Return a v1.estimator.export.ServingInputReceiver; yours returns {a(receiver)}."
        expect(hasattr(receiver, "receiver_tensors"), message)
        tensors = receiver.receiver_tensors
        kinds = {
            name: f"{tensor.op.type} {tensor.dtype.name} {tensor.shape}"
            for name, tensor in tensors.items()
        }
        yield "What a caller sends: a placeholder for any number of strings", kinds
        image = receiver.features.get("image")
        message = f'model_fn looks for features["image"]; yours hold {list(receiver.features)}.'
        expect(image is not None, message)
        label = 'The type of features["image"] and its side in pixels'
        yield label, f"{image.dtype.name} {SIZE in image.shape[1:] or image.shape}"
        pictures = [picture(40, 40, "JPEG"), picture(40, 48, "PNG")]
        images = session.run(image, {tensors["image_bytes"]: pictures})
    decode = scope_of(make_serving_input_fn)["decode_image"]
    message = "The picture differs from the one in evaluation: call decode_image, and only that."
    for pixels, file in zip(images, pictures, strict=True):
        expect(np.array_equal(pixels, decode(file, SIZE)), message)
    return "Bytes go through the same function as in evaluation."


@todo(
    "7e",
    hints=(
        "The squared standard error of p on n pictures is p (1 - p) / n. What is it for a difference of two?",
        "Is a difference of -10 points large?",
    ),
    why="By chance alone a difference exceeds two of its standard errors one time in twenty.",
    slips=(
        Slip(
            "<= 2 * error",
            "<= error",
            "One standard error is too few: chance alone gives more, one time in three. "
            "Require two.",
        ),
        Slip(
            "abs(one - other)",
            "one - other",
            "The other model may be the better one: use the absolute difference.",
        ),
        Slip(
            "one * (1 - one) + other * (1 - other)",
            "max(p * (1 - p) for p in (one, other))",
            "That is the error of one accuracy. The difference has the errors of both.",
        ),
        Slip(
            "one > other",
            "one < other",
            "The names are mixed up: the higher accuracy is the better one.",
        ),
        Slip("** 0.5", "", "The standard error is the square root of that."),
    ),
)
def comparison(better: Callable) -> Cases:
    """What a test of n pictures can tell."""
    for one, other, n, words in (
        (0.9, 0.92, 60, "90 % and 92 % of 60 pictures"),
        (0.9, 0.92, 6000, "90 % and 92 % of 6,000 pictures"),
        (0.92, 0.9, 6000, "92 % and 90 % of 6,000 pictures"),
        (0.4, 0.75, 60, "40 % and 75 % of 60 pictures"),
        (0.5, 0.66, 60, "50 % and 66 % of 60 pictures"),
        (0.5, 0.7, 60, "50 % and 70 % of 60 pictures"),
        (0.7, 0.5, 60, "70 % and 50 % of 60 pictures"),
        (0.6, 0.5, 60, "60 % and 50 % of 60 pictures"),
        (0.8, 0.8, 10_000, "80 % twice"),
    ):
        yield words, better(one, other, n)
    return "Your function reports only differences that are larger than chance gives."
