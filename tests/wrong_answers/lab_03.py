"""What learners get wrong in lab 03, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "3a": [
        Mutant("batch = per_core * cores", "batch = per_core", "per_core * cores"),
        Mutant("steps = -(-examples // batch)", "steps = examples // batch", "steps"),
        Mutant("steps = -(-examples // batch)", "steps = examples // batch + 1", "divides"),
        Mutant("seen = examples // batch * batch", "seen = examples % batch", "drops"),
        Mutant("seen = examples // batch * batch", "seen = examples // batch", "not batches"),
        Mutant("steps * batch - examples", "examples - seen", "padding"),
        Mutant("return seen, steps, steps * batch - examples", "return seen, steps", "three"),
        Mutant("-(-examples // batch)", "np.ceil(examples / batch)", "whole numbers"),
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
    ],
    "3c": [
        Mutant(", weights=weight)}", ")}", "weight 0"),
        Mutant(
            "v1.metrics.accuracy(labels, predicted, weights=weight)",
            "v1.metrics.mean(weight * tf.cast(tf.equal(labels, tf.cast(predicted, tf.int32)), "
            "tf.float32))",
            "as wrong",
        ),
        Mutant("weights=weight)}", "weights=1.0 - weight)}", "weight 0"),
        Mutant(
            '{"accuracy": v1.metrics.accuracy(labels, predicted',
            '{"acc": v1.metrics.accuracy(labels, predicted',
            '"accuracy"',
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
    ],
    "3e": [
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
    ],
}
