"""The model: TODO 10c, compiled in a strategy's scope, and 10f, the Estimator's optimizer in Keras."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.digits import expect_digits_model
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, returns, same, translated
from lab_utils.estimator import tf

# isort: split
import keras

RATE = 3e-3


@todo(
    "10c",
    hints=(
        "Which two things make variables? Both belong into the scope.",
        "The last layer has no softmax: what does the loss have to be told?",
        "keras.layers.Reshape gives the image its channel; flatten comes after the pooling.",
    ),
    why="Variables that are made in the scope have a copy on each replica.",
)
def model(make_model: Callable) -> str:
    """A compiled model whose variables belong to the strategy."""
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    optimizers, compiled, compile_ = [], {}, keras.Model.compile

    def make_optimizer() -> keras.Optimizer:
        optimizers.append(keras.optimizers.Adam(RATE))
        return optimizers[-1]

    def recorded(self: keras.Model, *args: Any, **named: Any) -> None:
        compiled.update(named)
        compile_(self, *args, **named)

    with mock.patch.object(keras.Model, "compile", recorded):
        made = make_model(strategy, make_optimizer, steps_per_execution=5)
    returns(made, keras.Model, "make_model", "the Keras model")
    expect(
        getattr(made, "optimizer", None) is not None,
        "The model is not compiled: call model.compile with the optimizer that make_optimizer() makes.",
    )
    images = np.random.default_rng(3).random((40, 8, 8), dtype=np.float32)
    labels = (np.arange(40) % 10).astype(np.int32)
    outputs = np.asarray(made(images, training=False))
    expect(
        all(
            strategy.extended.variable_created_in_scope(getattr(v, "value", v))
            for v in made.weights
        ),
        "The variables were made outside of strategy.scope(): no replica would get a copy of its own.",
    )
    expect_digits_model(made, images, images[..., None])
    expect(
        any(made.optimizer is each for each in optimizers),
        "compile should get the optimizer that make_optimizer() makes: the caller chooses it; yours has "
        f"{a(made.optimizer)} of its own.",
    )
    expect(
        compiled.get("jit_compile") is False,
        "jit_compile=False is missing: Keras would have XLA compile the step for each virtual device.",
    )
    same(
        made.steps_per_execution,
        5,
        "steps_per_execution, which is what iterations_per_loop was: pass it to compile",
    )
    with (
        translated(
            "Mixing different tf.distribute.Strategy",
            "make_optimizer() is called outside of strategy.scope(), and an optimizer has variables, too: call it, and "
            "model.compile, within the scope.",
            (RuntimeError,),
        ),
        translated(
            "",
            "The loss does not fit labels that are numbers of classes, int32 [B]: SparseCategoricalCrossentropy.",
            (ValueError,),
        ),
        strategy.scope(),
    ):
        found = made.evaluate(images, labels, batch_size=8, verbose=0, return_dict=True)
    right = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs).numpy().mean()
    same(
        found["loss"],
        right,
        "The mean cross-entropy of these outputs, logits (say from_logits=True)",
        1e-3,
    )
    expect("accuracy" in found, 'Ask compile for the metric "accuracy".')
    share = np.mean(outputs.argmax(axis=1) == labels)
    same(
        found["accuracy"], share, "The share of images that are named correctly, your metric", 1e-3
    )
    return "Built and compiled in the scope: each replica gets its copy, and gradients are summed."


_FACTORS = (1.0, 1.0, -0.3, 0.1, 2.0, 0.1)  # times the gradients, step by step


@todo(
    "10f",
    hints=(
        "Print the configuration of both: keras.optimizers.Adam().get_config(), and "
        "help(tf.compat.v1.train.AdamOptimizer).",
        "Which default differs, apart from the learning rate?",
    ),
    why="A small number under the fraction decides how far small gradients move a variable.",
)
def same_adam(make_adam: Callable) -> Cases:
    """The same updates as AdamOptimizer(0.003), whatever the size of the gradient."""
    made = make_adam()
    returns(
        made, keras.optimizers.Optimizer, "make_adam", "a Keras optimizer, from keras.optimizers"
    )
    expect(hasattr(made, "beta_1"), f"The Estimator trains with Adam; yours is {made.name}.")
    for name in ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "use_ema", "amsgrad"):
        expect(not getattr(made, name, None), f"AdamOptimizer knows no {name}: leave it out.")
    yield "beta_1 of AdamOptimizer", made.beta_1
    yield "beta_2 of AdamOptimizer", made.beta_2
    gradients = np.array([2.0, 1e-2, 1e-7, 1e-8, 1e-9], np.float32)
    variable, moved = keras.Variable(np.zeros_like(gradients)), []
    made.build([variable])
    for factor in _FACTORS:
        made.apply([factor * gradients], [variable])
        moved.append(-np.array(variable) / RATE)
    told = "How far a variable moves, in units of the learning rate 0.003,"
    yield f"{told} by a gradient of 2 (is the learning rate that?)", moved[0][0], 1e-3
    yield (
        f"{told} by {len(_FACTORS)} other gradients (what is remembered of old ones?)",
        moved[-1][0],
        2e-3,
    )
    yield (
        (
            f"{told} by small gradients, of 0.01, 1e-7, 1e-8 and 1e-9 (what is added to the root of the second moment?)"
        ),
        moved[0][1:],
        1e-2,
    )
    return "The same updates, for gradients from 2 down to 1e-9."
