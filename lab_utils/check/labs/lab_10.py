"""The checks of lab 10, Keras on JAX: the network, TensorFlow 1's momentum, a distribution, exact evaluation.

Keras is imported only when a check runs: the lab's kernel has set its backend by then.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lab_utils.check.devices import AGAIN, DEVICES, eight_devices
from lab_utils.check.outcome import CannotCheck, Wrong
from lab_utils.check.sources import edited_function
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, failure, returns, same, several
from lab_utils.common.figures import counted

_CLASSES = 4


def _keras() -> Any:
    """Keras on JAX with eight devices. Raises CannotCheck where it has started in another way."""
    eight_devices()
    try:
        import keras
    except ImportError:
        raise CannotCheck(f"Keras is not installed here: pip install keras. {AGAIN}") from None

    if keras.config.backend() != "jax":
        raise CannotCheck(
            f"Keras has started with the backend {keras.config.backend()}, but this check needs jax. {AGAIN}"
        )
    return keras


@contextlib.contextmanager
def _left_as_it_was() -> Iterator[Any]:
    """Context manager: Keras, whose distribution and policy are put back afterwards."""
    keras = _keras()
    distribution, policy = keras.distribution.distribution(), keras.config.dtype_policy()
    keras.distribution.set_distribution(None)
    try:
        yield keras
    finally:
        keras.distribution.set_distribution(distribution)
        keras.config.set_dtype_policy(policy)


def _drawn(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A weight: a kernel that keeps the size of what it gets, or a vector about 1, such as a variance."""
    if len(shape) == 1:
        return random.uniform(0.5, 1.5, shape)
    return random.normal(0, (2 / np.prod(shape[:-1])) ** 0.5, shape)


@todo(
    "10a",
    hints=(
        "A loop over the four numbers of filters makes the stages. Which stage has no pooling?",
        "Which default of keras.layers.BatchNormalization differs from 0.97? Which default of Conv2D adds a bias?",
        "Which layer takes the mean over height and width? keras.Model(inputs, outputs) makes the model.",
    ),
    why="With the same layers, in the same order and with the same settings, weights carry over one by one.",
)
def same_network(network: Callable) -> Cases:
    """Weights in order, outputs from given weights, averages after a step in training."""
    with _left_as_it_was() as keras:
        model = network(64, _CLASSES)
        returns(model, keras.Model, "network", "a Keras model")
        same(list(model.output_shape), [None, _CLASSES], "The shape of the logits")
        trained, others = model.trainable_weights, model.non_trainable_weights
        yield (
            "The shapes of the trained weights, in order",
            [list(weight.shape) for weight in trained],
        )
        yield (
            "The shapes of the averages of batch normalisation, in order",
            [list(weight.shape) for weight in others],
        )
        random = np.random.default_rng(1)
        pixels = random.integers(0, 256, [6, 64, 64, 3], dtype=np.uint8)
        model.set_weights([_drawn(random, tuple(weight.shape)) for weight in model.weights])
        logits = np.asarray(model(pixels, training=False))
        label = "The logits in inference, from weights that we set (the order of convolution, normalisation, ReLU, pooling?)"
        yield label, logits, 1e-3
        before = [np.array(weight) for weight in others]
        model(pixels, training=True)
        moved = [
            float(np.linalg.norm(np.array(now) - then))
            for now, then in zip(others, before, strict=True)
        ]
        expect(any(moved), "Nothing updates the averages of batch normalisation in training.")
        yield (
            "How far the averages of batch normalisation move in a step of training, in order",
            moved,
            2e-3,
        )
        keras.config.set_dtype_policy("mixed_bfloat16")
        kind = network(64, _CLASSES).outputs[0].dtype
        expect(
            kind == "float32",
            f"With the policy mixed_bfloat16, the logits should be float32, for the loss; yours are {kind}.",
        )
    return "The network has the weights of the Estimator's model in the same order, and gives the same logits."


_SLOPES = (  # of two variables, in three steps
    ([2.0, -1.0, 0.5], [0.25]),
    ([1.0, 1.0, 3.0], [-2.0]),
    ([-0.5, 0.2, 0.1], [4.0]),
)
_RATES = (0.5, 0.3, 0.05)


@todo(
    "10b",
    hints=(
        "You need two assignments: which of the two variables has to come first?",
        "The second line uses the new m. Does your code read it again after the first assignment?",
        "Compute with the variables themselves, as with arrays, without float() and NumPy.",
    ),
    why="TensorFlow multiplies by the rate of the current step, but Keras's m holds old gradients times old "
    "rates.",
    names=("Momentum",),
)
def same_momentum(optimizer: type) -> Cases:
    """Three steps of two variables while the rate falls, in a jitted step and without one."""
    with _left_as_it_was() as keras:
        import jax

        kind = isinstance(optimizer, type) and issubclass(optimizer, keras.optimizers.Optimizer)
        expect(
            kind, f"Momentum should be a subclass of a Keras optimizer; yours is {a(optimizer)}."
        )

        class Falling(keras.optimizers.schedules.LearningRateSchedule):
            def __call__(self, step: Any) -> Any:
                return keras.ops.take(
                    keras.ops.convert_to_tensor(_RATES), keras.ops.cast(step, "int32")
                )

        made = optimizer(Falling(), momentum=0.9, nesterov=True)
        weights = [keras.Variable(np.float32([1.0, 2.0, 3.0])), keras.Variable(np.float32([-1.0]))]
        made.build(weights)
        first = [np.array(weight) for weight in weights]
        slots, values = ([each.value for each in some] for some in (made.variables, weights))
        pairs = [list(map(np.float32, pair)) for pair in _SLOPES]
        for number, gradients in enumerate(pairs, start=1):
            made.apply(gradients, weights)
            rates = ", ".join(map(str, _RATES[:number]))
            label = f"How far the variables move, divided by 0.05, in {counted(number, 'step')} with the rates {rates}"
            yield (
                label,
                [(np.array(now) - then) / 0.05 for now, then in zip(weights, first, strict=True)],
                1e-4,
            )
        tracing = (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError)
        message = "Under jax.jit, as in fit, the update fails: compute with keras.ops, without float() or NumPy."
        apply = jax.jit(made.stateless_apply)
        with as_wrong("", message, tracing):
            for gradients in pairs:
                values, slots = apply(slots, gradients, values)
        label = "The variables after the same steps under jax.jit, as in fit (use self.assign)"
        yield label, [np.asarray(value) for value in values], 1e-4
    return "The updates are those of MomentumOptimizer, also while the rate falls."


@todo(
    "10c",
    hints=(
        "On which device are variables that were created before the distribution was set?",
        "Give DataParallel only the devices that over_cores gets: see its argument devices.",
        "build takes no argument, and returns the model.",
    ),
    why="When Keras creates a variable, the distribution of that moment decides where it is placed.",
)
def batch_over_cores(over_cores: Callable) -> str:
    """The distribution is set when build runs, and afterwards; variables whole, batches split."""
    from jax.sharding import NamedSharding

    for count in (DEVICES, 2):
        with _left_as_it_was() as keras:
            devices = keras.distribution.list_devices()[:count]
            built: list[Any] = []

            def build(built: list[Any] = built) -> Any:
                keras = _keras()
                model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
                built.append((model, keras.distribution.distribution()))
                return model

            model = over_cores(devices, build)
            expect(
                len(built) == 1,
                f"over_cores should call build() once; yours called it {len(built)} times.",
            )
            returns(model, model is built[0][0], "over_cores", "the model that build() made")
            expect(
                built[0][1] is not None,
                "When build() ran, no distribution was set, so its variables are on one device.",
            )
            now = keras.distribution.distribution()
            expect(
                now is not None,
                "After over_cores no distribution is set, so fit would not split the batch.",
            )
            layout = now.get_data_layout((16, 3)).backend_layout
            share = layout.shard_shape((16, 3))
            words = f"With {count} devices, each device gets {list(share)} of a batch [16, 3]"
            expect(
                share == (16 // count, 3), f"{words}; each should get its share of the examples."
            )
            used = model.weights[0].value.sharding
            expect(
                isinstance(used, NamedSharding) and len(used.device_set) == count,
                f"With {count} devices, the variables are on {counted(len(used.device_set), 'device')}.",
            )
            expect(
                used.shard_shape((3, 2)) == (3, 2),
                f"With {count} devices, a device holds {list(used.shard_shape((3, 2)))} of a variable [3, 2], but should hold all of it.",
            )
    return "Each device holds all variables, and its share of each batch."


@todo(
    "10d",
    hints=(
        "How many examples are missing from the last batch? What is -60 % 64 in Python?",
        "Images, labels and weights get the same number of rows. Which weight do the added rows get?",
    ),
    why="The cores need whole batches, and the weights make the metric count each picture once.",
    slips=(
        Slip(
            "missing = -len(images) % size",
            "missing = size - len(images) % size",
            "If the examples already fill whole batches, nothing is missing.",
        ),
        Slip(
            "weights = np.float32(np.arange(len(rows)) < len(images))",
            "weights = np.ones(len(rows), np.float32)",
            "The added rows should have weight 0, so that they do not count.",
        ),
        Slip(
            "np.float32(np.arange(len(rows)) < len(images))",
            "np.arange(len(rows)) < len(images)",
            "A comparison gives booleans, but the weights should be float32.",
        ),
    ),
)
def each_once(filled: Callable) -> str:
    """Whole batches; each example once with weight 1, whatever was added with weight 0."""
    random = np.random.default_rng(3)
    for count, size in ((60, 64), (64, 64), (5, 8), (17, 8), (1, 8)):
        images = random.integers(0, 256, [count, 4, 4, 3], dtype=np.uint8)
        labels = np.arange(count, dtype=np.int32)
        answer = filled(images.copy(), labels.copy(), size)
        returns(answer, several(answer, 3), "filled", "three arrays: images, labels, weights")
        x, y, weights = (np.asarray(part) for part in answer)
        rows = math.ceil(count / size) * size
        what = f"With {count} examples in batches of {size}"
        hint = (
            f"{count} examples already fill {rows} rows"
            if rows == count
            else f"the next multiple is {rows}"
        )
        for name, part in (("images", x), ("labels", y), ("weights", weights)):
            expect(len(part) == rows, f"{what}: {name} has {len(part)} rows, but {hint}.")
        same(x.shape[1:], images.shape[1:], f"{what}: the shape of a picture")
        kinds = [part.dtype.name for part in (x, y, weights)]
        same(
            kinds, ["uint8", "int32", "float32"], f"{what}: the types of images, labels and weights"
        )
        expect(
            weights.sum() == count and set(np.unique(weights)) <= {0, 1},
            f"{what}: the {count} examples should have weight 1, and added rows weight 0; the sum of your weights is "
            f"{weights.sum():g}.",
        )
        real = weights == 1
        expect(
            sorted(y[real]) == list(range(count)),
            f"{what}: the rows with weight 1 should be the examples, each once.",
        )
        expect(
            np.array_equal(x[real], images[y[real]]),
            f"{what}: a picture and its label are no longer in the same row.",
        )
    return "The batches are whole, and each picture counts once."


@todo(
    "10e",
    names=("noor.py",),
    hints=(
        "Print the path of each variable. Does the pattern match the path from its beginning to its end?",
        "A pattern is a regular expression, in which `.` stands for any character, and `.*` for any number of them.",
        "The path of a momentum joins the names with `_`, not with `/`.",
    ),
    why="Keras accepts a pattern that matches nothing, and then replicates the variable, so look at what a device holds.",
)
def really_split(program: Any) -> str:
    """What a device holds of kernels and momenta; a step computes what it computes without a distribution."""
    _keras()
    build = edited_function(program, 10, "noor.py", "build")
    with _left_as_it_was() as keras:
        try:
            model = build(keras.distribution.list_devices()[:DEVICES])
            model.optimizer.build(model.trainable_variables)
            x = np.ones([16, 64], np.float32)
            # train_on_batch of Keras 3.13, which Colab has, fails under a distribution without weights.
            model.fit(x, x, batch_size=16, verbose=0)
        except Exception as error:
            raise Wrong(f"The function build of noor.py fails: {failure(error)}") from None
        _expect_quarters(model)
        share = (
            keras.distribution.distribution()
            .get_data_layout((64, 64))
            .backend_layout.shard_shape((64, 64))
        )
        expect(
            share == (32, 64),
            f"A device gets {list(share)} of a batch [64, 64]: the batch should still be split in two.",
        )
    return "Each core holds a quarter of each kernel and of its momenta."


def _expect_quarters(model: Any) -> None:
    """Raises `Wrong` unless each device holds a quarter of both kernels, and of their momenta."""
    wanted = {(64, 1024): (64, 256), (1024, 64): (256, 64)}
    large = [
        each for each in model.variables + model.optimizer.variables if tuple(each.shape) in wanted
    ]
    expect(len(large) == 4, "The model should keep its two layers, and SGD with momentum.")
    for variable in large:
        shape = tuple(variable.shape)
        part = tuple(variable.value.sharding.shard_shape(shape))
        message = (
            f"A device holds {list(part)} of {variable.path}, which has the shape {list(shape)}"
        )
        expect(part != shape, f"{message}: no pattern matches this path.")
        expect(part == wanted[shape], f"{message}; it should be {list(wanted[shape])}.")
