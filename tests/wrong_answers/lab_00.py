"""Answers to lab 00: right ones in other habits, and wrong ones with the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "0a": [
        Mutant("return 2 * m * k * n", "return m * k * n", "half"),
        Mutant("return 2 * m * k * n", "return 2 * m * n", "sum of k products"),
        Mutant("return 2 * m * k * n", "return 2 * (m * k + k * n)", "sum of k products"),
        Mutant("return 2 * m * k * n", "return 2 * m * k * m", "sum of k products"),
        Right(
            "def matmul_flop(m, k, n):\n    multiplications = additions = m * n * k\n    return multiplications + additions"
        ),
        Right("import numpy as np\nmatmul_flop = lambda m, k, n: 2 * np.prod([m, k, n])"),
        Right(
            "def per_entry(k):\n    return 2.0 * k\n\n\ndef matmul_flop(m, k, n):\n    return per_entry(k) * m * n"
        ),
        Right(
            "def matmul_flop(m, k, n):\n    return sum(2 * k for row in range(m) for column in range(n))"
        ),
        Wrong("def matmul_flop(m, k, n):\n    return m * n * (2 * k - 1)", "k additions"),
        Wrong("def matmul_flop(m, k, n):\n    return 2 * 3 * 5 * 7", "[11, 2]"),
        Wrong("def matmul_flop(m, k, n):\n    return 2 * m * k * n / 1e9", "GFLOP"),
        Wrong("def matmul_flop(m, k, n):\n    return m * k + k * n", "sum of k products"),
        Wrong("def matmul_flop(m, k, n):\n    return 2 * k * (m + n)", "sum of k products"),
        Wrong("def matmul_flop(m, k, n):\n    print(2 * m * k * n)", "return missing"),
        Wrong("def matmul_flop(m, k, n):\n    return 2 * m * k, 2 * k * n", "number"),
    ],
    "0b": [
        Mutant("2 * rows * columns * hertz", "rows * columns * hertz", "half"),
        Mutant("2 * rows * columns * hertz", "2 * (rows + columns) * hertz", "grid"),
        Mutant("2 * rows * columns * hertz", "2 * rows * columns / hertz", "cycles a second"),
        Mutant("2 * rows * columns * hertz", "2 * rows * columns", "cycles a second"),
        Right(
            "def peak_flops(rows, columns, hertz):\n    cells = rows * columns\n    per_cycle = cells + cells\n    return per_cycle * hertz"
        ),
        Right("peak_flops = lambda rows, columns, hertz: 2.0 * rows * columns * hertz"),
        Right(
            "def cells(rows, columns):\n    return rows * columns\n\n\ndef peak_flops(rows, columns, hertz):\n    if not hertz:\n        return 0\n    return cells(columns=columns, rows=rows) * 2 * hertz"
        ),
        Wrong(
            "def peak_flops(rows, columns, hertz):\n    return 2 * rows * rows * hertz",
            re.compile("columns|cells"),
        ),
        Wrong("def peak_flops(rows, columns, hertz):\n    return 2 * rows * hertz", "cells"),
        Wrong(
            "def peak_flops(rows, columns, hertz):\n    return 2 * rows * columns * hertz / 1e12",
            "TFLOP",
        ),
        Wrong("def peak_flops(rows, columns, hertz):\n    return rows * columns * hertz", "half"),
        Wrong(
            "def peak_flops(rows, columns, hertz):\n    return 4 * rows * columns * hertz", "twice"
        ),
        Wrong(
            "def peak_flops(rows, columns, hertz):\n    return 2 * (rows + columns) * hertz",
            "cells",
        ),
        Wrong(
            "def peak_flops(rows, columns, hertz):\n    return 2 * 128 * 128 * 700e6",
            re.compile("rows|columns"),
        ),
    ],
    "0c": [
        Mutant("return tf.reduce_mean(losses)", "return losses", "scalar"),
        Mutant("return tf.reduce_mean(losses)", "return losses.numpy().mean()", "numpy"),
        Mutant("features @ weights", "tf.zeros([8, 1000])", "weights"),
        Right(
            "def step(features, labels):\n    logits = tf.linalg.matmul(features, weights)\n    losses = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 1000), logits)\n    return tf.reduce_mean(losses)"
        ),
        Right(
            "def step(features, labels):\n    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)\n    return loss(labels, tf.matmul(features, weights))"
        ),
        Right(
            "def cross_entropy(labels, logits):\n    logs = tf.nn.log_softmax(logits)\n    return -tf.gather(logs, labels, batch_dims=1)\n\n\ndef step(features, labels):\n    return tf.math.reduce_mean(cross_entropy(labels, features @ weights))"
        ),
        Right(
            "step = lambda features, labels: tf.reduce_mean(\n    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(features, weights))\n)"
        ),
        Right(
            "@tf.function\ndef step(features, labels):\n    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features @ weights)\n    return tf.reduce_sum(losses) / tf.cast(tf.shape(labels)[0], tf.float32)"
        ),
        Wrong(
            "def step(features, labels):\n    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.nn.softmax(features @ weights))\n    return tf.reduce_mean(losses)",
            "softmax",
        ),
        Wrong(
            "def step(features, labels):\n    return tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, features @ weights))",
            "logits",
        ),
        Wrong(
            "def step(features, labels):\n    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features @ weights)\n    return tf.reduce_sum(losses) / 8",
            re.compile("batch"),
        ),
        Wrong(
            "def step(features, labels):\n    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features @ weights)\n    return float(tf.reduce_mean(losses))",
            "SymbolicTensor",
        ),
        Wrong(
            "def step(features, labels):\n    logits = features @ weights\n    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)\n    return tf.reduce_mean(losses), logits",
            "tensor",
        ),
        Wrong(
            "def step(features, labels):\n    kernel = tf.zeros([1024, 1000])\n    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features @ kernel))",
            "weights",
        ),
        Wrong(
            "def step(features, labels):\n    return tf.reduce_mean(tf.square(tf.one_hot(labels, 1000) - features @ weights))",
            "cross-entropy",
        ),
        Wrong(
            "def step(features, labels):\n    return -tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features @ weights))",
            "sign",
        ),
    ],
}
