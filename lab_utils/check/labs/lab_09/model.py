"""The model: TODO 9c, compiled in a strategy's scope, and 9f, the Estimator's optimizer in Keras."""

from collections.abc import Callable
from unittest import mock

import numpy as np

from lab_utils.check.labs.digits import expect_digits_model
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf, v1

# isort: split
import keras

RATE = 3e-3


@todo(
    "9c",
    hints=(
        'Which two things make variables? Both belong into the scope.',
        'The last layer has no softmax: what does the loss have to be told?',
        'keras.layers.Reshape gives the image its channel; flatten comes after the pooling.',
    ),
    why='Variables that are made in the scope have a copy on each replica.',
)
def model(make_model: Callable) -> str:
    """A compiled model whose variables belong to the strategy."""
    strategy, optimizers = tf.distribute.OneDeviceStrategy("CPU:0"), []

    def make_optimizer() -> keras.Optimizer:
        optimizers.append(keras.optimizers.Adam(RATE))
        return optimizers[-1]

    compiled, compile_ = {}, keras.Model.compile

    def recorded(self: keras.Model, *args: object, **named: object) -> None:
        compiled.update(named)
        compile_(self, *args, **named)

    with mock.patch.object(keras.Model, "compile", recorded):
        made = make_model(strategy, make_optimizer, steps_per_execution=5)
    expect(isinstance(made, keras.Model), f"Return the Keras model; yours returns {a(made)}.")
    expect(
        getattr(made, "optimizer", None) is not None,
        "The model is not compiled: call model.compile with the optimizer that make_optimizer() makes.",
    )
    images = np.random.default_rng(3).random((40, 8, 8), dtype=np.float32)
    labels = (np.arange(40) % 10).astype(np.int32)
    outputs = np.asarray(made(images, training=False))
    expect(
        outputs.shape == (40, 10),
        f"For 40 images there should be ten numbers each, [40, 10]; yours gives {list(outputs.shape)}.",
    )
    expect(
        not np.allclose(outputs.sum(axis=1), 1.0, atol=1e-3),
        "The outputs sum to 1: give logits, and leave the softmax to the loss.",
    )
    expect(
        all(strategy.extended.variable_created_in_scope(_inner(v)) for v in made.weights),
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
    expect(
        made.steps_per_execution == 5,
        "steps_per_execution did not arrive: pass it to compile. It is what iterations_per_loop was.",
    )
    try:
        with strategy.scope():
            said = made.evaluate(images, labels, batch_size=8, verbose=0, return_dict=True)
    except RuntimeError as error:
        if "Mixing different tf.distribute.Strategy" not in str(error):
            raise
        raise Wrong(
            "model.compile stands outside of strategy.scope(), and the optimizer and the metrics are made there: "
            "put it into the scope too."
        ) from None
    except ValueError as error:
        raise Wrong(
            "The loss does not fit labels that are numbers of classes, int32 [B]: "
            f"SparseCategoricalCrossentropy. Keras says: {error}"
        ) from None
    right = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs).numpy().mean()
    expect(
        abs(said["loss"] - right) < 1e-3,
        f"For these outputs the mean cross-entropy is {right:.4f}; yours is {said['loss']:.4f}. The outputs "
        "are logits: say from_logits=True.",
    )
    expect("accuracy" in said, 'Ask compile for the metric "accuracy".')
    named = np.mean(outputs.argmax(axis=1) == labels)
    expect(
        abs(said["accuracy"] - named) < 1e-3,
        f"{named:.3f} of these images are named correctly; your metric says {said['accuracy']:.3f}.",
    )
    return "Built and compiled in the scope: each replica gets its copy, and gradients are summed."


def _inner(variable) -> tf.Variable:
    return getattr(variable, "value", variable)  # Keras 3 wraps TensorFlow's


@todo(
    "9f",
    hints=(
        'Print the configuration of both: keras.optimizers.Adam().get_config(), and help(tf.compat.v1.train.AdamOptimizer).',
        'Which default differs, apart from the learning rate?',
    ),
    why='A small number under the fraction decides how far small gradients move a variable.',
)
def same_adam(make_adam: Callable) -> str:
    """The same updates as AdamOptimizer(0.003), whatever the size of the gradient."""
    made = make_adam()
    expect(
        isinstance(made, keras.optimizers.Optimizer),
        f"Return a Keras optimizer, from keras.optimizers; yours is {a(made)}.",
    )
    for name in ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "use_ema", "amsgrad"):
        expect(not getattr(made, name, None), f"AdamOptimizer knows no {name}: leave it out.")
    for name, value in (("beta_1", 0.9), ("beta_2", 0.999)):
        found = getattr(made, name, value)
        expect(found == value, f"{name} is {value} in AdamOptimizer, and {found} in yours.")
    gradients = np.array([2.0, 1e-2, 1e-7, 1e-8, 1e-9], np.float32)
    course = _keras_updates(made, gradients), _estimator_updates(gradients)
    ours, theirs = (each[0] for each in course)
    if not np.isclose(ours[0], theirs[0], rtol=1e-3):
        if not isinstance(made, keras.optimizers.Adam):
            raise Wrong(f"The Estimator trains with Adam; yours is {made.name}.")
        ratio = ours[0] / theirs[0]
        raise Wrong(
            f"For a gradient of 2 the update is {ratio:.2g} times the Estimator's: is the "
            f"learning rate {RATE}?"
        )
    ours, theirs = (each[-1] for each in course)
    expect(
        np.allclose(ours[:1], theirs[:1], rtol=2e-3),
        f"The first update is right, and after {len(_FACTORS)} steps with other gradients the variables have "
        f"moved by {ours[0]:.2e} instead of {theirs[0]:.2e}: what is remembered of old gradients (beta_1, "
        "beta_2) should be as AdamOptimizer has it.",
    )
    ours, theirs = (each[0] for each in course)
    expect(
        np.allclose(ours, theirs, rtol=1e-2),
        f"For large gradients the updates are equal, for small gradients not: for one of 1e-8, "
        f"{ours[3]:.1e} instead of {theirs[3]:.1e}. What is added to the root of the second moment?",
    )
    return "The same updates, for gradients from 2 down to 1e-9."


_FACTORS = (1.0, 1.0, -0.3, 0.1, 2.0, 0.1)  # times the gradients, step by step


def _keras_updates(optimizer: keras.Optimizer, gradients: np.ndarray) -> list[np.ndarray]:
    """How far variables have moved after each step."""
    variable = keras.Variable(np.zeros_like(gradients))
    optimizer.build([variable])
    moved = []
    for factor in _FACTORS:
        optimizer.apply([factor * gradients], [variable])
        moved.append(np.array(variable))
    return moved


def _estimator_updates(gradients: np.ndarray) -> list[np.ndarray]:
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("x", initializer=np.zeros_like(gradients), use_resource=True)
        given = v1.placeholder(tf.float32, gradients.shape)
        train = v1.train.AdamOptimizer(RATE).apply_gradients([(given, variable)])
        session.run(v1.global_variables_initializer())
        moved = []
        for factor in _FACTORS:
            session.run(train, {given: factor * gradients})
            moved.append(session.run(variable))
        return moved
