"""What learners get wrong in lab 07, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_7A = r"""
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    if bfloat16:
        net = tf.cast(net, tf.bfloat16)
    with v1.tpu.bfloat16_scope():
        for place, filters in enumerate((32, 64, 128, 256)):
            if place:
                net = v1.layers.max_pooling2d(net, 2, 2)
            net = stage(net, filters, training)
        net = tf.reduce_mean(net, [1, 2])
        logits = v1.layers.dense(net, classes)
    return tf.cast(logits, tf.float32)
"""

_7D = r"""
def make_serving_input_fn(size):
    def receiver():
        encoded = v1.placeholder(tf.string, [None])
        images = tf.map_fn(lambda one: decode_image(one, size), encoded, fn_output_signature=tf.uint8)
        return v1.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": encoded})
    return receiver
"""

_STEP = "with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):\n        train_op = optimizer.minimize(loss, global_step=step)"

ANSWERS = {
    "7a": [
        Mutant("with v1.tpu.bfloat16_scope():", "if True:", "the types of the variables"),
        Mutant(
            "    if bfloat16:\n        net = tf.cast(net, tf.bfloat16)\n",
            "",
            "expected ['bfloat16'], yours gives ['float32']",
        ),
        Mutant("    if bfloat16:\n        net =", "    if True:\n        net =", "bfloat16=False"),
        Mutant("return tf.cast(logits, tf.float32)", "return logits", "the loss needs float32"),
        Mutant(
            "return tf.cast(logits, tf.float32)",
            "return tf.nn.softmax(tf.cast(logits, tf.float32))",
            "softmax",
        ),
        Mutant(
            "tf.reduce_mean(net, [1, 2])", "v1.layers.flatten(net)", "dense layer on the 256 means"
        ),
        Mutant("tf.reduce_mean(net, [1, 2])", "tf.reduce_max(net, [1, 2])", "not the mean"),
        Mutant("if index:", "if True:", "max_pooling2d"),
        Mutant("(32, 64, 128, 256)", "(32, 64, 128)", "48, 32, 64 and 128 channels"),
        Right(_7A),
        # The scope only where it is needed, a dense layer in float32
        Right(r"""
import contextlib
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    with v1.tpu.bfloat16_scope() if bfloat16 else contextlib.nullcontext():
        net = stage(tf.cast(net, tf.bfloat16 if bfloat16 else tf.float32), 32, training)
        for filters in [64, 128, 256]:
            net = stage(v1.layers.max_pooling2d(net, pool_size=2, strides=2), filters, training=training)
    return v1.layers.dense(tf.cast(tf.reduce_mean(net, axis=(1, 2)), tf.float32), classes)
"""),
        # Pooled by a layer, pooling at the end of a stage
        Right(r"""
def inference(images, classes, training, bfloat16):
    net = tf.cast(tf.nn.space_to_depth(images, 4), tf.bfloat16 if bfloat16 else tf.float32)
    with v1.tpu.bfloat16_scope():
        for n, filters in enumerate([32, 64, 128, 256]):
            net = stage(net, filters, training)
            if n < 3:
                net = v1.layers.max_pooling2d(net, 2, 2)
        net = v1.layers.flatten(v1.layers.average_pooling2d(net, net.shape[1], net.shape[1]))
        return tf.cast(v1.layers.dense(net, classes), tf.float32)
"""),
        Wrong(
            _7A.replace("dense(net, classes)", "dense(net, classes, activation=tf.nn.relu)"),
            "logits may be any number",
        ),
        Wrong(_7A.replace("tf.nn.space_to_depth(images, 4)", "images"), "3 by 3 on 48"),
        Wrong(
            _7A.replace(
                "dense(net, classes)", "dense(v1.layers.dense(net, 128, tf.nn.relu), classes)"
            ),
            "then a dense layer",
        ),
    ],
    "7b": [
        Mutant(
            _STEP,
            "train_op = optimizer.minimize(loss, global_step=step)\n"
            "    tf.group(*v1.get_collection(v1.GraphKeys.UPDATE_OPS))",
            "UPDATE_OPS",
        ),
        Mutant("minimize(loss,", "minimize(-loss,", "minimize the loss"),
        Mutant(
            "tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)",
            "v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
            "TPUEstimatorSpec",
        ),
        Mutant(", train_op=train_op)", ")", "Missing train_op"),
    ],
    "7c": [
        Wrong('leaves_diagnosis = {37: "A"}', "Line 37 is correct"),
        Wrong('leaves_diagnosis = {17: "C"}', "but not for the reason that you give"),
        Wrong("leaves_diagnosis = {}", "The fault is not found yet"),
        Wrong('leaves_treatment = {17: ""}', "was augmentation taken out?"),
        Wrong("leaves_treatment = {}", "TPU212"),
        Wrong("leaves_treatment = {17: 'if training: image ='}", "cannot be examined"),
        Right(
            'leaves_diagnosis = {17: "b"}\nleaves_treatment = '
            '{17: "image = tf.image.random_flip_left_right(image) if training else image"}'
        ),
        Right(
            "from lab_utils.check.clinic import ward\n"
            'leaves_treatment = ward("leaves").healthy.replace("random_flip_left_right(image)", '
            '"random_flip_left_right(image, seed=3)")'
        ),
    ],
    "7d": [
        Mutant("tf.string, [None]", "tf.string, []", "any number"),
        Mutant("tf.string, [None]", "tf.string, [1]", "any number"),
        Mutant('{"image": pixels}, {', "pixels, {", "model_fn looks for"),
        Mutant(
            '{"image_bytes": encoded}', '{"image_bytes": pixels}', "a placeholder for any number"
        ),
        Mutant("        return v1.estimator.export", "        v1.estimator.export", "Return a"),
        Right(_7D),
        # A signature, a helper, weights too
        Right(r"""
def make_serving_input_fn(size):
    def serving_input_receiver_fn():
        image_bytes = v1.placeholder(dtype=tf.string, shape=[None], name="image_bytes")
        def one(data):
            return decode_image(encoded=data, size=size)
        pixels = tf.map_fn(fn=one, elems=image_bytes, fn_output_signature=tf.TensorSpec([size, size, 3], tf.uint8))
        return v1.estimator.export.ServingInputReceiver(
            features={"image": pixels, "weight": tf.ones([tf.shape(pixels)[0]])}, receiver_tensors={"image_bytes": image_bytes})
    return serving_input_receiver_fn
"""),
        # functools.partial, a reshape
        Right(r"""
import functools
def _receive(size):
    strings = v1.placeholder(tf.string, shape=(None,))
    image = tf.map_fn(functools.partial(decode_image, size=size), strings, dtype=tf.uint8)
    image = tf.reshape(image, [-1, size, size, 3])
    return v1.estimator.export.ServingInputReceiver(dict(image=image), dict(image_bytes=strings))
def make_serving_input_fn(size):
    return lambda: _receive(size)
"""),
        # No map_fn
        Wrong(
            _7D.replace(
                "tf.map_fn(lambda one: decode_image(one, size), encoded, fn_output_signature=tf.uint8)",
                "decode_image(encoded, size)",
            ),
            "use tf.map_fn",
        ),
        # Another preparation
        Wrong(
            _7D.replace(
                "decode_image(one, size)",
                "tf.cast(tf.image.resize(tf.io.decode_image(one, channels=3, expand_animations=False), [size, size]), tf.uint8)",
            ),
            "The picture differs from the one in evaluation",
        ),
        # Scaled here
        Wrong(
            _7D.replace(
                '{"image": images},', '{"image": tf.cast(images, tf.float32) / 127.5 - 1.0},'
            ),
            "yours gives 'float32",
        ),
        # Augmented
        Wrong(
            _7D.replace(
                '{"image": images},', '{"image": tf.image.random_brightness(images, 0.4)},'
            ),
            "The picture differs from the one in evaluation",
        ),
    ],
    "7e": [
        Mutant('return "cannot tell"', 'return "equal"', "90 % and 92 % of 60 pictures"),
        # The errors themselves are added
        Wrong(
            """
def better(one, other, n):
    error = (one * (1 - one) / n) ** 0.5 + (other * (1 - other) / n) ** 0.5
    if abs(one - other) <= 2 * error:
        return "cannot tell"
    return "one" if one > other else "other"
""",
            "50 % and 70 % of 60 pictures",
        ),
        # A rule of thumb
        Wrong(
            """
def better(one, other, n):
    if abs(one - other) < 0.05:
        return "cannot tell"
    return "one" if one > other else "other"
""",
            "expected",
        ),
        Right(
            """
import math
def better(one, other, n):
    z = (one - other) * math.sqrt(n) / max(1e-12, math.sqrt(one - one ** 2 + other - other ** 2))
    return "one" if z > 2 else "other" if z < -2 else "cannot tell"
"""
        ),
        Right(
            """
def better(one, other, n):
    squared = sum(p * (1 - p) / n for p in (one, other))
    if (one - other) ** 2 > 4 * squared:
        return ("other", "one")[one > other]
    return "cannot tell"
"""
        ),
    ],
}
