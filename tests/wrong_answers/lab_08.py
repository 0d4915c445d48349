"""What learners get wrong in lab 08, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "8a": [
        Mutant("max(flop / peak, bytes_ / bandwidth)", "flop / peak + bytes_ / bandwidth", "sum"),
        Mutant(
            "max(flop / peak, bytes_ / bandwidth)", "min(flop / peak, bytes_ / bandwidth)", "both"
        ),
        Mutant("max(flop / peak, bytes_ / bandwidth)", "bytes_ / bandwidth", "arithmetic"),
        Mutant("max(flop / peak, bytes_ / bandwidth)", "flop / peak", "memory"),
        Mutant(
            "max(flop / peak, bytes_ / bandwidth)", "max(flop * peak, bytes_ * bandwidth)", "divide"
        ),
    ],
    "8b": [
        Mutant(
            "padded[order[0]] = math.ceil(padded[order[0]]",
            "padded[-1] = math.ceil(padded[-1]",
            "order",
        ),
        Mutant("padded[order[1]] / 8) * 8", "padded[order[1]] / 128) * 128", "multiple of 8"),
        Mutant("padded[order[0]] / 128) * 128", "padded[order[0]] / 8) * 8", "multiple of 128"),
        Mutant(
            "math.ceil(padded[order[0]] / 128) * 128",
            "(padded[order[0]] // 128 + 1) * 128",
            "fills",
        ),
        Mutant("return item * math.prod(padded)", "return math.prod(padded)", "bytes"),
        Mutant("return item * math.prod(padded)", "return item * math.prod(shape)", "padding"),
        Mutant("return item * math.prod(padded)", "return padded", "list"),
    ],
    "8c": [
        Mutant(
            "    x = tf.reduce_mean(x, [1, 2])\n    x = v1.layers.dense(x, 300",
            "    x = v1.layers.flatten(x)\n    x = v1.layers.dense(x, 300",
            "weights",
        ),
        Mutant("tf.reduce_mean(x, [1, 2])\n    x =", "x[:, 0, 0, :]\n    x =", "all positions"),
        Mutant(
            "tf.reduce_mean(x, [1, 2])\n    x =",
            "tf.reduce_mean(x, [0, 1])\n    x =",
            re.compile("axis 0|4, 5"),
        ),
        Mutant(
            "tf.reduce_mean(x, [1, 2])\n    x =",
            "tf.reduce_mean(x, [1, 2, 3], keepdims=True)[:, 0, 0]\n    x =",
            "20",
        ),
        Mutant(
            "    x = tf.reduce_mean(x, [1, 2])\n    x = v1.layers.dense(x, 300, activation=tf.nn.relu)\n",
            "    x = tf.reduce_mean(x, [1, 2])\n",
            "dense layer of 300",
        ),
    ],
    "8d": [
        Mutant("    x = tf.nn.space_to_depth(images, 4)", "    x = images", "images/s"),
        Mutant(
            "v1.layers.dense(tf.reduce_mean(x, [1, 2]), 5)",
            "v1.layers.dense(v1.layers.flatten(v1.layers.dense(v1.layers.flatten(x), 300)), 5)",
            "weights",
        ),
        Mutant("conv2d(x, 128, 3", "conv2d(x, 8, 3", "GFLOP"),
        Mutant(
            "tf.reduce_mean(x, [1, 2]), 5)", "tf.reduce_mean(x, [1, 2]), 10)", "kinds of flower"
        ),
        Mutant(
            "tf.nn.space_to_depth(images, 4)",
            "images[:, :38, :38, :]",
            re.compile("all positions|cut"),
        ),
    ],
    "8e": [
        Mutant(
            "        with v1.tpu.bfloat16_scope():\n            logits",
            "        if True:\n            logits",
            "variables",
        ),
        Mutant("inference(tf.cast(images, tf.bfloat16))", "inference(images)", "in bfloat16"),
        Mutant("return tf.cast(logits, tf.float32)", "return logits", "cast them"),
        Mutant("        return tf.cast(logits, tf.float32)\n", "", "return missing"),
        Mutant(
            "    return inference_bfloat16\n",
            "    return inference_bfloat16(tf.zeros([4, 152, 152, 3]))\n",
            "function",
        ),
    ],
    "8f": [
        Mutant('("arguments", "temporaries", "outputs", "code")', '("temporaries",)', "all that"),
        Mutant("(used / per_core)) // 128 * 128", "(used / per_core))", "multiple of 128"),
        Mutant("(used / per_core)) // 128 * 128", "used) // 128 * 128", "one image"),
        Mutant("// 128 * 128", "// 128 * 128 + 128", "does not fit"),
        Mutant(
            'in ("arguments", "temporaries"', 'in ("available", "arguments", "temporaries"', "room"
        ),
    ],
    "8g": [
        Mutant("global_batch = cores * per_core", "global_batch = per_core", "all cores"),
        Mutant("rate * global_batch / batch, examples", "rate, examples", "scale"),
        Mutant(
            "rate * global_batch / batch, examples",
            "rate * batch / global_batch, examples",
            "larger",
        ),
        Mutant("rate * global_batch / batch, examples", "rate * cores, examples", "in proportion"),
        Mutant("examples // global_batch", "examples / global_batch", "full steps"),
        Mutant("examples // global_batch", "-(-examples // global_batch)", "full steps"),
        Mutant("examples // global_batch", "examples // per_core", "full steps"),
    ],
}
