"""TODO 7e: the training step of model_fn."""

import inspect
from collections.abc import Callable
from unittest import mock

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, scope_of, with_names
from lab_utils.estimator import tf, tpu, v1

PARAMS = {
    "labels": ["a", "b", "c"],
    "image_size": 8,
    "train_steps": 1000,
    "model_dir": "never_written",
    "bfloat16": False,
    "use_tpu": False,
}


def plain(images: tf.Tensor, mode: str) -> tf.Tensor:
    """Stands for views: pixels as they are."""
    return tf.cast(images, tf.float32) / 255.0


def linear(images: tf.Tensor, classes: int, training: bool, bfloat16: bool) -> tf.Tensor:
    """Stands for inference: a linear layer that starts at zero, and a counter among the UPDATE_OPS."""
    counter = v1.get_variable("updates", initializer=0, trainable=False)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, counter.assign_add(1))
    flat = tf.reshape(images, [images.shape[0], -1])
    return v1.layers.dense(flat, classes, kernel_initializer=v1.zeros_initializer())


def spec_of(model_fn: Callable, use_tpu: bool, rate: float) -> tuple:
    """The spec of a training step, how many optimizers it wrapped for a TPU, and what host_call got."""
    truths = np.arange(12, dtype=np.int32) % 3
    pixels = np.zeros([12, 8, 8, 3], np.uint8)
    pixels[np.arange(12), truths] = 255
    features = {"image": tf.constant(pixels), "weight": tf.ones([12])}
    wrapped, told = [], []
    host_call = scope_of(model_fn)["host_call"]

    def recorded(loss, rate, params):
        told.append((loss, rate))
        return host_call(loss, rate, params)

    def wrap(optimizer, *_, **__):
        wrapped.append(optimizer)
        return optimizer

    model = with_names(model_fn, views=plain, inference=linear, host_call=recorded)
    params = PARAMS | {"use_tpu": use_tpu, "learning_rate": rate}
    with mock.patch.object(v1.tpu, "CrossShardOptimizer", wrap):
        spec = model(features, tf.constant(truths), "train", params)
    return spec, len(wrapped), told


@todo(
    "7e",
    hints=(
        'On a TPU the optimizer is wrapped, as in lab 02.',
        'What makes ops that are created below it wait for others? v1.get_collection gives those others.',
        'host_call(...) returns what the spec takes under that name.',
    ),
    why='The moving averages change only if the step waits for their updates.',
)
def training(model_fn: Callable) -> str:
    """One step: averages updated, gradients summed over cores where there are several, one step counted."""
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        rate = v1.placeholder_with_default(0.1, [])
        try:
            spec, wrapped, told = spec_of(model_fn, False, rate)
        except (TypeError, ValueError) as error:
            expect(
                "host_call" not in str(error),
                "host_call is a pair, a function and its tensors: host_call(loss, rate, params) makes it.",
            )
            raise
        expect(
            isinstance(spec, tpu.TPUEstimatorSpec),
            f"Return a tpu.TPUEstimatorSpec; yours returns {a(spec)}.",
        )
        expect(
            spec.train_op is not None and spec.loss is not None, "The spec has no loss or train_op."
        )
        expect(
            bool(spec.host_call),
            "The spec has no host_call: TensorBoard would see nothing of a training on a TPU.",
        )
        expect(
            bool(told),
            "host_call is a function of this notebook that makes the pair which the spec takes: "
            "host_call=host_call(loss, rate, params).",
        )
        expect(
            wrapped == 0,
            'Without params["use_tpu"] there is one copy of the model: CrossShardOptimizer has no kernel '
            "on a CPU.",
        )
        (updates,) = (each for each in v1.global_variables() if each.op.name == "updates")
        session.run(v1.global_variables_initializer())
        start = session.run(spec.loss)
        given = session.run(list(told[0]))
        expect(
            np.allclose(given, [start, 0.1], rtol=1e-3),
            f"host_call gets {given[0]:.4g} for the loss and {given[1]:.4g} for the rate; they are {start:.4g} "
            "and 0.1: host_call(loss, rate, params).",
        )
        session.run(spec.train_op, {rate: 0.0})
        expect(
            session.run(step) == 1,
            f"One run of train_op should count one step; the global step went to {session.run(step)}. Give "
            "minimize the global_step.",
        )
        expect(
            session.run(updates) == 1,
            "The step leaves the UPDATE_OPS out, in which batch normalisation keeps its moving averages: "
            "evaluation would use those of an untrained model. Make the train_op depend on them.",
        )
        expect(
            abs(session.run(spec.loss) - start) < 1e-6,
            "Variables move with a learning rate of 0: give the optimizer rate.",
        )
        for _ in range(40):
            session.run(spec.train_op)
        end = session.run(spec.loss)
        session.run(v1.global_variables_initializer())
        session.run(step.assign(PARAMS["train_steps"]))  # where the cosine has come down to 0
        session.run(spec.train_op)
        last = session.run(spec.loss)
    expect(
        end < 1.5 * start,
        f"Forty steps on one batch bring the loss from {start:.3f} up to {end:.3f}: the optimizer is to "
        "minimize the loss.",
    )
    expect(
        end < 0.9 * start,
        f"Forty steps on one batch bring the loss from {start:.3f} to {end:.3f}: it does not fall as it "
        "should.",
    )
    expect(
        abs(last - start) < 1e-4,
        "At the last step, where the decayed rate is 0, the variables still move: give the optimizer `rate`, "
        'not params["learning_rate"].',
    )
    with tf.Graph().as_default():
        v1.train.create_global_step()
        _, wrapped, _ = spec_of(model_fn, True, 0.5)
    expect(
        wrapped == 1,
        'With params["use_tpu"] no CrossShardOptimizer is made: the cores would drift apart.',
    )
    return "Averages first, then one step, with gradients all-reduced over the cores of a TPU."
