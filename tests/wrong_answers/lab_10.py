"""Lab 10: the network in Keras, TensorFlow 1's momentum, a distribution, exact evaluation, a LayoutMap."""

from wrong_answers import Mutant, Right, Wrong

_NOOR = r"""
%%writefile noor.py
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


def build(devices):
    mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"], devices)
    layouts = keras.distribution.LayoutMap(mesh)
LAYOUTS
    parallel = keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
    keras.distribution.set_distribution(parallel)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(1024, activation="relu", name="wide"),
            keras.layers.Dense(64, name="narrow"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    return model
"""


def _noor(layouts: str, *changes: tuple[str, str]) -> str:
    """The program with those layouts, as a cell."""
    lines = "\n".join(f"    {line}" for line in layouts.strip("\n").splitlines())
    text = _NOOR.replace("LAYOUTS", lines)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


_HEALTHY = """
layouts[".*wide.kernel"] = (None, "model")
layouts[".*narrow.kernel"] = ("model", None)
"""

ANSWERS = {
    "10a": [
        # Activation within a layer, padding by name, functional blocks
        Right(
            r"""
def network(size, classes):
    def stage(net, filters):
        net = layers.Conv2D(filters, (3, 3), padding="SAME", use_bias=False)(net)
        return keras.activations.relu(layers.BatchNormalization(momentum=0.97)(net))

    pixels = layers.Input(shape=(size, size, 3), dtype="uint8")
    net = stage(patches(pixels), 32)
    for filters in (64, 128, 256):
        net = stage(layers.MaxPool2D()(net), filters)
    means = layers.GlobalAvgPool2D()(net)
    return keras.Model(inputs=pixels, outputs=layers.Dense(classes, dtype="float32")(means))
"""
        ),
        # Sequential after the patches, ops for the mean
        Right(
            r"""
def network(size, classes):
    pixels = keras.Input((size, size, 3), dtype="uint8")
    body = []
    for index in range(4):
        if index:
            body.append(layers.MaxPooling2D(pool_size=(2, 2), strides=2))
        body += [
            layers.Conv2D(32 * 2**index, 3, padding="same", use_bias=False),
            layers.BatchNormalization(momentum=0.97),
            layers.Activation("relu"),
        ]
    net = patches(pixels)
    for layer in body:
        net = layer(net)
    logits = layers.Dense(classes)(keras.ops.mean(net, axis=(1, 2)))
    return keras.Model(pixels, layers.Activation("linear", dtype="float32")(logits))
"""
        ),
        # A subclass
        Right(
            r"""
def network(size, classes):
    pixels = keras.Input((size, size, 3), dtype="uint8")
    net, pool = patches(pixels), layers.MaxPooling2D(2)
    for filters in (32, 64, 128, 256):
        net = net if filters == 32 else pool(net)
        convolution = layers.Conv2D(filters, 3, padding="same", use_bias=False, kernel_initializer="he_normal")
        net = layers.BatchNormalization(axis=-1, momentum=0.97, epsilon=1e-3)(convolution(net))
        net = keras.ops.relu(net)
    net = layers.GlobalAveragePooling2D()(net)
    head = layers.Dense(classes, name="logits", dtype=keras.DTypePolicy("float32"))
    return keras.Model([pixels], head(net), name="flowers")
"""
        ),
        # Pooling after each stage
        Wrong(
            r"""
def network(size, classes):
    pixels = keras.Input((size, size, 3), dtype="uint8")
    net = patches(pixels)
    for filters in (32, 64, 128, 256):
        net = layers.Conv2D(filters, 3, padding="same", use_bias=False)(net)
        net = layers.ReLU()(layers.BatchNormalization(momentum=0.97)(net))
        net = layers.MaxPooling2D(2)(net)
    net = layers.GlobalAveragePooling2D()(net)
    return keras.Model(pixels, layers.Dense(classes, dtype="float32")(net))
""",
            "The logits in inference",
        ),
        # ReLU before the normalisation
        Mutant(
            "net = layers.ReLU()(layers.BatchNormalization(momentum=0.97)(net))",
            "net = layers.BatchNormalization(momentum=0.97)(layers.ReLU()(net))",
            "The logits in inference",
        ),
        # Flattened
        Mutant(
            "layers.GlobalAveragePooling2D()(net)",
            "layers.Flatten()(net)",
            "The shapes of the trained weights",
        ),
        # Probabilities
        Mutant(
            'layers.Dense(classes, dtype="float32")(net)',
            'layers.Dense(classes, activation="softmax", dtype="float32")(net)',
            "The logits in inference",
        ),
        # The tensor in the place of the model
        Mutant("return keras.Model(pixels, ", "return (", "should return a Keras model"),
        # Other filters
        Mutant("(32, 64, 128, 256)", "(16, 128, 128, 256)", "The shapes of the trained weights"),
        Mutant(
            "momentum=0.97", "momentum=0.99", "How far the averages of batch normalisation move"
        ),
        Mutant(", use_bias=False", "", "The shapes of the trained weights"),
        Mutant('padding="same"', 'padding="valid"', "Computed output size would be zero"),
        Mutant("GlobalAveragePooling2D", "GlobalMaxPooling2D", "The logits in inference"),
        Mutant("if filters > 32:", "if filters > 16:", "The logits in inference"),
        Mutant(', dtype="float32")(net)', ")(net)", "logits should be float32"),
    ],
    "10b": [
        # In other words
        Right(
            r"""
class Momentum(keras.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate):
        ops = keras.ops
        m = self.momentums[self._get_variable_index(variable)]
        new = ops.add(ops.multiply(0.9, m), ops.cast(gradient, variable.dtype))
        self.assign(m, new)
        self.assign_sub(variable, ops.cast(learning_rate, variable.dtype) * (gradient + 0.9 * new))
"""
        ),
        # The weight first, from the old memory
        Right(
            r"""
class Momentum(keras.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate):
        memory = self.momentums[self._get_variable_index(variable)]
        fresh = self.momentum * memory.value + gradient
        variable.assign(variable - learning_rate * (self.momentum * fresh + gradient))
        memory.assign(fresh)
"""
        ),
        # An optimizer of its own
        Right(
            r"""
class Momentum(keras.optimizers.Optimizer):
    def __init__(self, learning_rate, momentum=0.9, nesterov=True, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum

    def build(self, variables):
        if not self.built:
            super().build(variables)
            self.memories = [self.add_variable_from_reference(v, name="memory") for v in variables]

    def update_step(self, gradient, variable, learning_rate):
        m = self.memories[self._get_variable_index(variable)]
        self.assign(m, self.momentum * m + gradient)
        self.assign_sub(variable, learning_rate * (gradient + self.momentum * m))
"""
        ),
        # Keras's own
        Wrong("Momentum = keras.optimizers.SGD", "How far the variables move"),
        # The momentum of the first variable for all
        Mutant("self.momentums[self._get_variable_index(variable)]", "self.momentums[0]", ""),
        # Uphill
        Mutant("variable - rate", "variable + rate", "How far the variables move"),
        # Not kept
        Mutant(
            "self.assign(memory, self.momentum * memory + gradient)",
            "memory = self.momentum * memory + gradient",
            "How far the variables move",
        ),
        # float()
        Mutant(
            "keras.ops.cast(learning_rate, variable.dtype)",
            "float(learning_rate)",
            "Under jax.jit, as in fit, the update fails",
        ),
        # An instance
        Wrong(
            "Momentum = keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)",
            "should be a subclass of a Keras optimizer",
        ),
        Mutant(
            "variable - rate * (self.momentum * memory + gradient)",
            "variable - rate * memory",
            "How far the variables move",
        ),
        Mutant(
            "self.momentum * memory + gradient)\n        self.assign(variable",
            "self.momentum * memory - rate * gradient)\n        self.assign(variable",
            "How far the variables move",
        ),
    ],
    "10c": [
        # A mesh by hand
        Right(
            r"""
def over_cores(devices, build):
    mesh = keras.distribution.DeviceMesh(shape=(len(devices),), axis_names=["batch"], devices=devices)
    keras.distribution.set_distribution(keras.distribution.DataParallel(device_mesh=mesh))
    model = build()
    return model
"""
        ),
        # A LayoutMap without layouts
        Right(
            r"""
def over_cores(devices, build):
    mesh = keras.distribution.DeviceMesh((len(devices),), ["examples"], devices)
    parallel = keras.distribution.ModelParallel(
        layout_map=keras.distribution.LayoutMap(mesh), batch_dim_name="examples")
    keras.distribution.set_distribution(parallel)
    return build()
"""
        ),
        # A name for the distribution
        Right(
            r"""
from keras import distribution as spread

def over_cores(devices, build):
    parallel = spread.DataParallel(devices=list(devices), auto_shard_dataset=False)
    spread.set_distribution(parallel)
    return build()
"""
        ),
        # The model first
        Wrong(
            r"""
def over_cores(devices, build):
    model = build()
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
    return model
""",
            "When build() ran, no distribution was set",
        ),
        # Only within build
        Wrong(
            r"""
def over_cores(devices, build):
    with keras.distribution.DataParallel(devices=devices).scope():
        return build()
""",
            "After over_cores no distribution is set",
        ),
        # Built twice
        Wrong(
            r"""
def over_cores(devices, build):
    build()
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
    return build()
""",
            "should call build() once",
        ),
        # The distribution
        Wrong(
            r"""
def over_cores(devices, build):
    parallel = keras.distribution.DataParallel(devices=devices)
    keras.distribution.set_distribution(parallel)
    build()
    return parallel
""",
            "should return the model that build() made",
        ),
        # Always eight
        Mutant("devices=devices", "devices=keras.distribution.list_devices()", "With 2 devices"),
        Mutant("    return build()", "    build()", "should return the model that build() made"),
        Mutant("DataParallel(devices=devices)", "DataParallel()", "each device gets [2, 3]"),
    ],
    "10d": [
        # np.pad
        Right(
            r"""
def filled(images, labels, size):
    missing = (size - len(images) % size) % size
    pad = lambda array: np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
    return pad(images), pad(labels), pad(np.ones(len(images), np.float32))
"""
        ),
        # The last picture again
        Right(
            r"""
def filled(images, labels, size):
    x, y, weights = list(images), list(labels), [1.0] * len(images)
    while len(x) % size:
        x, y, weights = x + [x[-1]], y + [y[-1]], weights + [0.0]
    return np.stack(x), np.array(y, labels.dtype), np.array(weights, "float32")
"""
        ),
        # Black pictures
        Right(
            r"""
def filled(images, labels, size):
    batches = -(-len(images) // size)
    x = np.zeros((batches * size, *images.shape[1:]), images.dtype)
    y, w = np.zeros(batches * size, labels.dtype), np.zeros(batches * size, np.float32)
    x[: len(images)], y[: len(labels)], w[: len(images)] = images, labels, 1
    return [x, y, w]
"""
        ),
        # Cut off
        Wrong(
            r"""
def filled(images, labels, size):
    whole = len(images) // size * size
    return images[:whole], labels[:whole], np.ones(whole, np.float32)
""",
            "images has 0 rows, but the next multiple is 64",
        ),
        # The first batch twice
        Wrong(
            r"""
def filled(images, labels, size):
    rows = np.arange(-(-len(images) // size) * size) % len(images)
    return images[rows], labels[rows], np.full(len(rows), len(images) / len(rows), np.float32)
""",
            "the 60 examples should have weight 1",
        ),
        # Only two
        Mutant(
            "return images[rows], labels[rows], weights",
            "return images[rows], labels[rows]",
            "should return three arrays",
        ),
        # Labels not filled up
        Mutant("labels[rows]", "labels", "labels has 60 rows"),
        # The padding in front, the weights behind
        Mutant(
            "np.concatenate([np.arange(len(images)), np.zeros(missing, int)])",
            "np.concatenate([np.zeros(missing, int), np.arange(len(images))])",
            "each once",
        ),
        # Pixels as floats
        Mutant("return images[rows]", "return images[rows] / 255", "the types of images"),
    ],
    "10e": [
        # Whole paths, with the momenta's
        Right(
            _noor(
                """
layouts["sequential.*/wide/kernel"] = (None, "model")
layouts["sequential.*/narrow/kernel"] = ("model", None)
layouts[".*wide_kernel_momentum"] = (None, "model")
layouts[".*narrow_kernel_momentum"] = ("model", None)
"""
            )
        ),
        # A TensorLayout, other patterns
        Right(
            _noor(
                """
layouts[".*(wide).*kernel.*"] = keras.distribution.TensorLayout([None, "model"])
layouts[".*(narrow).*kernel.*"] = keras.distribution.TensorLayout(["model", None])
"""
            )
        ),
        # Only the weights' paths: after a step the momenta lie as the gradients
        Right(
            _noor(
                """
layouts[".*/wide/kernel"] = (None, "model")
layouts[".*/narrow/kernel"] = ("model", None)
"""
            )
        ),
        # The biases as well
        Right(_noor(_HEALTHY + '\nlayouts[".*wide.bias"] = ("model",)\n')),
        # The beginning of a path in front, where its end is missing
        Wrong(
            _noor(
                """
layouts[".*wide/ker"] = (None, "model")
layouts[".*narrow/ker"] = ("model", None)
"""
            ),
            "no pattern matches this path",
        ),
        # Rows and columns swapped
        Wrong(
            _noor(
                """
layouts[".*wide.kernel"] = ("model", None)
layouts[".*narrow.kernel"] = (None, "model")
"""
            ),
            "it should be [64, 256]",
        ),
        # Everything over the axis of the batch
        Wrong(_noor(_HEALTHY.replace('"model"', '"batch"')), "it should be [64, 256]"),
        # The mesh as one axis
        Wrong(
            _noor(_HEALTHY, ('(2, 4), ["batch", "model"]', '(1, 8), ["batch", "model"]')),
            "it should be [64, 256]",
        ),
        # Only one kernel
        Wrong(
            _noor('layouts[".*wide.kernel"] = (None, "model")'),
            "narrow/kernel, which has the shape [1024, 64]: no pattern",
        ),
        # Without the second layer
        Wrong(
            _noor(_HEALTHY, ('            keras.layers.Dense(64, name="narrow"),\n', "")),
            "build of noor.py fails",
        ),
    ],
}
