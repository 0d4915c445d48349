"""What learners get wrong in lab 08, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_8C = r"""
def inference_pooled(images):
    x = convolutions(images)
    x = tf.reduce_mean(x, axis=[1, 2])
    x = v1.layers.dense(x, 300, activation=tf.nn.relu)
    return v1.layers.dense(x, 5)
"""

_8D = r"""
def inference_fast(images):
    x = tf.nn.space_to_depth(images, 4)
    x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)
    x = v1.layers.max_pooling2d(x, 2, 2)
    x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)
    x = tf.reduce_mean(x, axis=[1, 2])
    return v1.layers.dense(x, 5)
"""

_8E = r"""
def in_bfloat16(inference):
    def inference_bfloat16(images):
        with v1.tpu.bfloat16_scope():
            logits = inference(tf.cast(images, tf.bfloat16))
        return tf.cast(logits, tf.float32)
    return inference_bfloat16
"""

_8F = r"""
def largest_batch(memory, per_core):
    used = memory["arguments"] + memory["temporaries"] + memory["outputs"] + memory["code"]
    fits = memory["available"] / (used / per_core)
    return int(fits // 128) * 128
"""

ANSWERS = {
    "8a": [
        Mutant("max(flop / peak, bytes_ / bandwidth)", "bytes_ / bandwidth", "arithmetic"),
        Mutant("max(flop / peak, bytes_ / bandwidth)", "flop / peak", "memory"),
        # Conditional
        Right(r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    arithmetic = flop / peak
    memory = bytes_ / bandwidth
    return arithmetic if arithmetic > memory else memory
"""),
        # Numpy
        Right(r"""
import numpy as np
def least_seconds(flop, bytes_, peak, bandwidth):
    return float(np.maximum(np.divide(flop, peak), np.divide(bytes_, bandwidth)))
"""),
        # Sorted, lambda
        Right(r"""
least_seconds = lambda flop, bytes_, peak, bandwidth: sorted([bytes_ / bandwidth, flop / peak])[-1]
"""),
        # Roofline by intensity
        Right(r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    attainable = min(peak, bandwidth * (flop / bytes_)) if flop else 0
    return flop / attainable if flop else bytes_ / bandwidth
"""),
        # Sum
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return flop / peak + bytes_ / bandwidth
""",
            "That is the sum of both times. They go on side by side",
        ),
        # Min
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return min(flop / peak, bytes_ / bandwidth)
""",
            "That is the shorter of the two times; the step ends when",
        ),
        # Integer division
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return max(flop // peak, bytes_ // bandwidth)
""",
            "s: divide with",
        ),
        # Swapped peaks
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return max(flop / bandwidth, bytes_ / peak)
""",
            "FLOP go with the peak, and bytes with the bandwidth; yours",
        ),
        # Arithmetic alone
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return flop / peak
""",
            "the memory needs 6.5 s: expected 6.5",
        ),
        # Memory alone
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return bytes_ / bandwidth
""",
            "the arithmetic needs",
        ),
        # Rounded
        Wrong(
            r"""
def least_seconds(flop, bytes_, peak, bandwidth):
    return round(max(flop / peak, bytes_ / bandwidth), 3)
""",
            "a usual time that is not rounded",
        ),
    ],
    "8b": [
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
        # No padding
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    return item * math.prod(shape)
""",
            "That is the array without padding",
        ),
        # Last axes of the shape, whatever the order
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    dims[-1] = -(-dims[-1] // 128) * 128
    dims[-2] = -(-dims[-2] // 8) * 8
    return item * math.prod(dims)
""",
            "does not go by `order`",
        ),
        # Order read backwards: the last is innermost
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    dims[order[-1]] = -(-dims[order[-1]] // 128) * 128
    dims[order[-2]] = -(-dims[order[-2]] // 8) * 8
    return item * math.prod(dims)
""",
            "yours reads `order` from its end",
        ),
        # The inverse permutation
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    inner, outer = order.index(0), order.index(1)
    dims[inner] = -(-dims[inner] // 128) * 128
    dims[outer] = -(-dims[outer] // 8) * 8
    return item * math.prod(dims)
""",
            "is the number of an axis; yours takes it for that axis's",
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
            "is the number of an axis; yours takes it for that axis's",
        ),
        # 8 and 128 swapped
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    dims[order[0]] = -(-dims[order[0]] // 8) * 8
    dims[order[1]] = -(-dims[order[1]] // 128) * 128
    return item * math.prod(dims)
""",
            "8 and 128 are swapped",
        ),
        # 8 forgotten
        Wrong(
            r"""
def stored_bytes(shape, order, item=4):
    dims = list(shape)
    dims[order[0]] = -(-dims[order[0]] // 128) * 128
    return item * math.prod(dims)
""",
            "Only the innermost axis is filled up",
        ),
        # By the size of the axis, not by its number
        Wrong(
            """
def stored_bytes(shape, order, item=4):
    first, second = shape[order[0]], shape[order[1]]
    sizes = [n + -n % 128 if n == first else n + -n % 8 if n == second else n for n in shape]
    return item * math.prod(sizes)
""",
            "not by its size",
        ),
    ],
    "8c": [
        # The one that the wrong ones below are made from
        Right(_8C),
        # Keras layers
        Right(r"""
import keras
def inference_pooled(images):
    x = convolutions(images)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dense(300, activation="relu")(x)
    return keras.layers.Dense(5)(x)
"""),
        # Average_pooling2d and flatten, relu apart
        Right(r"""
def inference_pooled(images):
    x = convolutions(images)
    size = x.shape[1:3].as_list()
    x = v1.layers.flatten(v1.layers.average_pooling2d(x, size, 1))
    hidden = tf.nn.relu(v1.layers.dense(inputs=x, units=300))
    return v1.layers.dense(inputs=hidden, units=5, activation=None)
"""),
        # Helper, mean twice, keepdims and squeeze
        Right(r"""
def head(vector):
    return v1.layers.dense(v1.layers.dense(vector, 300, tf.nn.relu), 5)
def inference_pooled(images):
    x = tf.reduce_mean(tf.reduce_mean(convolutions(images), 2), 1)
    return head(x)
"""),
        # Flattened as before
        Wrong(
            _8C.replace("tf.reduce_mean(x, axis=[1, 2])", "v1.layers.flatten(x)"),
            "weights: one for each position and filter. Pool before the",
        ),
        # Dense before the mean
        Wrong(
            _8C.replace(
                "    x = tf.reduce_mean(x, axis=[1, 2])\n    x = v1.layers.dense(x, 300, activation=tf.nn.relu)\n",
                "    x = v1.layers.dense(x, 300, activation=tf.nn.relu)\n    x = tf.reduce_mean(x, axis=[1, 2])\n",
            ),
            "The mean is taken after the dense layer, which then works",
        ),
        # Both dense before the mean
        Wrong(
            r"""
def inference_pooled(images):
    x = convolutions(images)
    x = v1.layers.dense(x, 300, activation=tf.nn.relu)
    return tf.reduce_mean(v1.layers.dense(x, 5), axis=[1, 2])
""",
            "The mean is taken after the dense layer, which then works",
        ),
        # Maximum
        Wrong(
            _8C.replace("reduce_mean", "reduce_max"), "That is each filter's maximum; take its mean"
        ),
        # Sum
        Wrong(
            _8C.replace("reduce_mean", "reduce_sum"), "times as large as its mean: take the mean"
        ),
        # No relu
        Wrong(
            _8C.replace(", activation=tf.nn.relu", ""),
            "has lost its relu: two layers without one are one layer",
        ),
        # Softmax
        Wrong(
            _8C.replace(
                "return v1.layers.dense(x, 5)", "return tf.nn.softmax(v1.layers.dense(x, 5))"
            ),
            "that is a softmax. The loss takes logits and does it",
        ),
        # Relu at the end
        Wrong(
            _8C.replace("v1.layers.dense(x, 5)", "v1.layers.dense(x, 5, activation=tf.nn.relu)"),
            "on the last layer: logits may be any number, leave it out",
        ),
        # Sigmoid at the end
        Wrong(
            _8C.replace("v1.layers.dense(x, 5)", "v1.layers.dense(x, 5, activation=tf.nn.sigmoid)"),
            "on the last layer: logits may be any number, leave it out",
        ),
        # Log softmax at the end
        Wrong(
            _8C.replace(
                "return v1.layers.dense(x, 5)", "return tf.nn.log_softmax(v1.layers.dense(x, 5))"
            ),
            "These are logarithms of probabilities: the loss takes",
        ),
    ],
    "8d": [
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
        Right(_8D),
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
            "At least two convolutions; yours has",
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
            "At least two convolutions; yours has",
        ),
        # Softmax
        Wrong(
            _8D.replace(
                "return v1.layers.dense(x, 5)", "return tf.nn.softmax(v1.layers.dense(x, 5))"
            ),
            "that is a softmax. The loss takes logits and does it",
        ),
        # Flattened head
        Wrong(
            _8D.replace("tf.reduce_mean(x, axis=[1, 2])", "v1.layers.flatten(x)"),
            "weights, and more where the images are larger: the head",
        ),
        # Variables in bfloat16
        Wrong(
            _8D.replace(
                "    x = tf.nn.space_to_depth(images, 4)\n",
                "    x = tf.cast(tf.nn.space_to_depth(images, 4), tf.bfloat16)\n",
            ).replace(
                "return v1.layers.dense(x, 5)", "return tf.cast(v1.layers.dense(x, 5), tf.float32)"
            ),
            "is the next one, and keeps variables in float",
        ),
        # Bfloat16_scope: not float32
        Wrong(
            _8D.replace(
                '    x = tf.nn.space_to_depth(images, 4)\n    x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)\n    x = v1.layers.max_pooling2d(x, 2, 2)\n    x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)\n',
                '    x = tf.cast(tf.nn.space_to_depth(images, 4), tf.bfloat16)\n    with v1.tpu.bfloat16_scope():\n        x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)\n        x = v1.layers.max_pooling2d(x, 2, 2)\n        x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)\n    x = tf.cast(x, tf.float32)\n',
            ),
            "is the next one, and keeps variables in float",
        ),
        # Logits in bfloat16
        Wrong(
            _8D.replace(
                "return v1.layers.dense(x, 5)", "return tf.cast(v1.layers.dense(x, 5), tf.bfloat16)"
            ),
            "expected float32, yours gives bfloat16",
        ),
    ],
    "8e": [
        Mutant("        return tf.cast(logits, tf.float32)\n", "", "return missing"),
        Mutant(
            "    return inference_bfloat16\n",
            "    return inference_bfloat16(tf.zeros([4, 152, 152, 3]))\n",
            "function",
        ),
        # The one that the wrong ones below are made from
        Right(_8E),
        # Lambda with a helper
        Right(r"""
def _inner(inference, images):
    with tf.compat.v1.tpu.bfloat16_scope("bfloat16"):
        return inference(images)
def in_bfloat16(inference):
    return lambda images: tf.cast(_inner(inference, tf.cast(images, dtype=tf.bfloat16)), dtype=tf.float32)
"""),
        # Partial, cast inside the scope
        Right(r"""
import functools
def _narrow(images, inference):
    with v1.tpu.bfloat16_scope():
        images = tf.cast(images, "bfloat16")
        out = inference(images)
        out = tf.cast(out, "float32")
    return out
def in_bfloat16(inference):
    return functools.partial(_narrow, inference=inference)
"""),
        # A class
        Right(r"""
class in_bfloat16:
    def __init__(self, inference):
        self.inference = inference
    def __call__(self, images):
        with v1.tpu.bfloat16_scope():
            result = self.inference(tf.saturate_cast(images, tf.bfloat16))
        return tf.cast(result, images.dtype)
"""),
        # No scope
        Wrong(
            _8E.replace("        with v1.tpu.bfloat16_scope():", "        if True:"),
            "small updates to them would be lost. Build the layers",
        ),
        # No cast of the images
        Wrong(
            _8E.replace("inference(tf.cast(images, tf.bfloat16))", "inference(images)"),
            "The layers should calculate in bfloat",
        ),
        # Logits stay bfloat16
        Wrong(
            _8E.replace("return tf.cast(logits, tf.float32)", "return logits"),
            "and the loss wants float",
        ),
        # Float16
        Wrong(
            _8E.replace("tf.cast(images, tf.bfloat16)", "tf.cast(images, tf.float16)"),
            "The layers should calculate in bfloat",
        ),
        # Softmax
        Wrong(
            _8E.replace(
                "return tf.cast(logits, tf.float32)",
                "return tf.nn.softmax(tf.cast(logits, tf.float32))",
            ),
            "The logits are not those that `inference` gave: cast them",
        ),
        # Cast and back at once
        Wrong(
            _8E.replace(
                "inference(tf.cast(images, tf.bfloat16))",
                "inference(tf.cast(tf.cast(images, tf.bfloat16), tf.float32))",
            ),
            "The layers should calculate in bfloat",
        ),
        # Returns logits of one call
        Wrong(
            r"""
def in_bfloat16(inference):
    with v1.tpu.bfloat16_scope():
        return inference
""",
            "The layers should calculate in bfloat",
        ),
        # The scope around the definition
        Wrong(
            r"""
def in_bfloat16(inference):
    with v1.tpu.bfloat16_scope():
        def inference_bfloat16(images):
            return tf.cast(inference(tf.cast(images, tf.bfloat16)), tf.float32)
    return inference_bfloat16
""",
            "small updates to them would be lost. Build the layers",
        ),
        # Inference_fast always
        Wrong(
            _8E.replace("inference(tf.cast", "inference_fast(tf.cast"),
            "Your function never calls `inference`",
        ),
        # No return
        Wrong(
            _8E.replace("return inference_bfloat16", "inference_bfloat16"),
            "should return a function of the images; yours returns None",
        ),
    ],
    "8f": [
        # The dearest line
        Wrong(
            """
def best_change(lines, changes):
    for line in lines:
        for name, (part, left) in changes.items():
            if part in line.place.code:
                total = sum(each.cycles for each in lines)
                return name, total / (total - (1 - left) * line.cycles)
""",
            "a tenth of it is 50,000 cycles",
        ),
        # The first line alone of those that it touches
        Wrong(
            """
def best_change(lines, changes):
    total = sum(each.cycles for each in lines)
    saved = {}
    for name, (part, left) in changes.items():
        touched = [each.cycles for each in lines if part in each.place.code]
        saved[name] = (1 - left) * touched[0] if touched else 0
    best = max(saved, key=saved.get)
    return best, total / (total - saved[best])
""",
            "both are saved",
        ),
        # The largest factor
        Wrong(
            """
def best_change(lines, changes):
    best = min(changes, key=lambda name: changes[name][1])
    part, left = changes[best]
    total = sum(each.cycles for each in lines)
    return best, total / (total - (1 - left) * sum(each.cycles for each in lines if part in each.place.code))
""",
            "with the faster convolution 200,000",
        ),
        # Only lines with code in the whole
        Wrong(
            """
def best_change(lines, changes):
    known = [each for each in lines if each.place.code]
    total = sum(each.cycles for each in known)
    saved = {n: (1 - left) * sum(e.cycles for e in known if part in e.place.code) for n, (part, left) in changes.items()}
    best = max(saved, key=saved.get)
    return best, total / (total - saved[best])
""",
            "All lines together",
        ),
        # What remains, the smallest
        Right("""
def best_change(lines, changes):
    def after(name):
        part, left = changes[name]
        return sum(each.cycles * (left if part in each.place.code else 1) for each in lines)
    best = min(changes, key=after)
    return [best, sum(each.cycles for each in lines) / after(best)]
"""),
        # NumPy
        Right("""
import numpy
def best_change(lines, changes):
    cycles = numpy.array([each.cycles for each in lines])
    rest = {n: (cycles * [left if p in str(e.place.code) else 1 for e in lines]).sum() for n, (p, left) in changes.items()}
    best = min(rest, key=rest.get)
    return best, cycles.sum() / rest[best]
"""),
        # By str(place), sorted
        Right("""
def best_change(lines, changes):
    total = sum(line.cycles for line in lines)
    ranked = []
    for name in changes:
        part, left = changes[name]
        rest = total
        for line in lines:
            if part in str(line.place):
                rest -= line.cycles * (1 - left)
        ranked.append((total / rest, name))
    times, name = sorted(ranked)[-1]
    return name, times
"""),
    ],
    "8g": [
        # The one that the wrong ones below are made from
        Right(_8F),
        # Sum over keys, integers
        Right(r"""
def largest_batch(memory, per_core):
    parts = ("arguments", "temporaries", "outputs", "code")
    used = int(sum(memory[part] for part in parts))
    images = int(memory["available"]) * per_core // used
    return images - images % 128
"""),
        # Math.floor, dict comprehension
        Right(r"""
def largest_batch(memory, per_core):
    used = sum(value for kind, value in memory.items() if kind in {"arguments", "temporaries", "outputs", "code"})
    an_image = used / per_core
    return 128 * math.floor(memory["available"] / an_image / 128)
"""),
        # Code is not counted as growing
        Right(r"""
def largest_batch(memory, per_core):
    grows = memory["arguments"] + memory["temporaries"] + memory["outputs"]
    left = memory["available"] - memory["code"]
    return int(left * per_core / grows) // 128 * 128
"""),
        # A float
        Wrong(
            _8F.replace("int(fits // 128) * 128", "fits // 128 * 128"),
            "is not a whole number; a batch size is one: int",
        ),
        # Not a multiple
        Wrong(
            _8F.replace("int(fits // 128) * 128", "int(fits)"),
            "the last images would bring padding for the rest of a",
        ),
        # Rounded up
        Wrong(
            _8F.replace("int(fits // 128) * 128", "math.ceil(fits / 128) * 128"),
            "do not fit. All four parts take room, and what does",
        ),
        # Rounded to the nearest
        Wrong(
            _8F.replace("int(fits // 128) * 128", "round(fits / 128) * 128"),
            "10,718 images fit, in whole 128s",
        ),
        # Temporaries alone
        Wrong(
            _8F.replace(
                'used = memory["arguments"] + memory["temporaries"] + memory["outputs"] + memory["code"]',
                'used = memory["temporaries"]',
            ),
            "Those would fit if temporaries were all that takes room",
        ),
        # Temporaries forgotten
        Wrong(
            _8F.replace(' + memory["temporaries"]', ""),
            "Without the temporaries that is too many",
        ),
        # Arguments forgotten
        Wrong(
            _8F.replace('memory["arguments"] + ', ""),
            "Without the arguments that is too many",
        ),
        # Outputs forgotten
        Wrong(
            _8F.replace(' + memory["outputs"]', ""),
            "Without the outputs that is too many",
        ),
        # Available counted in
        Wrong(
            _8F.replace(
                'used = memory["arguments"] + memory["temporaries"] + memory["outputs"] + memory["code"]',
                "used = sum(memory.values())",
            ),
            "fit. How much does one image take?",
        ),
        # Bytes of all images, not of one
        Wrong(_8F.replace("(used / per_core)", "used"), "fit. How much does one image take?"),
    ],
    "8h": [
        # Floor division, helper
        Right(r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    global_batch = per_core * cores
    scale = global_batch / batch
    return global_batch, rate * scale, examples // global_batch
"""),
        # Divmod, keyword style
        Right(r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    total = cores * per_core
    steps, _rest = divmod(examples, total)
    return (total, total * rate / batch, steps)
"""),
        # Int of a float
        Right(r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = int(cores) * int(per_core)
    return b, b / batch * rate, int(examples / b)
"""),
        # Steps rounded up
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate * b / batch, math.ceil(examples / b)
""",
            "and some left over",
        ),
        # Steps a float
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate * b / batch, examples / b
""",
            "and some left over",
        ),
        # Rate times the cores
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate * cores, examples // b
""",
            "The rate grows in proportion to the global batch",
        ),
        # Rate scaled by the square root
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate * math.sqrt(b / batch), examples // b
""",
            "The rate grows in proportion to the global batch",
        ),
        # Rate not scaled
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate, examples // b
""",
            "The rate is that of the small batch: scale it by global",
        ),
        # Rate divided
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate * batch / b, examples // b
""",
            "A larger batch takes a larger rate, not a smaller one",
        ),
        # Steps by batch a core
        Wrong(
            r"""
def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    b = cores * per_core
    return b, rate * b / batch, examples // per_core
""",
            "and some left over",
        ),
    ],
    "8i": [
        Mutant(
            "return (slow - fast) / (steps / short - steps / long)",
            "return slow - fast",
            "divide by how many more",
        ),
        Mutant("/ (steps / short - steps / long)", "/ steps", "a run makes steps / loop calls"),
        Mutant(
            "/ (steps / short - steps / long)",
            "/ (steps / short)",
            "a run makes steps / loop calls",
        ),
        Mutant(
            "/ (steps / short - steps / long)", "/ (long - short)", "a run makes steps / loop calls"
        ),
        Mutant(
            "(slow - fast) / (steps",
            "1000 * (slow - fast) / (steps",
            "a run makes steps / loop calls",
        ),
        # In the order of the dict, with loops by name
        Wrong(
            """
def call_seconds(timed, steps):
    return (timed[1] - timed[100]) / (steps - steps / 100)
""",
            "raised KeyError",
        ),
        # The order of the dict
        Wrong(
            """
def call_seconds(timed, steps):
    loops, times = list(timed), list(timed.values())
    return (times[0] - times[1]) / abs(steps / loops[0] - steps / loops[1])
""",
            "either order",
        ),
        # What a step takes
        Wrong(
            """
def call_seconds(timed, steps):
    return min(timed.values()) / steps
""",
            "a run makes steps / loop calls",
        ),
        # A line through two points
        Right("""
import numpy
def call_seconds(timed, steps):
    calls = [steps / loop for loop in timed]
    slope, _ = numpy.polyfit(calls, list(timed.values()), 1)
    return slope
"""),
        # Two unknowns, in either order
        Right("""
def call_seconds(timed, steps):
    (a, ta), (b, tb) = timed.items()
    return (ta - tb) / (steps / a - steps / b)
"""),
        # Per step first
        Right("""
def call_seconds(timed, steps):
    short, long = min(timed), max(timed)
    per_step = (timed[short] - timed[long]) / steps
    return per_step / (1 / short - 1 / long)
"""),
        # From what a step takes
        Right("""
def call_seconds(timed, steps):
    a, b = timed
    step = (a * timed[a] - b * timed[b]) / ((a - b) * steps)
    return (timed[a] - steps * step) * a / steps
"""),
    ],
    "8j": [
        Mutant(
            "        if checkpoint % loop == 0 and loop * step >= share * (loop * step + call):\n            return loop\n    return checkpoint",
            "        if checkpoint % loop == 0 and loop * step >= share * (loop * step + call):\n            return loop",
            "return None there: is a return missing?",
        ),
        # What would do without a checkpoint
        Wrong(
            """
def shortest_loop(step, call, checkpoint, share):
    return math.ceil(share * call / ((1 - share) * step))
""",
            "the shortest loop that divides 1000",
        ),
        # As long as possible
        Wrong(
            """
def shortest_loop(step, call, checkpoint, share):
    return checkpoint
""",
            "A shorter loop is enough",
        ),
        # Rounded up to a multiple, not a divisor
        Wrong(
            """
def shortest_loop(step, call, checkpoint, share):
    least = math.ceil(share * call / ((1 - share) * step) - 1e-9)
    return checkpoint // max(1, checkpoint // least)
""",
            "the shortest loop that divides",
        ),
        # A float
        Wrong(
            """
def shortest_loop(step, call, checkpoint, share):
    for calls in range(checkpoint, 0, -1):
        loop = checkpoint / calls
        if loop.is_integer() and loop * step / (loop * step + call) >= share - 1e-12:
            return loop
    return float(checkpoint)
""",
            "a whole number",
        ),
        # next()
        Right("""
def shortest_loop(step, call, checkpoint, share):
    divisors = (n for n in range(1, checkpoint + 1) if not checkpoint % n)
    return next((n for n in divisors if n * step / (n * step + call) >= share - 1e-9), checkpoint)
"""),
        # Solved for n
        Right("""
def shortest_loop(step, call, checkpoint, share):
    least = share * call / ((1 - share) * step)
    fitting = [n for n in range(1, checkpoint + 1) if checkpoint % n == 0 and n >= least - 1e-9]
    return min(fitting, default=checkpoint)
"""),
        # NumPy
        Right("""
import numpy
def shortest_loop(step, call, checkpoint, share):
    loops = numpy.arange(1, checkpoint + 1)
    loops = loops[checkpoint % loops == 0]
    busy = loops * step / (loops * step + call)
    return int(loops[busy >= share - 1e-9].min()) if (busy >= share - 1e-9).any() else checkpoint
"""),
        # From what is idle, without a tolerance
        Right("""
def shortest_loop(step, call, checkpoint, share):
    for loop in range(1, checkpoint + 1):
        if checkpoint % loop == 0 and 1 - call / (loop * step + call) >= share:
            return loop
    return checkpoint
"""),
        # As a ratio, without a tolerance
        Right("""
def shortest_loop(step, call, checkpoint, share):
    fits = lambda loop: checkpoint % loop == 0 and call / (loop * step) <= 1 / share - 1
    return next(filter(fits, range(1, checkpoint + 1)), checkpoint)
"""),
    ],
    "8k": [
        Mutant(
            "tf.cast(tensor, tf.float32) if",
            "tf.cast(tensor, tf.bfloat16) if",
            "expected ('float32",
        ),
        # Not a function
        Wrong(
            """
def narrowed(input_fn):
    return input_fn({"batch_size": 8, "taken": 3}).map(lambda *parts: parts)
""",
            "should return an input_fn",
        ),
        # Params forgotten
        Wrong(
            """
def narrowed(input_fn):
    def new():
        return input_fn({"batch_size": 8, "taken": 3})
    return new
""",
            "input_fn(params)",
        ),
        # Only the lab's structure
        Wrong(
            """
def narrowed(input_fn):
    def new(params):
        def narrow(features, labels):
            return {"pixels": tf.cast(features["pixels"], tf.float32)}, labels
        return input_fn(params).map(narrow)
    return new
""",
            re.compile("raised|structure should stay"),
        ),
        # Dict features alone
        Wrong(
            """
def narrowed(input_fn):
    def narrow(features, labels):
        features = {k: tf.cast(v, tf.float32) if v.dtype == tf.float64 else v for k, v in features.items()}
        return features, labels
    return lambda params: input_fn(params).map(narrow)
""",
            "raised",
        ),
        # A list
        Wrong(
            """
def narrowed(input_fn):
    def narrow(t):
        return tf.cast(t, tf.float32) if t.dtype == tf.float64 else t
    return lambda params: [tf.nest.map_structure(narrow, each) for each in input_fn(params)]
""",
            "should return a dataset",
        ),
        # By element_spec
        Right("""
def narrowed(input_fn):
    def new(params):
        dataset = input_fn(params)
        spec = dataset.element_spec
        def convert(*element):
            element = element if isinstance(spec, tuple) else element[0]
            return tf.nest.map_structure(
                lambda t, s: tf.cast(t, tf.float32) if s.dtype is tf.float64 else t, element, spec)
        return dataset.map(convert, num_parallel_calls=tf.data.AUTOTUNE)
    return new
"""),
        # Recursion
        Right("""
def _slim(value):
    if isinstance(value, dict):
        return {key: _slim(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(map(_slim, value))
    return tf.cast(value, "float32") if value.dtype == "float64" else value
def narrowed(input_fn):
    return lambda params: input_fn(params).map(lambda *x: _slim(x if len(x) > 1 else x[0]))
"""),
        # Functools, keyword
        Right("""
import functools
def _new(input_fn, params):
    def each(*parts):
        flat = [tf.cast(t, tf.float32) if t.dtype == tf.float64 else t for t in tf.nest.flatten(parts)]
        packed = tf.nest.pack_sequence_as(parts, flat)
        return packed if len(packed) > 1 else packed[0]
    return input_fn(params).map(each).prefetch(1)
def narrowed(input_fn):
    return functools.partial(_new, input_fn)
"""),
    ],
}
