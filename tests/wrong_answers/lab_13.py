"""What learners get wrong in lab 13, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_LINE = r"""
def write_line(following, first, end, most):
    def more(n, last, line):
        return tf.logical_and(n < most, tf.not_equal(last, end))
    def write(n, last, line):
        last = following(last)
        return n + 1, last, tf.tensor_scatter_nd_update(line, [[n]], [last])
    n, _, line = tf.while_loop(more, write, (tf.constant(0), first, tf.zeros([most], tf.int32)))
    return line, n
"""

ANSWERS = {
    "13a": [
        Right('continues = "B"'),
        Right("continues = cut_b.__name__"),
        Wrong('continues = "a"', "gets the state of row 0"),
        Wrong('continues = "cut_c"', "has read already"),
        Wrong('continues = "none"', "must be 'a', 'b' or 'c'"),
        Wrong("continues = cut_b", "must be 'a', 'b' or 'c'"),
    ],
    "13b": [
        # A function of its own, with AutoGraph's while
        Right(
            """
def write_line(following, first, end, most):
    @tf.function
    def go(first):
        line = tf.fill([most], end)
        n = tf.constant(0)
        last = first
        while n < most and last != end:
            last = following(last)
            line = tf.tensor_scatter_nd_update(line, [[n]], [last])
            n += 1
        return line, n
    return go(first)
""",
        ),
        Mutant("return (count < most) & (last != end)", "return count < most", "end"),
        Mutant(
            "return (count < most) & (last != end)", "return last != end", "goes on past the last"
        ),
        Mutant("        last = following(last)\n", "        following(last)\n", "following"),
        Mutant("    return line, count\n", "    return line[:count], count\n", "shape"),
        Mutant("    return line, count\n", "    return line\n", "pair"),
        Mutant(
            "return count + 1, last, tf.tensor",
            "return count + 1, last + 0, tf.identity(line) if True else tf.tensor",
            "following",
        ),
        Mutant("    return line, count\n", "", "return missing"),
        # The one that the wrong ones below are made from
        Right(_LINE),
        # TensorArray
        Right(r"""
def write_line(following, first, end, most):
    array = tf.TensorArray(tf.int32, size=most, element_shape=[])
    def cond(n, last, _):
        return (n < most) & (last != end)
    def body(n, last, array):
        new = following(last)
        return n + 1, new, array.write(n, new)
    n, _, array = tf.while_loop(cond, body, [0, first, array])
    return array.stack(), n
"""),
        # Maximum_iterations, one_hot blend
        Right(r"""
def write_line(following, first, end, most):
    places = tf.range(most)
    def body(count, last, line):
        new = following(last)
        return count + 1, new, tf.where(places == count, new, line)
    count, _, line = tf.while_loop(lambda count, last, line: tf.not_equal(last, end), body,
        loop_vars=(tf.zeros([], tf.int32), first, tf.fill([most], end)), maximum_iterations=most)
    return line, count
"""),
        # A done flag
        Right(r"""
def write_line(following, first, end, most):
    def step(state):
        n, last, line, _ = state
        new = following(last)
        return [(n + 1, new, tf.tensor_scatter_nd_update(line, tf.reshape(n, [1, 1]), tf.reshape(new, [1])), tf.equal(new, end))]
    start = (tf.constant(0), first, tf.zeros(most, tf.int32), tf.constant(False))
    (written, _, line, _), = tf.while_loop(lambda s: ~s[3] & (s[0] < most), step, [start])
    return line, written
"""),
        # Grows
        Wrong(
            r"""
def write_line(following, first, end, most):
    def more(line):
        return tf.logical_and(tf.shape(line)[0] < most + 1, tf.not_equal(line[-1], end))
    (line,) = tf.while_loop(more, lambda line: (tf.concat([line, following(line[-1])[None]], 0),), (first[None],), shape_invariants=(tf.TensorShape([None]),))
    return line[1:], tf.shape(line)[0] - 1
""",
            "the shapes and types of the line",
        ),
        # End is not counted
        Wrong(
            _LINE.replace("return line, n", "return line, tf.maximum(n - 1, 0)"),
            "with end=9 and most=",
        ),
        # Never ends before it is full
        Wrong(
            _LINE.replace("tf.logical_and(n < most, tf.not_equal(last, end))", "n < most"),
            "with end=9 and most=",
        ),
        # Overruns
        Wrong(
            _LINE.replace(
                "tf.logical_and(n < most, tf.not_equal(last, end))", "tf.not_equal(last, end)"
            ),
            "positions, the loop goes on past the last position: it should end at",
        ),
        # One place short
        Wrong(_LINE.replace("n < most", "n < most - 1"), "with end=9 and most="),
        # First is in the line
        Wrong(
            r"""
def write_line(following, first, end, most):
    def more(n, last, line):
        return tf.logical_and(n < most, tf.not_equal(last, end))
    def write(n, last, line):
        return n + 1, following(last), tf.tensor_scatter_nd_update(line, [[n]], [last])
    n, _, line = tf.while_loop(more, write, (tf.constant(0), first, tf.zeros([most], tf.int32)))
    return line, n
""",
            "`following` counts up from 3, with end=9",
        ),
        # Python loop over values
        Wrong(
            r"""
def write_line(following, first, end, most):
    line, last = [], first
    while len(line) < most:
        last = following(last)
        line.append(int(last))
        if int(last) == int(end):
            break
    return tf.constant(line + [0] * (most - len(line))), tf.constant(len(line))
""",
            "Your code raised NotImplementedError: The condition of while loop",
        ),
        # Unrolled: Python for
        Wrong(
            r"""
def write_line(following, first, end, most):
    last, line, alive, count = first, [], tf.constant(True), tf.constant(0)
    for _ in range(most):
        last = following(last)
        line.append(last)
        count += tf.cast(alive, tf.int32)
        alive = alive & (last != end)
    return tf.stack(line), count
""",
            "There is no loop in the program: a Python loop puts",
        ),
        # The same character again
        Wrong(
            _LINE.replace("last = following(last)", "last = following(first)"),
            "`following` counts up from 3, with end=9",
        ),
        # Backwards
        Wrong(
            _LINE.replace("return line, n", "return line[::-1], n"),
            "`following` counts up from 3, with end=9",
        ),
    ],
    "13c": [
        # Keras's own operations
        Right(
            r"""
def attend(query, key, value):
    length, width = query.shape[1:]
    scores = keras.ops.einsum("bqd,bkd->bqk", query, key) / np.sqrt(width).astype("float32")
    hidden = keras.ops.triu(keras.ops.ones((length, length)), k=1)
    return keras.ops.softmax(scores - 1e9 * hidden, axis=-1) @ value
"""
        ),
        # band_part, and the mask within tf.where the other way round
        Right(
            r"""
def attend(query, key, value):
    query = query * query.shape[-1] ** -0.5
    later = tf.linalg.band_part(tf.ones([query.shape[1]] * 2), -1, 0) == 0
    scores = tf.where(later, float("-inf"), query @ tf.transpose(key, [0, 2, 1]))
    return tf.einsum("bqk,bkd->bqd", tf.nn.softmax(scores, axis=2), value)
"""
        ),
        # Keras's layer
        Right(
            r"""
def attend(query, key, value):
    scaled = query / float(query.shape[-1]) ** 0.5
    return layers.Attention()([scaled, value, key], use_causal_mask=True)
"""
        ),
        Mutant(
            "tf.where(earlier, scores, -1e9)",
            "scores + 0 * tf.cast(earlier, tf.float32)",
            "at later ones",
        ),
        Mutant(
            "tf.where(earlier, scores, -1e9)\n    return tf.matmul(tf.nn.softmax(scores), value)",
            "tf.nn.softmax(scores)\n    return tf.matmul(tf.where(earlier, scores, 0.0), value)",
            "do not add up to 1",
        ),
    ],
}
