"""What learners get wrong in lab 09, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_9C = r"""
def largest_batch(memory, per_core):
    used = memory["arguments"] + memory["temporaries"] + memory["outputs"] + memory["code"]
    fits = memory["available"] / (used / per_core)
    return int(fits // 128) * 128
"""

ANSWERS = {
    "9a": [
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
            "is 50,000 of 1,000,000 cycles",
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
            "Dropping both pooling layers",
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
            "the faster convolution saves 200,000",
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
            "The line without code counts as well",
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
    "9b": [
        Wrong("memory_diagnosis = {'line': 3}", "a dict with the keys line, GiB, change"),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'line': 1}", "4,096 x 38 x 38 x 64 numbers"),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'line': 4}",
            "has the shape of an array from another",
        ),
        # The first line of the picture, in the place of the number
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'line': 'scores'}",
            "is not the number of a line",
        ),
        # In bytes, in GB, in bfloat16
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'GiB': 4096 * 1444**2 * 4}", "a GiB is 2**30"
        ),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'GiB': 34.2}", "a GiB is 2**30"),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'GiB': 15.9}", "of 4 bytes"),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'change': 'A'}", "a smaller type is not enough"
        ),
        Wrong("memory_diagnosis = {**memory_diagnosis, 'change': 'C'}", "no axis of filters"),
        Wrong(
            "memory_diagnosis = {**memory_diagnosis, 'change': 'D'}", "temporaries fill the memory"
        ),
        Right("memory_diagnosis = {'change': 'b', 'line': 3, 'GiB': 31.8}"),
        Right("memory_diagnosis = dict(line=3, GiB=2**12 * 38**4 * 4 / 1024**3, change='B')"),
    ],
    "9c": [
        # The one that the wrong ones below are made from
        Right(_9C),
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
            _9C.replace("int(fits // 128) * 128", "fits // 128 * 128"),
            "A batch size is a whole number, int",
        ),
        # Rounded to the nearest
        Wrong(
            _9C.replace("int(fits // 128) * 128", "round(fits / 128) * 128"),
            "83 times 128 images fit",
        ),
        # Available counted in
        Wrong(
            _9C.replace(
                'used = memory["arguments"] + memory["temporaries"] + memory["outputs"] + memory["code"]',
                "used = sum(memory.values())",
            ),
            "fit. How many bytes does one image take?",
        ),
    ],
    "9d": [
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
    "9e": [
        Mutant(
            "        if checkpoint % loop == 0 and loop * step >= share * (loop * step + call):\n            return loop\n    return checkpoint",
            "        if checkpoint % loop == 0 and loop * step >= share * (loop * step + call):\n            return loop",
            "is a return missing?",
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
}
