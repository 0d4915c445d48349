"""What learners get wrong in lab 08, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_8B = r"""
def inference_fast(images):
    x = tf.nn.space_to_depth(images, 4)
    x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)
    x = v1.layers.max_pooling2d(x, 2, 2)
    x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)
    x = tf.reduce_mean(x, axis=[1, 2])
    return v1.layers.dense(x, 5)
"""

ANSWERS = {
    "8a": [
        Mutant(
            "padded[order[0]] = math.ceil(padded[order[0]]",
            "padded[-1] = math.ceil(padded[-1]",
            "order",
        ),
        Mutant("return item * math.prod(padded)", "return padded", "list"),
        # Math.ceil, list, numpy product
        Right(r"""
import numpy as np
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    for axis, tile in zip(order, (128, 8)):
        dims[axis] = math.ceil(dims[axis] / tile) * tile
    return int(np.prod(dims, dtype=np.int64)) * item
"""),
        # Helper, enumerate
        Right(r"""
def up(n, to):
    return n + (-n) % to
def stored_bytes(shape, order, item=4):
    inner, outer, *_ = order
    total = item
    for axis, n in enumerate(shape):
        total *= up(n, 128) if axis == inner else up(n, 8) if axis == outer else n
    return total
"""),
        # By the permuted shape
        Right(r"""
def stored_bytes(shape, order, item=4):
    permuted = [shape[axis] for axis in order]
    tiles = [128, 8] + [1] * (len(permuted) - 2)
    return item * math.prod((n + t - 1) // t * t for n, t in zip(permuted, tiles, strict=True))
"""),
        # Lambda and dict
        Right(r"""
stored_bytes = lambda shape, order, item=4: item * math.prod(-(-n // t) * t for n, t in ((n, {order[0]: 128, order[1]: 8}.get(axis, 1)) for axis, n in enumerate(shape)))
"""),
        # Last axes of the shape, whatever the order
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    dims[-1] = -(-dims[-1] // 128) * 128
    dims[-2] = -(-dims[-2] // 8) * 8
    return item * math.prod(dims)
""",
            "instead of those that `order` names",
        ),
        # Inverse permutation, by position
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    placed = [0] * len(shape)
    for axis, place in enumerate(order):
        placed[place] = shape[axis]
    placed[0] = -(-placed[0] // 128) * 128
    placed[1] = -(-placed[1] // 8) * 8
    return item * math.prod(placed)
""",
            "your function looks for axis 0",
        ),
        # By the size of the axis, not by its number
        Wrong(
            """
def stored_bytes(shape, order, item=4):
    first, second = shape[order[0]], shape[order[1]]
    sizes = [n + -n % 128 if n == first else n + -n % 8 if n == second else n for n in shape]
    return item * math.prod(sizes)
""",
            "not its size",
        ),
    ],
    "8b": [
        # First, since its check asks no compiler
        Mutant(
            "v1.layers.dense(tf.reduce_mean(x, [1, 2]), 5)",
            "v1.layers.dense(v1.layers.flatten(v1.layers.dense(v1.layers.flatten(x), 300)), 5)",
            "weights",
        ),
        Mutant("    x = tf.nn.space_to_depth(images, 4)", "    x = images", "images/s"),
        Mutant("conv2d(x, 128, 3", "conv2d(x, 8, 3", "GFLOP"),
        Mutant(
            "tf.reduce_mean(x, [1, 2]), 5)", "tf.reduce_mean(x, [1, 2]), 10)", "kinds of flower"
        ),
        Mutant(
            "tf.nn.space_to_depth(images, 4)",
            "images[:, :38, :38, :]",
            re.compile("all positions|cut"),
        ),
        # The one that the wrong ones below are made from
        Right(_8B),
        # Keras layers
        Right(r"""
import keras
def inference_fast(images):
    x = tf.nn.space_to_depth(images, 8)
    for filters in (64, 64, 64):
        x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.layers.Dense(5)(x)
"""),
        # Strides, helper, dense of 128
        Right(r"""
def block(x, filters, strides):
    return tf.nn.relu(v1.layers.conv2d(x, filters=filters, kernel_size=3, strides=strides, padding="SAME"))
def inference_fast(images):
    net = tf.nn.space_to_depth(images, block_size=4)
    net = block(block(net, 48, 2), 96, 1)
    net = tf.reduce_mean(net, [1, 2])
    net = v1.layers.dense(net, 128, activation=tf.nn.relu)
    return v1.layers.dense(net, 5)
"""),
        # One convolution
        Wrong(
            r"""
def inference_fast(images):
    x = tf.nn.space_to_depth(images, 4)
    x = v1.layers.conv2d(x, 512, 3, strides=2, padding="same", activation=tf.nn.relu)
    return v1.layers.dense(tf.reduce_mean(x, axis=[1, 2]), 5)
""",
            "At least two convolutions should affect the logits; yours has",
        ),
        # One convolution and a dense at each position
        Wrong(
            r"""
def inference_fast(images):
    x = tf.nn.space_to_depth(images, 4)
    x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)
    x = v1.layers.dense(x, 128, activation=tf.nn.relu)
    return v1.layers.dense(tf.reduce_mean(x, axis=[1, 2]), 5)
""",
            "At least two convolutions should affect the logits; yours has",
        ),
        # Softmax
        Wrong(
            _8B.replace(
                "return v1.layers.dense(x, 5)", "return tf.nn.softmax(v1.layers.dense(x, 5))"
            ),
            "sum to 1: leave the softmax out",
        ),
        # Flattened head
        Wrong(
            _8B.replace("tf.reduce_mean(x, axis=[1, 2])", "v1.layers.flatten(x)"),
            "weights, and more for larger images. Pool",
        ),
        # Variables in bfloat16
        Wrong(
            _8B.replace(
                "    x = tf.nn.space_to_depth(images, 4)\n",
                "    x = tf.cast(tf.nn.space_to_depth(images, 4), tf.bfloat16)\n",
            ).replace(
                "return v1.layers.dense(x, 5)", "return tf.cast(v1.layers.dense(x, 5), tf.float32)"
            ),
            "variables stay float32",
        ),
        # Bfloat16_scope: not float32
        Wrong(
            _8B.replace(
                '    x = tf.nn.space_to_depth(images, 4)\n    x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)\n    x = v1.layers.max_pooling2d(x, 2, 2)\n    x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)\n',
                '    x = tf.cast(tf.nn.space_to_depth(images, 4), tf.bfloat16)\n    with v1.tpu.bfloat16_scope():\n        x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)\n        x = v1.layers.max_pooling2d(x, 2, 2)\n        x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)\n    x = tf.cast(x, tf.float32)\n',
            ),
            "variables stay float32",
        ),
        # Logits in bfloat16
        Wrong(
            _8B.replace(
                "return v1.layers.dense(x, 5)", "return tf.cast(v1.layers.dense(x, 5), tf.bfloat16)"
            ),
            "expected float32, yours gives bfloat16",
        ),
    ],
    "8c": [
        Wrong("bfloat16_diagnosis = {}", "Not decided yet: one; two"),
        Wrong(
            "bfloat16_diagnosis = dict(one='D', two='D', three='D', four='D', five='D')",
            "The scope ends before the network is built",
        ),
        Wrong(
            "bfloat16_diagnosis = {**bfloat16_diagnosis, 'five': 'A'}",
            re.compile("Right: 4 of 5.*The layers still get bfloat16", re.S),
        ),
        Wrong(
            "bfloat16_diagnosis = {**bfloat16_diagnosis, 'one': 'B'}",
            "which type do the layers get",
        ),
        Wrong("bfloat16_diagnosis = {**bfloat16_diagnosis, 'two': 'C'}", "There is no scope"),
        Wrong(
            "bfloat16_diagnosis = {**bfloat16_diagnosis, 'three': 'D'}",
            "Which type does the result have",
        ),
        Wrong(
            "bfloat16_diagnosis = {**bfloat16_diagnosis, 'four': 'E'}", "is not one of A, B, C, D"
        ),
        Right(
            "bfloat16_diagnosis = {name: letter.lower() for name, letter in bfloat16_diagnosis.items()}"
        ),
        Right("bfloat16_diagnosis = dict(five='B', four='D', three='C', two='B', one='A')"),
    ],
    "8d": [
        Wrong(
            "next_change = ['A', 'C', 'D', 'E']",
            "Expected a dict with an answer for each of 1, 2, 3, 4",
        ),
        Wrong("next_change = {1: 'B', 2: 'B', 3: 'B', 4: 'B'}", "Right: 0 of 4."),
        Wrong(
            "next_change = {**next_change, 1: 'D'}", "What does the compiler do to a batch of 16"
        ),
        Wrong("next_change = {**next_change, 1: 'E'}", "one of the changes still helps"),
        Wrong("next_change = {**next_change, 2: 'A'}", "multiplies the images/s by 2.3"),
        Wrong("next_change = {**next_change, 2: 'B'}", "most bytes belong to weights"),
        Wrong("next_change = {**next_change, 3: 'A'}", "multiplies the images/s by only 1.01"),
        Wrong("next_change = {**next_change, 3: 'E'}", "seven eighths of the estimate"),
        # By the bound, which falls
        Wrong("next_change = {**next_change, 4: 'B'}", "stays the same"),
        Wrong("next_change = {**next_change, 4: 'C'}", "Does the step wait for the larger one"),
        Wrong("next_change = {**next_change, 4: 'D'}", "a fifth of the estimate"),
        Right("next_change = dict(zip((1, 2, 3, 4), 'ACDE', strict=True))"),
        Right("next_change = {4: 'e', 3: 'd', 2: 'c', 1: 'a'}"),
    ],
    "8e": [
        # Both shifted by their mean, and the matmul kept
        Right(r"""
def squared_distances(points, centres):
    p, c = points - 101.0, centres - 101.0
    return tf.reduce_sum(p * p, 1, keepdims=True) - 2 * p @ tf.transpose(c) + tf.reduce_sum(c * c, 1)
"""),
        # A centre at a time
        Right(r"""
def squared_distances(points, centres):
    columns = [tf.reduce_sum(tf.square(points - centre), axis=1) for centre in tf.unstack(centres)]
    return tf.stack(columns, axis=1)
"""),
        # The square of a norm, by name
        Right(r"""
def squared_distances(points, centres):
    return tf.norm(tf.expand_dims(points, 1) - tf.expand_dims(centres, 0), axis=-1) ** 2
"""),
        # A product of each difference with itself
        Right(r"""
def squared_distances(points, centres):
    apart = points[:, None] - centres
    return tf.einsum("bcd,bcd->bc", apart, apart)
"""),
        # As before
        Wrong("squared_distances = by_product", "subtract before you multiply"),
        # Another name for the same product
        Wrong(
            r"""
def squared_distances(points, centres):
    products = tf.einsum("bd,cd->bc", points, centres)
    return tf.reduce_sum(points**2, 1)[:, None] - 2 * products + tf.reduce_sum(centres**2, 1)
""",
            "subtract before you multiply",
        ),
        # Only the points shifted
        Wrong(
            r"""
def squared_distances(points, centres):
    return by_product(points - 101, centres)
""",
            "from point 0 to centre 0",
        ),
        # Rounded first
        Wrong(
            r"""
def squared_distances(points, centres):
    apart = tf.cast(points, tf.bfloat16)[:, None] - tf.cast(centres, tf.bfloat16)
    return tf.cast(tf.reduce_sum(apart**2, 2), tf.float32)
""",
            "from point 0 to centre 0",
        ),
        # The root of it
        Wrong(
            r"""
def squared_distances(points, centres):
    return tf.norm(points[:, None] - centres, axis=2)
""",
            "leave the root out",
        ),
        Mutant(", 2)", ", 1)", "The shape for 6 points and 4 centres"),
    ],
}
