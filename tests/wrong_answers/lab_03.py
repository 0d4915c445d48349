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
        Mutant("examples.concatenate(padding)", "examples", "of 4 batches"),
        Mutant(
            'params["batch_size"], drop_remainder=True)\n\n    return input_fn',
            'params["batch_size"])\n\n    return input_fn',
            "drop_remainder",
        ),
        Mutant('"weight": 0.0}, 0)', '"weight": 1.0}, 0)', "weight 0"),
        Mutant('"weight": 0.0}, 0)', '"weight": 0.0}, -1)', "class"),
        Mutant(
            '"weight": 0.0}, 0)', '"weight": 0}, 0)', re.compile("weight .* is int32 .* float32")
        ),
        Mutant(
            "tf.zeros([8, 8])", "np.zeros([8, 8])", re.compile("image .* is float64 .* float32")
        ),
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
            "In 3 batches",
        ),
        Mutant("examples.concatenate(padding)", "padding.concatenate(examples)", "all padding"),
        Mutant("examples.concatenate(padding)", "examples.repeat()", "more than once"),
        Mutant('nothing = ({"image": tf.zeros([8, 8]), ', "nothing = ({", "TypeError"),
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
                    pictures = np.concatenate([np.float32(images) / 16, np.zeros([missing, 8, 8], np.float32)])
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
            re.compile("batch_size"),
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
            "weight",
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
            re.compile("depends on|enough"),
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
        # Rows left out, parameters of other names
        Right("""
def metric_fn(y, z, w):
    hit = tf.cast(tf.equal(tf.argmax(z, 1, tf.int32), y), tf.float32)
    return {"accuracy": v1.metrics.mean(tf.boolean_mask(hit, w > 0))}
"""),
        Mutant(", weights=weight)}", ")}", "weight 0"),
        Mutant("weights=weight)}", "weights=1.0 - weight)}", "weight 0"),
        Mutant(
            '{"accuracy": v1.metrics.accuracy(labels, predicted',
            '{"acc": v1.metrics.accuracy(labels, predicted',
            '"accuracy"',
        ),
        Right("""
            def metric_fn(labels, logits, weight):
                kept = weight > 0
                classes = tf.argmax(tf.boolean_mask(logits, kept), 1)
                return {"accuracy": v1.metrics.accuracy(tf.boolean_mask(labels, kept), classes)}
        """),
        Right("""
            def right(labels, logits):
                return tf.cast(tf.equal(labels, tf.argmax(logits, 1, output_type=tf.int32)), tf.float32)


            def metric_fn(labels, logits, weight):
                return dict(accuracy=v1.metrics.mean(right(labels, logits), weight))
        """),
        Right("""
            metric_fn = lambda labels, logits, weight: {
                "accuracy": v1.metrics.accuracy(labels, tf.math.top_k(logits).indices[:, 0], tf.cast(weight, tf.float32)),
                "examples": v1.metrics.mean(weight),
            }
        """),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=labels > 0)}
        """,
            re.compile("label|weight"),
        ),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits * weight[:, None], 1))}
        """,
            "weight 0",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                right = tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32)
                value = tf.reduce_sum(right * weight) / tf.reduce_sum(weight)
                return {"accuracy": (value, tf.no_op())}
        """,
            "batches",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                right = tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32)
                return {"accuracy": v1.metrics.mean(tf.reduce_sum(right * weight) / tf.reduce_sum(weight))}
        """,
            re.compile("batch"),
        ),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 0), weights=weight)}
        """,
            re.compile("each row|axis|shape"),
        ),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                return v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight)
        """,
            "dict",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, weight):
                return {"accuracy": v1.metrics.accuracy(labels * tf.cast(weight, tf.int32), tf.argmax(logits, 1))}
        """,
            "weight 0",
        ),
    ],
    "3d": [
        Mutant("encoded, channels=3)", "encoded)", "channels"),
        Mutant(
            "return tf.image.resize(image, [SIDE, SIDE]) / 255.0",
            "return tf.cast(image, tf.float32) / 255.0",
            "resize",
        ),
        Mutant(
            "return tf.image.resize(image, [SIDE, SIDE]) / 255.0",
            "image.set_shape([SIDE, SIDE, 3])\n    return tf.cast(image, tf.float32) / 255.0",
            "what comes",
        ),
        Mutant("[SIDE, SIDE]) / 255.0", "[SIDE, SIDE])", "from 0 to 1"),
        Mutant(
            "tf.image.resize(image, [SIDE, SIDE])",
            "tf.cast(tf.image.resize_with_crop_or_pad(image, SIDE, SIDE), tf.float32)",
            "corner",
        ),
        Mutant(
            "return tf.image.resize(image, [SIDE, SIDE]) / 255.0",
            "image = tf.image.resize(image, [SIDE, SIDE])\n    return image / tf.reduce_max(image)",
            "brightest",
        ),
        Mutant("[SIDE, SIDE]) / 255.0", "[SIDE, SIDE]) / 127.5 - 1.0", "from -1 to"),
        Mutant(
            "tf.image.resize(image, [SIDE, SIDE])",
            "tf.image.resize_with_pad(image, SIDE, SIDE)",
            "pad it",
        ),
        Mutant(
            "image = tf.io.decode_jpeg(encoded, channels=3)\n"
            "    return tf.image.resize(image, [SIDE, SIDE]) / 255.0",
            "image = tf.io.decode_jpeg(encoded)\n"
            "    return tf.ensure_shape(tf.image.resize(image, [SIDE, SIDE]) / 255.0, [SIDE, SIDE, 3])",
            "channels=3",
        ),
        Right("""
            def prepared(encoded):
                image = tf.image.convert_image_dtype(tf.io.decode_jpeg(encoded, channels=3), tf.float32)
                return tf.image.resize(image, size=(SIDE, SIDE))
        """),
        Right("""
            def prepared(encoded):
                image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
                image = tf.image.resize(image, [SIDE, SIDE], method="area")
                return tf.divide(image, 255)
        """),
        Right("""
            def whole(image):
                return v1.image.resize_images(image, [SIDE, SIDE])


            def prepared(encoded):
                image = tf.image.decode_jpeg(contents=encoded, channels=3)
                image = tf.cast(image, tf.float32) * (1 / 255)
                return tf.ensure_shape(whole(image), (SIDE, SIDE, 3))
        """),
        Right(
            "prepared = lambda encoded: tf.squeeze(tf.image.resize(tf.io.decode_jpeg(encoded, 3)[None], [64, 64]), 0) / 255.0"
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                image = tf.image.resize(image, [SIDE, SIDE])
                return tf.image.convert_image_dtype(image, tf.float32)
        """,
            "0 to 1",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                return tf.image.resize(image, [SIDE, SIDE], preserve_aspect_ratio=True) / 255.0
        """,
            "static shape",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                return tf.image.per_image_standardization(tf.image.resize(image, [SIDE, SIDE]))
        """,
            "from 0 to 1",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                image = tf.image.central_crop(image, 0.8)
                return tf.image.resize(image, [SIDE, SIDE]) / 255.0
        """,
            "whole picture",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(tf.io.read_file(encoded), channels=3)
                return tf.image.resize(image, [SIDE, SIDE]) / 255.0
        """,
            re.compile("bytes|read_file"),
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=1)
                return tf.image.resize(image, [SIDE, SIDE]) / 255.0
        """,
            "[64, 64, 3]",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                return tf.image.resize(image, [224, 224]) / 255.0
        """,
            "[64, 64, 3]",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                image.set_shape([SIDE, SIDE, 3])
                return tf.cast(image, tf.float32) / 255.0
        """,
            "resize",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                image = tf.image.resize(image, [SIDE, SIDE])
                return tf.cast(image, tf.uint8)
        """,
            "float32",
        ),
        Wrong(
            """
            def prepared(encoded):
                image = tf.io.decode_jpeg(encoded, channels=3)
                image = tf.image.random_flip_left_right(image)
                return tf.image.resize(image, [SIDE, SIDE]) / 255.0
        """,
            "turn it",
        ),
    ],
    "3e": [
        # A name that is looked up when the dataset runs
        Right("""
def with_contrast(image):
    out = tf.py_function(lambda t: tf.constant(stretched(t.numpy())), inp=[image], Tout=tf.float32)
    same = tf.debugging.assert_equal(tf.shape(out), tf.shape(image))
    with tf.control_dependencies([same]):
        out = tf.identity(out)
    out.set_shape(image.shape)
    return out
"""),
        Mutant("return tf.ensure_shape(result, image.shape)", "return result", "unknown"),
        Mutant(
            "return tf.ensure_shape(result, image.shape)",
            "result.set_shape(image.shape)\n    return result",
            "believes",
        ),
        Mutant(
            "tf.ensure_shape(result, image.shape)",
            "tf.ensure_shape(result, [SIDE, SIDE, 3])",
            "image.shape",
        ),
        Mutant(
            "tf.ensure_shape(result, image.shape)",
            "tf.ensure_shape(image, image.shape)",
            "stretched",
        ),
        Mutant(
            "tf.ensure_shape(result, image.shape)", "tf.reshape(result, image.shape)", "scrambled"
        ),
        Mutant(
            "tf.ensure_shape(result, image.shape)",
            "tf.reshape(result, tf.shape(image))",
            "scrambled",
        ),
        Mutant(
            "tf.ensure_shape(result, image.shape)",
            "result.set_shape(image.shape)",
            "returns nothing",
        ),
        Right("""
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.ensure_shape(result, image.get_shape())
        """),
        Right("""
            def same_shape(result, image):
                with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(result), tf.shape(image))]):
                    result = tf.identity(result)
                result.set_shape(image.shape)
                return result


            def with_contrast(image):
                return same_shape(tf.numpy_function(stretched, [image], tf.float32), image)
        """),
        Right("""
            with_contrast = lambda image: tf.ensure_shape(
                x=tf.numpy_function(func=stretched, inp=[image], Tout=tf.float32), shape=image.shape.as_list()
            )
        """),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.ensure_shape(result, [None, None, 3])
        """,
            re.compile("image.shape"),
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.ensure_shape(result, [8, 8])
        """,
            "image.shape",
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                tf.ensure_shape(result, image.shape)
                return result
        """,
            "unknown",
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.broadcast_to(result, image.shape)
        """,
            re.compile("broadcast|another shape|NumPy returns"),
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.reshape(result, image.shape)
        """,
            "scrambled",
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.image.resize(result, image.shape[:2])
        """,
            re.compile("resize|ensure_shape"),
        ),
        Wrong(
            """
            def with_contrast(image):
                low, high = tf.reduce_min(image), tf.reduce_max(image)
                return (image - low) / tf.maximum(high - low, 1e-6)
        """,
            "stretched",
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                if result.shape == image.shape:
                    return result
                result.set_shape(image.shape)
                return result
        """,
            "believes",
        ),
        Wrong(
            """
            def with_contrast(image):
                result = tf.numpy_function(stretched, [image], tf.float32)
                return tf.ensure_shape(result, tf.shape(image))
        """,
            "the static shape is image.shape",
        ),
    ],
    "3f": [
        Mutant("words[:length], tf.minimum", "words, tf.minimum", "longer than"),
        Mutant("tf.minimum(tf.size(words), length)", "tf.size(words)", "counts"),
        Mutant("tf.minimum(tf.size(words), length)", "length", "counts"),
        Mutant("([length], [])", "([None], [])", "longest"),
        Mutant("([length], []), drop_remainder=True", "([length], [])", "drop_remainder"),
        Mutant("return pairs.padded_batch(batch,", "return pairs.padded_batch(8,", "batch"),
        Mutant(
            "(words[:length], tf.minimum(tf.size(words), length))",
            "words[:length]",
            re.compile("pair|structure"),
        ),
        Right("""
            def padded(dataset, length, batch):
                def cut(words):
                    kept = words[:length]
                    return kept, tf.shape(kept)[0]

                shapes = (tf.TensorShape([length]), tf.TensorShape([]))
                return dataset.map(cut).padded_batch(batch_size=batch, padded_shapes=shapes, padding_values=(0, 0), drop_remainder=True)
        """),
        Right("""
            def to_length(words, length):
                words = words[:length]
                count = tf.size(words)
                row = tf.pad(words, [[0, length - count]])
                return tf.ensure_shape(row, [length]), count


            def padded(dataset, length, batch):
                return dataset.map(lambda words: to_length(words, length)).batch(batch, True).prefetch(2)
        """),
        Right("""
            def padded(dataset, length, batch):
                dataset = dataset.map(lambda words: tf.slice(words, [0], [tf.minimum(length, tf.size(words))]))
                dataset = dataset.padded_batch(batch, [length], drop_remainder=True)
                return dataset.map(lambda words: (words, tf.math.count_nonzero(words, axis=1, dtype=tf.int32)))
        """),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (words[-length:], tf.minimum(tf.size(words), length)))
                return pairs.padded_batch(batch, ([length], []), drop_remainder=True)
        """,
            "should become",
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (tf.minimum(tf.size(words), length), words[:length]))
                return pairs.padded_batch(batch, ([], [length]), drop_remainder=True)
        """,
            re.compile("order|pair"),
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (words[:length], tf.size(words[:length], tf.int64)))
                return pairs.padded_batch(batch, ([length], []), drop_remainder=True)
        """,
            "int32",
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (words[:length], tf.size(words[:length])))
                return pairs.padded_batch(batch, ([length], []), padding_values=(-1, 0), drop_remainder=True)
        """,
            re.compile("filled up with 0|should become"),
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                kept = dataset.filter(lambda words: tf.size(words) <= length)
                pairs = kept.map(lambda words: (words, tf.size(words)))
                return pairs.padded_batch(batch, ([length], []), drop_remainder=True)
        """,
            "should become",
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (words[:length], tf.size(words[:length])))
                return pairs.padded_batch(batch, drop_remainder=True)
        """,
            "longest",
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (words, tf.size(words)))
                return pairs.padded_batch(batch, ([length], []), drop_remainder=True)
        """,
            "longer than",
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                def row(words):
                    words = words[:length]
                    return tf.concat([tf.zeros([length - tf.size(words)], tf.int32), words], 0), tf.size(words)

                pairs = dataset.map(row).map(lambda words, n: (tf.ensure_shape(words, [length]), n))
                return pairs.batch(batch, drop_remainder=True)
        """,
            "should become",
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.filter(lambda words: tf.size(words) > 0).map(lambda words: (words[:length], tf.size(words[:length])))
                return pairs.padded_batch(batch, ([length], []), drop_remainder=True)
        """,
            re.compile("sentence"),
        ),
        Wrong(
            """
            def padded(dataset, length, batch):
                pairs = dataset.map(lambda words: (words[:length], tf.size(words[:length])))
                return pairs.padded_batch(batch, ([length], []))
        """,
            "drop_remainder",
        ),
    ],
    "3g": [
        Mutant(
            "tf.sequence_mask(lengths, vectors.shape[1], vectors.dtype)",
            "tf.sequence_mask(lengths, dtype=vectors.dtype)",
            "maxlen",
        ),
        Mutant(
            "tf.sequence_mask(lengths, vectors.shape[1], vectors.dtype)",
            "tf.sequence_mask(lengths, tf.reduce_max(lengths), vectors.dtype)",
            "maxlen",
        ),
        Mutant(
            "tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)", "tf.reduce_sum(mask, axis=1)", "zeros"
        ),
        Mutant(
            "tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)",
            "vectors.shape[1]",
            "number of its words",
        ),
        Mutant("vectors * mask", "vectors", "padding"),
        Mutant("[:, :, None]", "", re.compile(r"\[B, T\]")),
        Right("""
            def mean_of_words(vectors, lengths):
                is_word = tf.range(vectors.shape[1])[None, :] < lengths[:, None]
                mask = tf.cast(is_word, vectors.dtype)
                total = tf.einsum("bt,btd->bd", mask, vectors)
                return tf.math.divide_no_nan(total, tf.cast(lengths, tf.float32)[:, None])
        """),
        Right("""
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, maxlen=tf.shape(vectors)[1])
                kept = tf.where(tf.expand_dims(mask, -1), vectors, tf.zeros_like(vectors))
                count = tf.maximum(lengths, 1)
                return tf.reduce_sum(kept, 1) / tf.reshape(tf.cast(count, tf.float32), [-1, 1])
        """),
        Right("""
            def mean_of_words(vectors, lengths):
                total = 0.0
                for position in range(vectors.shape[1]):
                    total += tf.where((position < lengths)[:, None], vectors[:, position], 0.0)
                safe = tf.where(lengths > 0, lengths, tf.ones_like(lengths))
                return total / tf.cast(safe, tf.float32)[:, None]
        """),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                return tf.reduce_mean(vectors, axis=1)
        """,
            "padding",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)[:, :, None]
                return tf.reduce_sum(vectors * mask, 1) / tf.cast(lengths, tf.float32)[:, None]
        """,
            "zeros",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)[:, :, None]
                return tf.reduce_sum(vectors * mask, 1)
        """,
            "number of its words",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)[:, :, None]
                return tf.reduce_mean(vectors * mask, 1)
        """,
            "number of its words",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)[:, :, None]
                return tf.reduce_sum(vectors * mask, 1) / (tf.reduce_sum(mask, 1) + 1)
        """,
            "number of its words",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.cast(tf.range(vectors.shape[1])[None] <= lengths[:, None], tf.float32)[:, :, None]
                return tf.reduce_sum(vectors * mask, 1) / tf.maximum(tf.cast(lengths, tf.float32), 1.0)[:, None]
        """,
            "padding",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, tf.reduce_max(lengths), tf.float32)
                return tf.einsum("bt,btd->bd", mask, vectors) / tf.maximum(tf.reduce_sum(mask, 1, keepdims=True), 1)
        """,
            re.compile("maxlen|size"),
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)[:, :, None]
                mean = tf.reduce_sum(vectors * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)
                return tf.cast(mean, tf.float64)
        """,
            "float32",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, 6, tf.float32)[:, :, None]
                return tf.reduce_sum(vectors * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)
        """,
            "vectors.shape[1]",
        ),
        Wrong(
            """
            def mean_of_words(vectors, lengths):
                mask = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)
                return tf.reduce_sum(vectors * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)
        """,
            "[B, T]",
        ),
    ],
}
