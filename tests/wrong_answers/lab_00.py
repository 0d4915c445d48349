"""What learners get wrong in lab 00, and the words that they must hear."""

from wrong_answers import Mutant

ANSWERS = {
    "0a": [
        Mutant("return 2 * m * k * n", "return m * k * n", "half"),
        Mutant("return 2 * m * k * n", "return 2 * m * n", "sum of k products"),
        Mutant("return 2 * m * k * n", "return 2 * (m * k + k * n)", "sum of k products"),
        Mutant("return 2 * m * k * n", "return 2 * m * k * m", "sum of k products"),
    ],
    "0b": [
        Mutant("2 * rows * columns * hertz", "rows * columns * hertz", "half"),
        Mutant("2 * rows * columns * hertz", "2 * (rows + columns) * hertz", "grid"),
        Mutant("2 * rows * columns * hertz", "2 * rows * columns / hertz", "cycles a second"),
        Mutant("2 * rows * columns * hertz", "2 * rows * columns", "cycles a second"),
    ],
    "0c": [
        Mutant("return tf.reduce_mean(losses)", "return losses", "scalar"),
        Mutant("return tf.reduce_mean(losses)", "return tf.reduce_sum(losses)", "mean"),
        Mutant("return tf.reduce_mean(losses)", "return losses.numpy().mean()", "numpy"),
        Mutant("(labels, logits)", "(labels, tf.nn.softmax(logits))", "logits"),
        Mutant("features @ weights", "tf.zeros([8, 1000])", "weights"),
    ],
}
