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
        Mutant("steps = -(-examples // batch)", "steps = examples // batch", "steps"),
        Mutant("steps = -(-examples // batch)", "steps = examples // batch + 1", "divides"),
        Mutant("steps * batch - examples", "examples - seen", "padding"),
        Mutant("return seen, steps, steps * batch - examples", "return seen, steps", "three"),
        Mutant("-(-examples // batch)", "np.ceil(examples / batch)", "whole numbers"),
        Right("""
            import math


            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                steps = math.ceil(examples / batch)
                return math.floor(examples / batch) * batch, steps, steps * batch - examples
        """),
        Right("""
            def eval_plan(examples, per_core, cores):
                whole, rest = divmod(examples, per_core * cores)
                if rest == 0:
                    return [examples, whole, 0]
                return [examples - rest, whole + 1, per_core * cores - rest]
        """),
        Right("""
            def eval_plan(examples, per_core, cores):
                batch = np.int64(per_core) * cores
                steps = int(np.ceil(examples / batch))
                return examples - examples % batch, steps, -examples % batch
        """),
        Right("""
            from collections import namedtuple

            Plan = namedtuple("Plan", "seen steps padding")


            def eval_plan(examples, per_core, cores):
                batch, steps = cores * per_core, 0
                while steps * batch < examples:
                    steps += 1
                return Plan(padding=steps * batch - examples, steps=steps, seen=examples // batch * batch)
        """),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                rest = examples % batch
                return examples - rest, examples // batch + 1, batch - rest
        """,
            "divides",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                steps = -(-examples // batch)
                return examples // batch * batch, steps, batch - examples % batch
        """,
            "padding",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                steps = round(examples / batch)
                return examples // batch * batch, steps, steps * batch - examples
        """,
            "steps",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                steps = -(-examples // batch)
                return steps, examples // batch * batch, steps * batch - examples
        """,
            "order",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                steps = -(-examples // batch)
                return {"seen": examples // batch * batch, "steps": steps, "padding": steps * batch - examples}
        """,
            "three numbers",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                steps = -(-examples // batch)
                return steps * batch, steps, steps * batch - examples
        """,
            "seen",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                return examples / batch * batch, examples / batch, examples % batch
        """,
            "whole numbers",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                batch = per_core * cores
                return examples // batch * batch, -(-examples // batch), examples % batch
        """,
            "padding",
        ),
        Wrong(
            """
            def eval_plan(examples, per_core, cores):
                return examples // per_core * per_core, -(-examples // per_core), -examples % per_core
        """,
            "per_core * cores",
        ),
    ],
    "3b": [
        Mutant("examples.concatenate(padding)", "examples", "There is no padding"),
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
            "from_tensors(nothing).repeat(eval_plan(len(images), 16, 8)[2])",
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
            re.compile("after the examples|once"),
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
        Wrong(with_letter("train", "F"), "train: not F. The stream is endless"),
        Wrong(with_letter("eval", "F"), "never see"),
        Wrong(with_letter("eval", "A"), "never see"),
        Wrong(with_letter("predict", "A"), "takes the padding off again"),
        Wrong(with_letter("jpeg", "D"), "would a static shape alone change them"),
        Wrong(with_letter("contrast", "C"), "Which fix also compares"),
        Wrong(with_letter("loss", "F"), "with a bounded shape"),
        Wrong(with_letter("metric", "E"), "Where does metric_fn run"),
        Wrong(with_letter("metric", "G"), "is not one of A, B, C, D, E, F"),
        Wrong("fixes = list(fixes.values())", "Expected a dict with an answer for each of"),
        Right("fixes = {line: f' {letter.lower()}' for line, letter in fixes.items()}"),
    ],
    "3d": [
        Wrong("messages_diagnosis = {18: 'A'}", "Line 18 is correct. A cut is a bound"),
        Wrong("messages_diagnosis = {23: 'A'}", "the batches get one length later"),
        Wrong("messages_diagnosis = {52: 'F'}", "maxlen is given"),
        Wrong("messages_diagnosis = {29: 'B'}", "not for the reason that you give"),
        Wrong("messages_treatment = {}", "TPU102"),
        Wrong(
            "messages_treatment = {18: 'words = words[:8]', 29: messages_treatment[29]}",
            "cannot be found in the data",
        ),
        Wrong(
            "messages_treatment = {29: messages_treatment[29], 40: 'steps = NUM_EVAL // 64'}",
            "should give each of its 150 examples once",
        ),
        Right("messages_diagnosis = {30: 'a'}"),
        Right(
            'messages_treatment = {29: \'shapes = ({"words": [12], "count": [], "weight": []}, [])\'}'
        ),
    ],
}
