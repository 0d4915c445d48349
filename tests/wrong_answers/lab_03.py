"""Answers to lab 03: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong


def padding(body: str) -> str:
    """A cell with make_eval_input_fn whose input_fn has that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"""def make_eval_input_fn(images, labels):
    def input_fn(params):
        examples = weighted_examples(images, labels)
{inner}

    return input_fn
"""


def with_letter(line: str, letter: str) -> str:
    """A cell: the solution's letters with another one for a line."""
    return f"fixes = {{**fixes, {line!r}: {letter!r}}}"


ANSWERS = {
    "3a": [
        Mutant("steps = -(-largest //", "steps = (largest //", re.compile("left out|1 to 16")),
        Mutant("per_core = -(-largest //", "per_core = (largest //", "examples are left out"),
        Mutant(
            "per_core * steps * cores * len(examples) - sum(examples)",
            "sum(examples) % cores",
            "of them are padding",
        ),
        Mutant(
            "* len(examples) - sum(examples)",
            "- sum(examples)",
            "and all 2 hosts 800, so 0 of them",
        ),
        Mutant("return per_core, steps, per_core", "return steps, per_core", "three numbers"),
        Mutant("max(examples)", "min(examples)", "examples are left out"),
        Mutant(
            "per_core = -(-largest // (steps * cores))",
            "per_core = largest / steps / cores",
            "whole numbers",
        ),
        # As if all hosts shared the examples
        Wrong(
            """
            def eval_plan(examples, cores, most):
                total, cores = sum(examples), cores * len(examples)
                steps = -(-total // (most * cores))
                per_core = -(-total // (steps * cores))
                return per_core, steps, per_core * steps * cores - total
            """,
            "[370, 12] examples, two hosts",
        ),
        # A plan for each host
        Wrong(
            """
            def eval_plan(examples, cores, most):
                steps = max(-(-count // (most * cores)) for count in examples)
                shares = [-(-count // (steps * cores)) for count in examples]
                return max(shares), steps, sum(n * steps * cores for n in shares) - sum(examples)
            """,
            "and all 2 hosts 768, so 386 of them are padding",
        ),
        # The largest share of any
        Wrong(
            """
            def eval_plan(examples, cores, most):
                steps = -(-max(examples) // (most * cores))
                return most, steps, most * steps * cores * len(examples) - sum(examples)
            """,
            "a smaller share per core leaves less padding",
        ),
        # Little padding first: a step for each core's one example
        Wrong(
            """
            def eval_plan(examples, cores, most):
                (count, *_) = examples
                per_core = min(range(1, most + 1), key=lambda n: (-count % (n * cores), n))
                return per_core, -(-count // (per_core * cores)), -count % (per_core * cores)
            """,
            "(per_core, steps, padding) of [370] examples",
        ),
        Wrong("def eval_plan(examples, cores, most):\n    return {}", "three numbers"),
        Right("""
            import math


            def eval_plan(examples, cores, most):
                steps = math.ceil(max(examples) / (most * cores))
                per_core = math.ceil(max(examples) / steps / cores)
                return per_core, steps, sum(steps * per_core * cores - count for count in examples)
        """),
        # All shares tried
        Right("""
            def eval_plan(examples, cores, most):
                def cost(per_core):
                    batch = cores * per_core
                    steps = max((count + batch - 1) // batch for count in examples)
                    return steps, len(examples) * steps * batch - sum(examples)

                best = min(range(1, most + 1), key=cost)
                return [best, *cost(best)]
        """),
        Right("""
            from collections import namedtuple

            Plan = namedtuple("Plan", "per_core steps padding")


            def eval_plan(examples, cores, most):
                *_, largest = sorted(examples)
                steps, rest = divmod(largest, most * cores)
                steps += rest > 0
                share, rest = divmod(np.int64(largest), steps * cores)
                share += rest > 0
                rows = share * steps * cores * len(examples)
                return Plan(padding=rows - sum(examples), steps=steps, per_core=share)
        """),
        Right("""
            def eval_plan(examples, cores, most):
                largest = np.max(examples)
                steps = -(-largest // (most * cores))
                per_core = tf.cast(tf.math.ceil(largest / (steps * cores)), tf.int32)
                rows = per_core * int(steps) * cores * len(examples)
                return tf.stack([per_core, int(steps), rows - sum(examples)])
        """),
    ],
    "3b": [
        Mutant("examples.concatenate(padding)", "examples", "There is too little padding"),
        Mutant(
            'params["batch_size"], drop_remainder=True)\n\n    return input_fn',
            'params["batch_size"])\n\n    return input_fn',
            "drop_remainder",
        ),
        Mutant('"weight": 0.0}, 0)', '"weight": 1.0}, 0)', "weight 1, so it counts"),
        Mutant('"weight": 0.0}, 0)', '"weight": 0.0}, -1)', "class"),
        Mutant('"weight": 0.0}, 0)', '"weight": 0}, 0)', "types and shapes"),
        Mutant("tf.zeros([8, 8])", "np.zeros([8, 8])", "float64"),
        Mutant("from_tensors(nothing).repeat()", "from_tensors(nothing).repeat(14)", "depends on"),
        Mutant("from_tensors(nothing).repeat()", "from_tensors(nothing).repeat(24)", "depends on"),
        Mutant(
            "from_tensors(nothing).repeat()",
            "from_tensors(nothing).repeat(eval_plan([len(images)], 16, 8)[2])",
            "depends on",
        ),
        Mutant(
            "examples.concatenate(padding)",
            "padding.take(14).concatenate(examples)",
            "the different weights",
        ),
        Mutant("examples.concatenate(padding)", "padding.concatenate(examples)", "all padding"),
        Mutant("examples.concatenate(padding)", "examples.repeat()", "more than once"),
        Mutant('nothing = ({"image": tf.zeros([8, 8]), ', "nothing = ({", "types and shapes"),
        Right(
            padding("""
            size = params["batch_size"]
            fill = examples.map(lambda features, label: ({"image": features["image"], "weight": 0.0}, label)).repeat()
            return examples.concatenate(fill).batch(size, True)
        """)
        ),
        Right("""
            def make_eval_input_fn(images, labels):
                def input_fn(params):
                    missing = -len(labels) % params["batch_size"]
                    pictures = np.concatenate([np.float32(images), np.zeros([missing, 8, 8], np.float32)])
                    classes = np.pad(np.int32(labels), (0, missing))
                    weight = np.float32(np.arange(len(classes)) < len(labels))
                    dataset = tf.data.Dataset.from_tensor_slices(({"image": pictures, "weight": weight}, classes))
                    return dataset.batch(params["batch_size"], drop_remainder=True)

                return input_fn
        """),
        Right("""
            def row_of_nothing():
                return {"image": np.zeros([8, 8], np.float32), "weight": np.float32(0)}, np.int32(3)


            def make_eval_input_fn(images, labels):
                def input_fn(params):
                    examples = weighted_examples(images, labels)
                    nothing = tf.data.Dataset.from_tensors(row_of_nothing()).repeat(params["batch_size"] - 1)
                    return examples.concatenate(nothing).batch(params["batch_size"], drop_remainder=True).prefetch(1)

                return input_fn
        """),
        Right("""
            def filled(batch_size):
                def pad(features, label):
                    missing = batch_size - tf.shape(label)[0]
                    image = tf.pad(features["image"], [[0, missing], [0, 0], [0, 0]])
                    weight = tf.pad(features["weight"], [[0, missing]])
                    image, weight = tf.ensure_shape(image, [batch_size, 8, 8]), tf.ensure_shape(weight, [batch_size])
                    return {"image": image, "weight": weight}, tf.ensure_shape(tf.pad(label, [[0, missing]]), [batch_size])

                return pad


            def make_eval_input_fn(images, labels):
                return lambda params: weighted_examples(images, labels).batch(params["batch_size"]).map(filled(params["batch_size"]))
        """),
        Wrong(
            padding('return examples.batch(params["batch_size"], drop_remainder=True)'), "padding"
        ),
        Wrong(
            padding('return examples.repeat().batch(params["batch_size"], drop_remainder=True)'),
            "more than once",
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 0)
            both = examples.concatenate(tf.data.Dataset.from_tensors(nothing).repeat())
            return both.shuffle(1000).batch(params["batch_size"], drop_remainder=True)
        """),
            "and padding between them",
        ),
        # Batched before it is padded: the last two examples are gone by then
        Wrong(
            padding("""
            size = params["batch_size"]
            one = ({"image": tf.zeros([size, 8, 8]), "weight": tf.zeros([size])}, tf.zeros([size], tf.int32))
            full = examples.batch(size, drop_remainder=True)
            return full.concatenate(tf.data.Dataset.from_tensors(one).repeat())
        """),
            "is something dropped before the padding is added?",
        ),
        Wrong(
            padding("""
            nothing = ({"image": 0.0, "weight": 0.0}, 0)
            both = examples.concatenate(tf.data.Dataset.from_tensors(nothing).repeat())
            return both.batch(params["batch_size"], drop_remainder=True)
        """),
            "In a batch each image is of the unknown shape",
        ),
        Wrong(
            padding("""
            flat = examples.map(lambda features, label: (features | {"image": tf.reshape(features["image"], [64])}, label))
            nothing = ({"image": tf.zeros([64]), "weight": 0.0}, 0)
            both = flat.concatenate(tf.data.Dataset.from_tensors(nothing).repeat())
            return both.batch(params["batch_size"], drop_remainder=True)
        """),
            "In a batch each image is [64], not [8, 8]",
        ),
        # Shuffled, but only the examples
        Right(
            padding("""
            nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 0)
            both = examples.shuffle(1000).concatenate(tf.data.Dataset.from_tensors(nothing).repeat())
            return both.batch(params["batch_size"], drop_remainder=True)
        """)
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.fill([8, 8], float("nan")), "weight": 0.0}, 0)
            fill = tf.data.Dataset.from_tensors(nothing).repeat()
            return examples.concatenate(fill).batch(params["batch_size"], drop_remainder=True)
        """),
            "nan",
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 10)
            fill = tf.data.Dataset.from_tensors(nothing).repeat()
            return examples.concatenate(fill).batch(params["batch_size"], drop_remainder=True)
        """),
            "0 to 9",
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 0)
            fill = tf.data.Dataset.from_tensors(nothing).repeat()
            return examples.concatenate(fill).batch(128, drop_remainder=True)
        """),
            "batch_size",
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 0)
            fill = tf.data.Dataset.from_tensors(nothing).repeat()
            return examples.concatenate(fill).batch(params["batch_size"])
        """),
            "drop_remainder",
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([8, 8])}, 0)
            fill = tf.data.Dataset.from_tensors(nothing).repeat()
            return examples.concatenate(fill).batch(params["batch_size"], drop_remainder=True)
        """),
            "types and shapes",
        ),
        Wrong(
            padding("""
            fill = examples.repeat()
            return examples.concatenate(fill).batch(params["batch_size"], drop_remainder=True)
        """),
            re.compile("weight|more than once"),
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 0)
            fill = tf.data.Dataset.from_tensors(nothing).repeat(len(images) % params["batch_size"])
            return examples.concatenate(fill).batch(params["batch_size"], drop_remainder=True)
        """),
            "leaves the last examples out",
        ),
        Wrong(
            padding("""
            nothing = ({"image": tf.zeros([1, 8, 8]), "weight": 0.0}, 0)
            fill = tf.data.Dataset.from_tensors(nothing).repeat()
            return examples.concatenate(fill).batch(params["batch_size"], drop_remainder=True)
        """),
            re.compile("shape|image"),
        ),
    ],
    "3c": [
        # Weights by the number of words
        Right("""
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)
                    words.set_shape([None])
                    words = words[:LENGTH]
                    number = tf.size(words)
                    row = tf.pad(words, [[0, LENGTH - number]])
                    row = tf.ensure_shape(row, [LENGTH])
                    weight = tf.sequence_mask(number, LENGTH, tf.float32)
                    return {"words": row, "weight": weight}, stars

                return reviews.map(example).batch(batch_size, drop_remainder=True).prefetch(2)
        """),
        # Python cuts and pads
        Right("""
            def row_of(review):
                words = words_of(review)[:LENGTH]
                row, weight = np.zeros(LENGTH, np.int32), np.zeros(LENGTH, np.float32)
                row[: len(words)], weight[: len(words)] = words, 1
                return row, weight


            def review_batches(reviews, batch_size):
                def example(review, stars):
                    row, weight = tf.numpy_function(row_of, [review], [tf.int32, tf.float32])
                    features = {"words": tf.ensure_shape(row, [LENGTH]), "weight": tf.ensure_shape(weight, [LENGTH])}
                    return features, stars

                return reviews.map(example, num_parallel_calls=2).batch(batch_size, drop_remainder=True)
        """),
        # Padding that is no word
        Right("""
            def review_batches(reviews, batch_size):
                words = lambda review: tf.ensure_shape(tf.numpy_function(words_of, [review], tf.int32), [None])[:LENGTH]
                numbered = reviews.map(lambda review, stars: (words(tf.identity(review)), stars))
                padded = numbered.padded_batch(
                    batch_size, ([LENGTH], []), padding_values=(-1, 0), drop_remainder=True
                )
                return padded.map(
                    lambda words, stars: ({"words": tf.maximum(words, 0), "weight": tf.cast(words >= 0, tf.float32)}, stars)
                )
        """),
        Right("""
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.reshape(tf.numpy_function(words_of, [review], tf.int32), [-1])[:LENGTH]
                    return {"words": words, "weight": tf.ones(tf.shape(words))}, stars

                batches = reviews.map(example).ragged_batch(batch_size, drop_remainder=True)
                to_rows = lambda part: part.to_tensor(shape=[batch_size, LENGTH])
                return batches.map(lambda parts, stars: ({name: to_rows(parts[name]) for name in parts}, stars))
        """),
        # The weight follows from the number of the word
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)
                    return tf.ensure_shape(words, [None])[:LENGTH], stars

                batches = reviews.map(example).padded_batch(batch_size, ([LENGTH], []), drop_remainder=True)
                return batches.map(
                    lambda words, stars: ({"words": words, "weight": tf.cast(words != 0, tf.float32)}, stars)
                )
        """,
            "the word of number 0 is a word, too",
        ),
        Mutant(
            "tf.ones_like(words, tf.float32)",
            "tf.sign(tf.cast(words, tf.float32))",
            "the word of number 0 is a word, too",
        ),
        # Nothing is declared, and padded_batch is told the shape; where it is not, it needs a number of axes
        Right("""
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)[:LENGTH]
                    return {"words": words, "weight": tf.cast(words >= 0, tf.float32)}, stars

                shapes = {"words": [LENGTH], "weight": [LENGTH]}, []
                return reviews.map(example).padded_batch(batch_size, shapes, drop_remainder=True)
        """),
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)[:LENGTH]
                    return {"words": words, "weight": tf.ones_like(words, tf.float32)}, stars

                return reviews.map(example).padded_batch(batch_size, drop_remainder=True)
        """,
            "not even a number of axes",
        ),
        # Padded by hand, but nobody told TensorFlow
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)[:LENGTH]
                    number = tf.size(words)
                    row = tf.pad(words, [[0, LENGTH - number]])
                    return {"words": row, "weight": tf.sequence_mask(number, LENGTH, tf.float32)}, stars

                return reviews.map(example).batch(batch_size, drop_remainder=True)
        """,
            "The static shape of words is",
        ),
        # Padded to the batch's longest review by a ragged tensor, which then has another length in each batch
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.ensure_shape(tf.numpy_function(words_of, [review], tf.int32), [None])[:LENGTH]
                    return {"words": words, "weight": tf.ones_like(words, tf.float32)}, stars

                batches = reviews.map(example).ragged_batch(batch_size, drop_remainder=True)
                return batches.map(
                    lambda parts, stars: ({name: part.to_tensor() for name, part in parts.items()}, stars)
                )
        """,
            "The static shape of words is (3, None)",
        ),
        # The rows are joined before they are padded
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)
                    words.set_shape([LENGTH])
                    return {"words": words, "weight": tf.ones([LENGTH])}, stars

                return reviews.map(example).batch(batch_size, drop_remainder=True)
        """,
            "The reviews of a batch differ in length",
        ),
        Mutant("[:LENGTH]\n", "\n", "has more words than LENGTH, and padded_batch cuts none"),
        Mutant(
            "tf.ensure_shape(words, [None])",
            "tf.ensure_shape(words, [LENGTH])",
            "You declared more of the words than is true",
        ),
        Mutant(", drop_remainder=True", "", "Without drop_remainder=True"),
        Mutant(
            "batch_size, shapes, drop_remainder=True",
            "batch_size, drop_remainder=True",
            "By default, padded_batch pads to the longest review",
        ),
        Mutant(
            "padded_batch(batch_size, shapes, ",
            "batch(batch_size, ",
            "The static shape of words is",
        ),
        Mutant(
            "tf.ones_like(words, tf.float32)",
            "tf.ones_like(words)",
            "weight is int32, and should be float32",
        ),
        Mutant("[:LENGTH]\n", "[-LENGTH:]\n", "and the first LENGTH words are"),
        # Static, and believed: all weights are ones before the padding
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.numpy_function(words_of, [review], tf.int32)
                    words.set_shape([LENGTH])
                    return {"words": words, "weight": tf.ones_like(words, tf.float32)}, stars

                shapes = {"words": [LENGTH], "weight": [LENGTH]}, []
                return reviews.map(example).padded_batch(batch_size, shapes, drop_remainder=True)
        """,
            "A review has more words than LENGTH",
        ),
        # The batch is cut after it was padded to its longest review
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.ensure_shape(tf.numpy_function(words_of, [review], tf.int32), [None])
                    return {"words": words, "weight": tf.ones_like(words, tf.float32)}, stars

                batches = reviews.map(example).padded_batch(batch_size, drop_remainder=True)
                return batches.map(
                    lambda parts, stars: ({name: part[:, :LENGTH] for name, part in parts.items()}, stars)
                )
        """,
            "what is cut after that may be shorter than LENGTH",
        ),
        # Long ones are left out
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.ensure_shape(tf.numpy_function(words_of, [review], tf.int32), [None])
                    return {"words": words, "weight": tf.ones_like(words, tf.float32)}, stars

                short = reviews.map(example).filter(lambda parts, stars: tf.size(parts["words"]) <= LENGTH)
                shapes = {"words": [LENGTH], "weight": [LENGTH]}, []
                return short.padded_batch(batch_size, shapes, drop_remainder=True)
        """,
            "is it filtered out?",
        ),
        # All rows of the batch have the weight of the row
        Wrong(
            """
            def review_batches(reviews, batch_size):
                def example(review, stars):
                    words = tf.ensure_shape(tf.numpy_function(words_of, [review], tf.int32), [None])[:LENGTH]
                    return {"words": words, "weight": tf.ones([LENGTH])}, stars

                shapes = {"words": [LENGTH], "weight": [LENGTH]}, []
                return reviews.map(example).padded_batch(batch_size, shapes, drop_remainder=True)
        """,
            "so the weights are",
        ),
    ],
    "3d": [
        Right("""
            def expect_static(dataset):
                parts = tf.nest.flatten(tf.compat.v1.data.get_output_shapes(dataset))
                classes = tf.nest.flatten(tf.compat.v1.data.get_output_classes(dataset))
                if any(kind is not tf.Tensor for kind in classes):
                    raise ValueError("only dense tensors")
                if not all(shape.is_fully_defined() for shape in parts):
                    raise ValueError(f"some of {parts} is unknown")
        """),
        Right("""
            def walk(spec):
                if isinstance(spec, dict):
                    for part in spec.values():
                        walk(part)
                elif isinstance(spec, (tuple, list)) and not isinstance(spec, tf.TypeSpec):
                    for part in spec:
                        walk(part)
                elif isinstance(spec, tf.SparseTensorSpec) or spec.shape.rank is None or None in spec.shape.as_list():
                    raise ValueError(spec)


            def expect_static(dataset):
                walk(dataset.element_spec)
        """),
        Right("""
            class NotStatic(ValueError):
                pass


            def expect_static(dataset):
                # as_list raises a ValueError itself where not even the number of axes is known
                unknown = [spec for spec in tf.nest.flatten(dataset.element_spec) if None in spec.shape.as_list()]
                unknown += [spec for spec in tf.nest.flatten(dataset.element_spec) if not isinstance(spec, tf.TensorSpec)]
                if unknown:
                    raise NotStatic(unknown)
        """),
        Right("""
            def expect_static(dataset):
                check = lambda spec: spec.shape.assert_is_fully_defined()
                tf.nest.map_structure(check, dataset.element_spec, expand_composites=True)
        """),
        Mutant(
            'f"not static: {part}"',
            '"not static"',
            'Your error says "not static" of the labels and of the words: name the part',
        ),
        # The place of the part, not its shape
        Right("""
            def expect_static(dataset):
                parts = tf.nest.flatten(dataset.element_spec, expand_composites=True)
                for place, part in enumerate(parts):
                    if not part.shape.is_fully_defined():
                        raise ValueError(f"part {place} of {len(parts)} is not static")
        """),
        Mutant(
            ", expand_composites=True",
            "",
            "a sparse tensor of the shape (16, 12). This shape says nothing",
        ),
        Wrong(
            """
            def expect_static(dataset):
                shapes = [[part.shape for part in tf.nest.flatten(element)] for element in dataset.take(2)]
                if shapes[0] != shapes[1]:
                    raise ValueError(shapes)
        """,
            "Your test reads the data",
        ),
        Wrong(
            """
            def expect_static(dataset):
                for part in dataset.element_spec[0].values():
                    if not part.shape.is_fully_defined():
                        raise ValueError(part)
        """,
            "Labels go through the infeed, too",
        ),
        Wrong(
            """
            def expect_static(dataset):
                features, label = dataset.element_spec
                for part in [*features.values(), label]:
                    if not part.shape.is_fully_defined():
                        raise ValueError(part)
        """,
            re.compile("need not be dicts or tuples|one tensor without a name"),
        ),
        Wrong(
            """
            def expect_static(dataset):
                spec = dataset.element_spec
                for part in spec if isinstance(spec, tuple) else [spec]:
                    for each in part.values() if isinstance(part, dict) else [part]:
                        if not each.shape.is_fully_defined():
                            raise ValueError(each)
        """,
            "nested to any depth",
        ),
        Wrong(
            """
            def expect_static(dataset):
                return all(part.shape.is_fully_defined() for part in tf.nest.flatten(dataset.element_spec))
        """,
            "A dataset passes that a TPU would refuse",
        ),
        Wrong(
            """
            def expect_static(dataset):
                for part in tf.nest.flatten(dataset.element_spec, expand_composites=True):
                    assert part.shape.is_fully_defined(), part
        """,
            "raised AssertionError, not ValueError",
        ),
        Wrong(
            """
            def expect_static(dataset):
                for part in tf.nest.flatten(dataset.element_spec):
                    if part.shape.rank != 2 or None in part.shape.as_list():
                        raise ValueError(part)
        """,
            "A dataset that is static does not pass",
        ),
        Wrong(
            """
            def expect_static(dataset):
                for part in tf.nest.flatten(dataset.element_spec):
                    if part.shape.rank is not None and None in part.shape.as_list():
                        raise ValueError(part)
        """,
            "not even a number of axes",
        ),
    ],
}
