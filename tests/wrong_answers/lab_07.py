"""What learners get wrong in lab 07, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_7A = r"""
def preprocess(encoded, size):
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image = tf.image.resize(image, [size, size], method="area")
    return tf.cast(tf.round(image), tf.uint8)
"""

_7B = r"""
def make_input_fn(pattern, training):
    def input_fn(params):
        size = params["image_size"]

        def parse(record):
            found = tf.io.parse_single_example(record, {
                "image/encoded": tf.io.FixedLenFeature([], tf.string),
                "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
            image = preprocess(found["image/encoded"], size)
            label = tf.cast(found["image/class/label"] - 1, tf.int32)
            return {"image": image, "weight": tf.constant(1.0)}, label

        files = sorted(tf.io.gfile.glob(pattern))
        images = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        if training:
            images = images.cache().shuffle(1024, seed=1).repeat()
        else:
            nothing = {"image": tf.zeros([size, size, 3], tf.uint8), "weight": tf.constant(0.0)}
            padding = tf.data.Dataset.from_tensors((nothing, 0)).repeat()
            images = images.concatenate(padding)
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(2)
    return input_fn
"""

_7C = r"""
def views(images, mode):
    images = tf.cast(images, tf.float32) / 127.5 - 1.0
    if mode == TRAIN:
        step = tf.cast(v1.train.get_global_step(), tf.int32)
        images = random_views(images, images.shape[1], tf.stack([0, step]))
    return images
"""

_7D = r"""
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    if bfloat16:
        with v1.tpu.bfloat16_scope():
            logits = body(tf.cast(net, tf.bfloat16), classes, training)
    else:
        logits = body(net, classes, training)
    return tf.cast(logits, tf.float32)

def body(net, classes, training):
    for place, filters in enumerate((32, 64, 128, 256)):
        if place:
            net = v1.layers.max_pooling2d(net, 2, 2)
        net = v1.layers.conv2d(net, filters, 3, padding="same", use_bias=False)
        net = v1.layers.batch_normalization(net, training=training, momentum=0.97)
        net = tf.nn.relu(net)
    net = tf.reduce_mean(net, axis=[1, 2])
    return v1.layers.dense(net, classes)
"""

_7E = r"""
def model_fn(features, labels, mode, params):
    images = views(features["image"], mode)
    logits = inference(images, len(params["labels"]), mode == TRAIN, params["bfloat16"])

    if mode == PREDICT:
        answers = {
            "class_id": tf.argmax(logits, axis=1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(logits),
        }
        if not params["use_tpu"]:  # no strings on a TPU
            answers["class"] = tf.gather(tf.constant(params["labels"]), answers["class_id"])
        outputs = {"serving_default": v1.estimator.export.PredictOutput(answers)}
        return tpu.TPUEstimatorSpec(mode, predictions=answers, export_outputs=outputs)

    if mode == EVAL:
        weights = features["weight"]
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.math.divide_no_nan(tf.reduce_sum(each * weights), tf.reduce_sum(weights))
        metrics = (metric_fn, [labels, logits, each, weights])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)

    targets = tf.one_hot(labels, len(params["labels"]))
    loss = v1.losses.softmax_cross_entropy(targets, logits, label_smoothing=0.1)
    step = v1.train.get_global_step()
    rate = v1.train.cosine_decay(params["learning_rate"], step, params["train_steps"])
    optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, step)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call(loss, rate, params))
"""

_7F = r"""
def make_estimator(model, settings):
    cluster = None
    if settings["use_tpu"]:
        cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])
    config = tpu.RunConfig(
        cluster=cluster,
        model_dir=settings["model_dir"],
        save_checkpoints_steps=settings["checkpoint_steps"],
        tpu_config=tpu.TPUConfig(iterations_per_loop=settings["iterations_per_loop"]),
    )
    return tpu.TPUEstimator(
        model,
        config=config,
        use_tpu=settings["use_tpu"],
        train_batch_size=settings["train_batch_size"],
        eval_batch_size=settings["eval_batch_size"],
        predict_batch_size=settings["eval_batch_size"],
        params=settings,
        export_to_tpu=False,
    )
"""

_7G = r"""
def make_serving_input_fn(size):
    def serving_input_receiver_fn():
        encoded = v1.placeholder(tf.string, [None])
        images = tf.map_fn(lambda each: preprocess(each, size), encoded, fn_output_signature=tf.uint8)
        return v1.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": encoded})
    return serving_input_receiver_fn
"""

ANSWERS = {
    "7a": [
        Mutant(", expand_animations=False", "", "expand_animations"),
        Mutant("encoded, channels=3,", "encoded,", "channels=3"),
        Mutant(
            'image = tf.image.resize(image, [size, size], method="area")\n    ', "", "resize sets"
        ),
        Mutant("tf.cast(tf.round(image), tf.uint8)", "tf.round(image)", "uint8"),
        Mutant("tf.cast(tf.round(image), tf.uint8)", "tf.cast(image / 255.0, tf.uint8)", "black"),
        Mutant(
            'tf.image.resize(image, [size, size], method="area")',
            "tf.cast(tf.image.resize_with_crop_or_pad(image, size, size), tf.float32)",
            "whole picture",
        ),
        Mutant(
            'tf.image.resize(image, [size, size], method="area")',
            "tf.image.resize_with_pad(image, size, size)",
            "whole picture",
        ),
        Mutant(
            'method="area")\n',
            'method="area")\n    image = tf.image.random_brightness(image, 60.0)\n',
            "another result",
        ),
        # The one that the wrong ones below are made from
        Right(_7A),
        # Keyword arguments, ensure_shape, saturate_cast
        Right(r"""
def preprocess(encoded, size):
    pixels = tf.image.decode_image(contents=encoded, channels=3, dtype=tf.uint8, expand_animations=False)
    squeezed = tf.image.resize(images=pixels, size=(size, size), method=tf.image.ResizeMethod.AREA)
    return tf.ensure_shape(tf.saturate_cast(tf.math.round(squeezed), tf.uint8), [size, size, 3])
"""),
        # Set_shape where animations are expanded, tf.math.rint
        Right(r"""
def preprocess(encoded, size):
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    resized = tf.image.resize(tf.cast(image, tf.float32), tf.stack([size, size]), "area")
    resized = tf.reshape(resized, [size, size, 3])
    return tf.cast(tf.math.rint(resized), "uint8")
"""),
        # Batch axis and squeeze, helper
        Right(r"""
def _whole(image, side):
    return tf.squeeze(tf.compat.v1.image.resize_area(image[None], [side, side]), 0)
def preprocess(encoded, size):
    image = tf.image.decode_image(encoded, 3, expand_animations=False)
    return tf.cast(_whole(image, size) + 0.5, tf.uint8)
"""),
        # Not rounded
        Wrong(
            _7A.replace("tf.round(image)", "image"),
            "The means are cut off, not rounded: tf.cast drops what is",
        ),
        # Bilinear
        Wrong(
            _7A.replace(', method="area"', ""),
            "The pixels are not the means over areas: tf.image.resize",
        ),
        # Animations expanded: no shape
        Wrong(
            _7A.replace(", expand_animations=False", ""),
            "decode_image may give an animation, of four axes, so its",
        ),
        # Decode_jpeg
        Wrong(
            _7A.replace(
                "tf.io.decode_image(encoded, channels=3, expand_animations=False)",
                "tf.io.decode_jpeg(encoded, channels=3)",
            ),
            "A picture in another format than JPEG, here a BMP, fails",
        ),
        # Channels not said
        Wrong(
            _7A.replace("channels=3, ", ""),
            "makes three of a grey image's one; resize sets height and",
        ),
        # Float32
        Wrong(
            _7A.replace("tf.cast(tf.round(image), tf.uint8)", "image"),
            "on their way to the device): expected 'uint8 (32, 32, 3)', yours gives 'float32",
        ),
        # 0..1
        Wrong(
            _7A.replace("tf.cast(tf.round(image), tf.uint8)", "image / 255.0"),
            "on their way to the device): expected 'uint8 (32, 32, 3)', yours gives 'float32",
        ),
        # 0..1, as uint8
        Wrong(
            _7A.replace("tf.round(image)", "tf.round(image / 255.0)"),
            "expected 'red', yours gives 'black'",
        ),
        # Crops to a square
        Wrong(
            _7A.replace(
                "    image = tf.image.resize(",
                "    side = tf.reduce_min(tf.shape(image)[:2])\n    image = tf.image.resize_with_crop_or_pad(image, side, side)\n    image = tf.image.resize(",
            ),
            "The whole picture should fill the square, squeezed",
        ),
        # Pads
        Wrong(
            _7A.replace(
                'tf.image.resize(image, [size, size], method="area")',
                'tf.image.resize_with_pad(image, size, size, method="area")',
            ),
            "The whole picture should fill the square, squeezed",
        ),
    ],
    "7b": [
        Mutant('tf.cast(example["image/class/label"], tf.int32) - 1', "label", "NameError"),
        Mutant(
            'tf.cast(example["image/class/label"], tf.int32) - 1',
            'tf.cast(example["image/class/label"], tf.int32)',
            "from 1",
        ),
        Mutant('"weight": tf.constant(1.0),', "", '"weight"'),
        Mutant('"weight": tf.constant(1.0),', '"weight": tf.constant(0.0),', "count for nothing"),
        Mutant(
            'tf.cast(example["image/class/label"], tf.int32) - 1',
            'example["image/class/label"] - 1',
            "int32",
        ),
        Mutant('preprocess(example["image/encoded"], size)', 'example["image/encoded"]', "uint8"),
        Mutant(
            'preprocess(example["image/encoded"], size)',
            'tf.image.random_flip_left_right(preprocess(example["image/encoded"], size))',
            "preprocess",
        ),
        Mutant(
            '"image/class/label": tf.int64',
            '"label": tf.int64',
            re.compile("could not be found|KeyError"),
        ),
        Mutant("            return features, tf.cast", "            features, tf.cast", "return"),
        # The one that the wrong ones below are made from
        Right(_7B),
        # Dict(), helper, tf.ones
        Right(
            _7B.replace(
                '            return {"image": image, "weight": tf.constant(1.0)}, label',
                "            return dict(image=image, weight=tf.ones([], tf.float32)), label",
            )
        ),
        # Features elsewhere, python float as the weight
        Right(r"""
FEATURES = {"image/" + name: tf.io.FixedLenFeature([], kind) for name, kind in (("encoded", tf.string), ("class/label", tf.int64))}
def _parse(record, size):
    example = tf.io.parse_single_example(record, FEATURES)
    return {"weight": 1.0, "image": preprocess(encoded=example["image/encoded"], size=size)}, tf.cast(example["image/class/label"], tf.int32) - 1
def make_input_fn(pattern, training):
    def input_fn(params):
        size = params["image_size"]
        files = sorted(tf.io.gfile.glob(pattern))
        images = tf.data.TFRecordDataset(files).map(lambda r: _parse(r, size), num_parallel_calls=tf.data.AUTOTUNE)
        if training:
            images = images.cache().shuffle(1024, seed=1).repeat()
        else:
            nothing = {"image": tf.zeros([size, size, 3], tf.uint8), "weight": tf.constant(0.0)}
            images = images.concatenate(tf.data.Dataset.from_tensors((nothing, 0)).repeat())
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(2)
    return input_fn
"""),
        # Weight from the label
        Right(_7B.replace("tf.constant(1.0)}, label", "tf.ones_like(label, tf.float32)}, label")),
        # Label from 1
        Wrong(
            _7B.replace('["image/class/label"] - 1', '["image/class/label"]'),
            "being background; a model of n classes wants",
        ),
        # Label int64
        Wrong(
            _7B.replace(
                'tf.cast(found["image/class/label"] - 1, tf.int32)',
                'found["image/class/label"] - 1',
            ),
            "the label, an int32 scalar",
        ),
        # Weight missing
        Wrong(
            _7B.replace('{"image": image, "weight": tf.constant(1.0)}', '{"image": image}'),
            'parse should return a pair: a dict of "image", made by preprocess, and "weight"',
        ),
        # Weight 0
        Wrong(
            _7B.replace("tf.constant(1.0)}, label", "tf.constant(0.0)}, label"),
            "they count for nothing or too much",
        ),
        # Weight an integer
        Wrong(_7B.replace("tf.constant(1.0)}, label", "1}, label"), "'weight': 'int32 (4,)'"),
        # Image alone
        Wrong(
            _7B.replace(
                'return {"image": image, "weight": tf.constant(1.0)}, label', "return image, label"
            ),
            'parse should return a pair: a dict of "image"',
        ),
        # A resize of its own
        Wrong(
            _7B.replace(
                'preprocess(found["image/encoded"], size)',
                'tf.cast(tf.image.resize(tf.io.decode_jpeg(found["image/encoded"], channels=3), [size, size]), tf.uint8)',
            ),
            "The images are not what preprocess makes of the same",
        ),
        # 96 always
        Wrong(
            _7B.replace(
                'preprocess(found["image/encoded"], size)', 'preprocess(found["image/encoded"], 96)'
            ),
            "'image': 'uint8 (4, 96, 96, 3)'",
        ),
        # Scaled here
        Wrong(
            _7B.replace(
                "            label =",
                "            image = tf.cast(image, tf.float32) / 127.5 - 1\n            label =",
            ),
            "'image': 'float32 (4, 32, 32, 3)'",
        ),
        # Random flip here
        Wrong(
            _7B.replace(
                "            label =",
                "            image = tf.image.random_flip_left_right(image)\n            label =",
            ),
            "The images are not what preprocess makes of the same",
        ),
    ],
    "7c": [
        Mutant("if mode == TRAIN:", "if mode != EVAL:", "mode 'infer'"),
        Mutant("tf.stack([0, step])", "tf.constant([0, 0])", "same views at every step"),
        Mutant(
            "images = random_views(images, images.shape[1], tf.stack([0, step]))",
            "images = tf.image.random_brightness(images, 0.5)",
            "went on",
        ),
        Mutant("/ 127.5 - 1.0", "/ 255.0", "-1 to 1"),
        Mutant(
            "images = tf.cast(images, tf.float32) / 127.5 - 1.0\n    ",
            "",
            re.compile("TypeError|float32"),
        ),
        Mutant("    return images\n\n\ndef inference", "\n\ndef inference", "return missing"),
        # The one that the wrong ones below are made from
        Right(_7C),
        # List as the seed, early return
        Right(r"""
def views(images, mode):
    scaled = tf.cast(images, tf.float32) / 127.5 - 1
    if mode != TRAIN:
        return scaled
    return random_views(scaled, int(images.shape[1]), [0, tf.cast(v1.train.get_global_step(), tf.int32)])
"""),
        # Tuple, keyword arguments, get_or_create
        Right(r"""
def _scaled(x):
    return (tf.cast(x, tf.float32) - 127.5) / 127.5
def views(images, mode):
    x = _scaled(images)
    if mode == v1.estimator.ModeKeys.TRAIN:
        return random_views(images=x, size=images.shape[2], seed=(0, v1.train.get_or_create_global_step()))
    return x
"""),
        # Conditional expression, numpy zero
        Right(r"""
def views(images, mode):
    images = tf.math.subtract(tf.math.divide(tf.cast(images, tf.float32), 127.5), 1.0)
    seed = lambda: tf.concat([tf.zeros([1], tf.int32), tf.cast(v1.train.get_global_step(), tf.int32)[None]], 0)
    return random_views(images, images.shape.as_list()[1], seed()) if mode == "train" else images
"""),
        # In every mode
        Wrong(
            _7C.replace("if mode == TRAIN:", "if True:"),
            "the same pictures look different at another step: augment",
        ),
        # In EVAL too
        Wrong(
            _7C.replace("mode == TRAIN", "mode != PREDICT"),
            "the same pictures look different at another step: augment",
        ),
        # Never
        Wrong(
            _7C.replace("mode == TRAIN", 'mode == "training"'),
            "In training the pictures come out unchanged: random_views",
        ),
        # 0..1
        Wrong(_7C.replace("/ 127.5 - 1.0", "/ 255.0"), "In mode 'eval' 0 to 255 becomes -1 to 1"),
        # Scaled in training alone
        Wrong(
            r"""
def views(images, mode):
    images = tf.cast(images, tf.float32)
    if mode == TRAIN:
        images = images / 127.5 - 1.0
        step = tf.cast(v1.train.get_global_step(), tf.int32)
        images = random_views(images, images.shape[1], tf.stack([0, step]))
    return images
""",
            "In mode 'eval' 0 to 255 becomes -1 to 1",
        ),
        # Fixed seed
        Wrong(
            _7C.replace("tf.stack([0, step])", "tf.constant([0, 1])"),
            "Training gets the same views at every step: the seed",
        ),
        # Seed of a random op
        Wrong(
            _7C.replace("tf.stack([0, step])", "tf.random.uniform([2], 0, 1000000, tf.int32)"),
            "The same step gives other views when it is taken again: a",
        ),
        # The step first
        Wrong(_7C.replace("[0, step]", "[step, 0]"), "The seed should be"),
        # Step twice
        Wrong(_7C.replace("[0, step]", "[step, step]"), "The seed should be"),
        # Views of the raw pixels, scaled later
        Wrong(
            r"""
def views(images, mode):
    images = tf.cast(images, tf.float32)
    if mode == TRAIN:
        step = tf.cast(v1.train.get_global_step(), tf.int32)
        images = random_views(images, images.shape[1], tf.stack([0, step]))
    return images / 127.5 - 1.0
""",
            "random_views takes images from -",
        ),
    ],
    "7d": [
        Mutant("with v1.tpu.bfloat16_scope():", "if True:", "variables"),
        Mutant(
            "    if bfloat16:\n        net = tf.cast(net, tf.bfloat16)\n",
            "",
            "the types in which the convolutions compute: expected ['bfloat16'], yours gives ['float32']",
        ),
        Mutant("    if bfloat16:\n        net =", "    if True:\n        net =", "bfloat16=False"),
        Mutant("return tf.cast(logits, tf.float32)", "return logits", "cast them to float32"),
        Mutant(
            "return tf.cast(logits, tf.float32)",
            "return tf.nn.softmax(tf.cast(logits, tf.float32))",
            "softmax",
        ),
        Mutant("net = tf.reduce_mean(net, [1, 2])", "net = v1.layers.flatten(net)", "positions"),
        Mutant("training=training, momentum", "training=True, momentum", "training"),
        Mutant("            net = tf.nn.relu(net)\n", "", "tf.nn.relu should follow"),
        Mutant(
            "logits = v1.layers.dense(net, classes)", "logits = v1.layers.dense(net, 5)", "classes"
        ),
        Mutant("training=training, momentum", "training=False, momentum", "UPDATE_OPS"),
        # The one that the wrong ones below are made from
        Right(_7D),
        # Nested function, contextlib, bias
        Right(r"""
import contextlib
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    def block(x, filters):
        x = v1.layers.conv2d(inputs=x, filters=filters, kernel_size=(3, 3), padding="SAME")
        x = v1.layers.batch_normalization(inputs=x, training=training, momentum=0.97)
        return tf.maximum(x, 0)
    with v1.tpu.bfloat16_scope() if bfloat16 else contextlib.nullcontext():
        net = tf.cast(net, tf.bfloat16 if bfloat16 else tf.float32)
        net = block(net, 32)
        for filters in [64, 128, 256]:
            net = block(v1.layers.max_pooling2d(net, pool_size=2, strides=2), filters)
        net = tf.reduce_mean(net, [1, 2])
        logits = v1.layers.dense(net, classes)
    return tf.cast(logits, tf.float32)
"""),
        # Global average pooling by average_pooling2d, dense in float32
        Right(r"""
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    dtype = tf.bfloat16 if bfloat16 else tf.float32
    with v1.tpu.bfloat16_scope():
        net = tf.cast(net, dtype)
        for n, filters in enumerate([32, 64, 128, 256]):
            net = v1.layers.conv2d(net, filters, 3, 1, "same", activation=None)
            net = v1.layers.batch_normalization(net, training=training, momentum=0.97)
            net = tf.nn.relu(net)
            if n < 3:
                net = v1.layers.max_pooling2d(net, 2, 2)
        side = net.shape[1]
        net = v1.layers.flatten(v1.layers.average_pooling2d(net, side, side))
    return v1.layers.dense(tf.cast(net, tf.float32), classes)
"""),
        # Activation before the normalisation
        Right(
            _7D.replace(
                "        net = v1.layers.batch_normalization(net, training=training, momentum=0.97)\n        net = tf.nn.relu(net)",
                "        net = tf.nn.relu(net)\n        net = v1.layers.batch_normalization(net, training=training, momentum=0.97)",
            )
        ),
        # Momentum not given
        Wrong(
            _7D.replace("training=training, momentum=0.97", "training=training"),
            "The momentum of the moving averages: expected 0.97",
        ),
        # No batch normalisation
        Wrong(
            _7D.replace(
                "        net = v1.layers.batch_normalization(net, training=training, momentum=0.97)\n",
                "",
            ),
            "Batch normalisation belongs to each of the four",
        ),
        # Dense with relu
        Wrong(
            _7D.replace(
                "v1.layers.dense(net, classes)",
                "v1.layers.dense(net, classes, activation=tf.nn.relu)",
            ),
            "on the last layer: logits may be any number, leave it out",
        ),
        # Three convolutions
        Wrong(
            _7D.replace("(32, 64, 128, 256)", "(32, 64, 128)"),
            "with 32, 64, 128 and 256 filters",
        ),
        # Other filters
        Wrong(
            _7D.replace("(32, 64, 128, 256)", "(16, 32, 64, 128)"),
            "with 32, 64, 128 and 256 filters",
        ),
        # Convolutions of 5
        Wrong(_7D.replace("filters, 3", "filters, 5"), "3 by 3, with 32, 64, 128 and 256 filters"),
        # No pooling
        Wrong(
            _7D.replace(
                "        if place:\n            net = v1.layers.max_pooling2d(net, 2, 2)\n", ""
            ),
            "between two convolutions makes three of them: expected 3, yours gives 0",
        ),
        # Pooled four times
        Wrong(
            _7D.replace(
                "        if place:\n            net = v1.layers.max_pooling2d(net, 2, 2)\n",
                "        net = v1.layers.max_pooling2d(net, 2, 2)\n",
            ),
            "between two convolutions makes three of them: expected 3, yours gives 4",
        ),
        # Without space_to_depth
        Wrong(
            _7D.replace("tf.nn.space_to_depth(images, 4)", "images"),
            "on the 48 channels of space_to_depth",
        ),
        # Maximum instead of the mean
        Wrong(
            _7D.replace("tf.reduce_mean", "tf.reduce_max"),
            "expected 'mean', yours gives 'maximum'",
        ),
        # Two dense layers
        Wrong(
            _7D.replace(
                "return v1.layers.dense(net, classes)",
                "return v1.layers.dense(v1.layers.dense(net, 128, activation=tf.nn.relu), classes)",
            ),
            "one dense layer, from 256 numbers to the classes",
        ),
    ],
    "7e": [
        Mutant(
            "with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):",
            "if True:",
            "UPDATE_OPS",
        ),
        Mutant(
            '    if params["use_tpu"]:\n        optimizer = v1.tpu', "    optimizer = v1.tpu", "CPU"
        ),
        Mutant(
            '    if params["use_tpu"]:\n        optimizer = v1.tpu.CrossShardOptimizer(optimizer)\n',
            "",
            "drift",
        ),
        Mutant("(loss, global_step=step)", "(loss)", "global step"),
        Mutant("MomentumOptimizer(rate, 0.9", "MomentumOptimizer(0.05, 0.9", "rate"),
        Mutant("MomentumOptimizer(rate, 0.9", "MomentumOptimizer(-rate, 0.9", "minimize the loss"),
        Mutant(", host_call=host_call(loss, rate, params)", "", "host_call"),
        Mutant("host_call=host_call(loss, rate, params)", "host_call=host_call", "pair"),
        Mutant(
            "    return tpu.TPUEstimatorSpec(\n        mode, loss=loss, train_op=train_op, "
            "host_call=host_call(loss, rate, params)\n    )",
            "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
            "TPUEstimatorSpec",
        ),
        # The one that the wrong ones below are made from
        Right(_7E),
        # Tf.group of the step and the updates, Adam
        Right(
            _7E.replace(
                "v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)",
                "v1.train.AdamOptimizer(learning_rate=rate)",
            ).replace(
                "    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):\n        train_op = optimizer.minimize(loss, step)",
                "    train_op = tf.group(optimizer.minimize(loss, global_step=step), *v1.get_collection(v1.GraphKeys.UPDATE_OPS))",
            )
        ),
        # Helper function, compute and apply
        Right(
            _7E.replace(
                "    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):\n        train_op = optimizer.minimize(loss, step)",
                "    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)\n    gradients = optimizer.compute_gradients(loss)\n    with tf.control_dependencies(updates):\n        train_op = optimizer.apply_gradients(gradients, global_step=step)",
            )
        ),
        # Group as the dependency, keyword arguments, conditional expression
        Right(
            _7E.replace(
                '    if params["use_tpu"]:\n        optimizer = v1.tpu.CrossShardOptimizer(optimizer)',
                '    optimizer = v1.tpu.CrossShardOptimizer(optimizer) if params.get("use_tpu") else optimizer',
            )
            .replace(
                "v1.get_collection(v1.GraphKeys.UPDATE_OPS)):",
                '[tf.group(*tf.compat.v1.get_collection("update_ops"))]):',
            )
            .replace(
                "tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call(loss, rate, params))",
                "tpu.TPUEstimatorSpec(mode=mode, train_op=train_op, host_call=host_call(loss=loss, rate=rate, params=params), loss=loss)",
            )
        ),
        # UPDATE_OPS forgotten
        Wrong(
            _7E.replace(
                "with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):",
                "if True:",
            ),
            "the step runs the UPDATE_OPS, in which batch normalisation",
        ),
        # Collected before there are any
        Wrong(
            _7E.replace(
                "with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):",
                "with tf.control_dependencies(early):",
            ).replace(
                "    images = views(features",
                "    early = v1.get_collection(v1.GraphKeys.UPDATE_OPS)\n    images = views(features",
            ),
            "the step runs the UPDATE_OPS, in which batch normalisation",
        ),
        # Minimize outside the block
        Wrong(
            _7E.replace(
                "        train_op = optimizer.minimize(loss, step)",
                "        pass\n    train_op = optimizer.minimize(loss, step)",
            ),
            "the step runs the UPDATE_OPS, in which batch normalisation",
        ),
        # No CrossShardOptimizer
        Wrong(
            _7E.replace(
                '    if params["use_tpu"]:\n        optimizer = v1.tpu.CrossShardOptimizer(optimizer)\n',
                "",
            ),
            "without one the cores would drift apart",
        ),
        # The function host_call, not called
        Wrong(
            _7E.replace(
                "host_call=host_call(loss, rate, params)",
                "host_call=(host_call, [loss, rate, params])",
            ),
            "host_call is a function of this notebook that makes the",
        ),
        # Rate and loss swapped in host_call
        Wrong(
            _7E.replace("host_call(loss, rate, params))", "host_call(rate, loss, params))"),
            "What host_call(loss, rate, params) gets for the loss and the rate",
        ),
        # Learning rate without the decay
        Wrong(
            _7E.replace("MomentumOptimizer(rate", 'MomentumOptimizer(params["learning_rate"]'),
            "the variables still move: give the optimizer `rate`, not",
        ),
    ],
    "7f": [
        Mutant("        export_to_tpu=False,\n", "", "export_to_tpu"),
        Mutant(
            '        save_checkpoints_steps=settings["checkpoint_steps"],\n', "", "checkpoint_steps"
        ),
        Mutant(
            '        tpu_config=tpu.TPUConfig(iterations_per_loop=settings["iterations_per_loop"]),\n',
            "",
            "iterations_per_loop",
        ),
        Mutant("        params=settings,\n", "", "params"),
        Mutant(
            "params=settings,", 'params={"learning_rate": settings["learning_rate"]},', "params"
        ),
        Mutant(
            'predict_batch_size=settings["eval_batch_size"],\n        ', "", "predict_batch_size"
        ),
        Mutant('use_tpu=settings["use_tpu"],', "use_tpu=False,", "use_tpu"),
        Mutant('if settings["use_tpu"]:', "if False:", "resolver"),
        Mutant('model_dir=settings["model_dir"],', "", "model_dir"),
        # The one that the wrong ones below are made from
        Right(_7F),
        # Dicts of keyword arguments
        Right(r"""
def make_estimator(model, settings):
    s = dict(settings)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=s["tpu"]) if s["use_tpu"] else None
    loop = tpu.TPUConfig(s["iterations_per_loop"])
    run = dict(cluster=resolver, model_dir=s["model_dir"], save_checkpoints_steps=s["checkpoint_steps"], tpu_config=loop)
    sizes = {f"{kind}_batch_size": s[f"{of}_batch_size"] for kind, of in (("train", "train"), ("eval", "eval"), ("predict", "eval"))}
    return tpu.TPUEstimator(model_fn=model, params=s, use_tpu=s["use_tpu"], export_to_tpu=False, config=tpu.RunConfig(**run), **sizes)
"""),
        # Helper for the config
        Right(r"""
def _config(settings):
    def cluster():
        return tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])
    return tpu.RunConfig(
        tpu_config=tpu.TPUConfig(iterations_per_loop=settings["iterations_per_loop"]),
        cluster=cluster() if settings["use_tpu"] else None,
        model_dir=settings["model_dir"], save_checkpoints_steps=settings["checkpoint_steps"])
def make_estimator(model, settings):
    return tpu.TPUEstimator(model_fn=model, model_dir=settings["model_dir"], config=_config(settings),
        use_tpu=settings["use_tpu"], train_batch_size=settings["train_batch_size"],
        eval_batch_size=settings["eval_batch_size"], predict_batch_size=settings["eval_batch_size"],
        export_to_tpu=False, params=settings)
"""),
        # Export_to_tpu left
        Wrong(
            _7F.replace("        export_to_tpu=False,\n", ""),
            "By default the export holds a second graph that only a TPU",
        ),
        # Resolver always
        Wrong(
            _7F.replace('    if settings["use_tpu"]:\n        cluster', "    cluster"),
            "Where use_tpu is false, cluster should be None",
        ),
        # No resolver
        Wrong(
            _7F.replace(
                'cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])',
                "pass",
            ),
            "Where use_tpu is true, cluster should be a resolver of",
        ),
        # Resolver without the name
        Wrong(
            _7F.replace('TPUClusterResolver(settings["tpu"])', "TPUClusterResolver()"),
            "Your code raised ValueError: Please provide a TPU Name to",
        ),
        # Use_tpu=False always
        Wrong(
            _7F.replace('        use_tpu=settings["use_tpu"],\n', "        use_tpu=False,\n"),
            "use_tpu should be settings",
        ),
        # Use_tpu left out
        Wrong(
            _7F.replace('        use_tpu=settings["use_tpu"],\n', ""),
            "use_tpu, which is True where it is left out",
        ),
        # Params left out
        Wrong(
            _7F.replace("        params=settings,\n", ""),
            "image_size, labels, learning_rate, model_dir, train_steps",
        ),
        # Checkpoints in seconds
        Wrong(
            _7F.replace(
                'save_checkpoints_steps=settings["checkpoint_steps"]',
                'save_checkpoints_secs=settings["checkpoint_steps"]',
            ),
            "save_checkpoints_steps should be settings",
        ),
        # Checkpoints left out
        Wrong(
            _7F.replace('        save_checkpoints_steps=settings["checkpoint_steps"],\n', ""),
            "save_checkpoints_steps should be settings",
        ),
        # The notebook's model_fn
        Wrong(
            _7F.replace("        model,\n", "        model_fn,\n"),
            "The TPUEstimator should get `model`, the function that",
        ),
    ],
    "7g": [
        Mutant(", fn_output_signature=tf.uint8", "", "fn_output_signature"),
        Mutant("[None], ", "[], ", "any number"),
        Mutant("[None], ", "[1], ", "any number"),
        Mutant('{"image_bytes": encoded}', '{"image": encoded}', "image_bytes"),
        Mutant('{"image": images}, {', "images, {", '"image"'),
        Mutant('{"image_bytes": encoded}', '{"image_bytes": images}', "placeholder"),
        Mutant(
            "lambda one: preprocess(one, size), encoded",
            "lambda one: tf.cast(tf.image.resize(tf.io.decode_image(one, 3, expand_animations=False), "
            "[size, size]), tf.uint8), encoded",
            "another picture",
        ),
        Mutant(
            "        return v1.estimator.export.Serving",
            "        v1.estimator.export.Serving",
            "return",
        ),
        Mutant("    return serving_input_receiver_fn\n", "", "return missing"),
        # The one that the wrong ones below are made from
        Right(_7G),
        # With weights too, TensorSpec signature, named placeholder
        Right(r"""
def make_serving_input_fn(size):
    def serving_input_receiver_fn():
        image_bytes = v1.placeholder(dtype=tf.string, shape=[None], name="image_bytes")
        def one(data):
            return preprocess(encoded=data, size=size)
        pixels = tf.map_fn(fn=one, elems=image_bytes, fn_output_signature=tf.TensorSpec([size, size, 3], tf.uint8))
        return v1.estimator.export.ServingInputReceiver(
            features={"image": pixels, "weight": tf.ones([tf.shape(pixels)[0]])}, receiver_tensors={"image_bytes": image_bytes})
    return serving_input_receiver_fn
"""),
        # Functools.partial, dict()
        Right(r"""
import functools
def _receive(size):
    strings = v1.placeholder(tf.string, shape=(None,))
    image = tf.map_fn(functools.partial(preprocess, size=size), strings, fn_output_signature=tf.uint8)
    return v1.estimator.export.ServingInputReceiver(dict(image=image), dict(image_bytes=strings))
def make_serving_input_fn(size):
    return lambda: _receive(size)
"""),
        # Tf.estimator's, dtype, explicit reshape
        Right(r"""
def make_serving_input_fn(size):
    def receiver():
        data = tf.compat.v1.placeholder(tf.string, [None])
        images = tf.map_fn(lambda d: preprocess(d, size), data, dtype=tf.uint8)
        images = tf.reshape(images, [-1, size, size, 3])
        return v1.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": data})
    return receiver
"""),
        # A placeholder of one
        Wrong(
            _7G.replace("tf.string, [None]", "tf.string, []").replace(
                "tf.map_fn(lambda each: preprocess(each, size), encoded, fn_output_signature=tf.uint8)",
                "preprocess(encoded, size)[None]",
            ),
            "any number of strings, [None]",
        ),
        # A batch of one always
        Wrong(_7G.replace("tf.string, [None]", "tf.string, [1]"), "any number of strings, [None]"),
        # Uint8 images for an entrance
        Wrong(
            r"""
def make_serving_input_fn(size):
    def serving_input_receiver_fn():
        images = v1.placeholder(tf.uint8, [None, size, size, 3])
        return v1.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": images})
    return serving_input_receiver_fn
""",
            "any number of strings, [None], the placeholder itself",
        ),
        # No map_fn
        Wrong(
            _7G.replace(
                "tf.map_fn(lambda each: preprocess(each, size), encoded, fn_output_signature=tf.uint8)",
                "preprocess(encoded, size)",
            ),
            "Your code raised ValueError: Shape must be rank",
        ),
        # No output signature
        Wrong(
            _7G.replace(", fn_output_signature=tf.uint8", ""),
            "map_fn takes it that what comes out is of the type that",
        ),
        # Another preparation
        Wrong(
            _7G.replace(
                "preprocess(each, size)",
                "tf.cast(tf.image.resize(tf.io.decode_jpeg(each, channels=3), [size, size]), tf.uint8)",
            ),
            "The model gets another picture than evaluation gives it",
        ),
        # Scaled here
        Wrong(
            _7G.replace(
                '{"image": images},', '{"image": tf.cast(images, tf.float32) / 127.5 - 1.0},'
            ),
            'features["image"], as preprocess makes it',
        ),
        # Another name for the placeholder
        Wrong(
            _7G.replace('{"image_bytes": encoded}', '{"bytes": encoded}'),
            "yours gives {'bytes'",
        ),
        # Features without a dict
        Wrong(_7G.replace('{"image": images},', "images,"), "model_fn looks for features"),
        # Views too
        Wrong(
            _7G.replace(
                '{"image": images},', '{"image": tf.image.random_flip_left_right(images)},'
            ),
            "The same bytes give another picture each time: nothing",
        ),
    ],
    "7h": [
        Mutant(
            '{"b64": base64.b64encode(picture).decode()}',
            '{"base64": base64.b64encode(picture).decode()}',
            "answers 400",
        ),
        Mutant(
            "base64.b64encode(picture)",
            "base64.b64encode(base64.b64encode(picture))",
            "encoded twice",
        ),
        Mutant("base64.b64encode(picture)", "base64.urlsafe_b64encode(picture)", "usual alphabet"),
        Mutant("base64.b64encode(picture).decode()", "str(base64.b64encode(picture))", "400"),
        Mutant(
            "base64.b64encode(picture).decode()",
            "base64.b64encode(picture)",
            "not JSON serializable",
        ),
        Mutant('json.dumps({"instances": instances})', '{"instances": instances}', "json.dumps"),
        Mutant(
            'json.dumps({"instances": instances})', "json.dumps(instances)", "not a JSON object"
        ),
        Mutant('"instances": instances', '"examples": instances', 'below the key "instances"'),
        Mutant(
            "for picture in pictures]", "for picture in pictures[:1]]", "one instance a picture"
        ),
        # Latin-1, as many do with bytes first
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"image_bytes": each.decode("latin-1")} for each in pictures]})
""",
            "the bytes of each, unchanged",
        ),
        # Hexadecimal digits
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"b64": each.hex()} for each in pictures]})
""",
            "the bytes of each, unchanged",
        ),
        # The pixels' name of another model
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"image": {"b64": base64.b64encode(p).decode()}} for p in pictures]})
""",
            "The signature's inputs are ['image_bytes']",
        ),
        # Another signature
        Wrong(
            """
def predict_body(pictures):
    rows = [{"b64": base64.b64encode(p).decode()} for p in pictures]
    return json.dumps({"signature_name": "predict", "instances": rows})
""",
            "There is no signature 'predict'",
        ),
        # All pictures in one
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [{"b64": base64.b64encode(b"".join(pictures)).decode()}]})
""",
            "one instance a picture",
        ),
        # A list in a list
        Wrong(
            """
def predict_body(pictures):
    return json.dumps({"instances": [[{"b64": base64.b64encode(p).decode()}] for p in pictures]})
""",
            "a scalar string",
        ),
        # The name of the input, the signature, bytes
        Right("""
def predict_body(pictures):
    rows = [{"image_bytes": {"b64": str(base64.b64encode(p), "ascii")}} for p in pictures]
    return json.dumps({"signature_name": "serving_default", "instances": rows}).encode("utf-8")
"""),
        # Columns
        Right("""
def predict_body(pictures):
    column = list(map(lambda p: dict(b64=base64.standard_b64encode(p).decode("utf-8")), pictures))
    return json.dumps(dict(inputs=dict(image_bytes=column)))
"""),
        # Binascii, an unnamed column
        Right("""
import binascii
def predict_body(pictures):
    return json.dumps({"inputs": [{"b64": binascii.b2a_base64(p).decode()} for p in pictures]})
"""),
        # Text put together
        Right("""
def predict_body(pictures):
    rows = ", ".join('{"b64": "%s"}' % base64.encodebytes(p).decode().replace("\\n", "") for p in pictures)
    return '{"instances": [' + rows + "]}"
"""),
        # A generator, NumPy
        Right("""
def _row(picture):
    return {"b64": "".join(np.array([base64.b64encode(picture).decode()]))}
def predict_body(pictures):
    return bytearray(json.dumps({"instances": list(_row(p) for p in pictures)}, indent=2), "ascii")
"""),
    ],
    "7i": [
        Mutant("seconds[batch] <= limit", "seconds[batch] < limit", "100 ms keep a limit"),
        Mutant("seconds[batch] <= limit", "seconds[batch] / batch <= limit", "over the limit"),
        Mutant(" if seconds[batch] <= limit]", "]", "over the limit"),
        Mutant(
            "lambda batch: batch / seconds[batch]", "lambda batch: batch", "largest is not the best"
        ),
        Mutant(
            "lambda batch: batch / seconds[batch]",
            "lambda batch: -seconds[batch]",
            "1, 8 and 32 give 100, 200 and 246 pictures a second",
        ),
        Mutant(
            "batch / seconds[batch], default",
            "seconds[batch] / batch, default",
            "1, 8 and 32 give 100, 200 and 246 pictures a second",
        ),
        Mutant(", default=None", "", "raised"),
        # The largest that keeps the limit
        Wrong(
            """
def best_batch(seconds, limit):
    return max((b for b, s in seconds.items() if s <= limit), default=None)
""",
            "largest is not the best",
        ),
        # The rate
        Wrong(
            """
def best_batch(seconds, limit):
    return max(batch / each for batch, each in seconds.items() if each <= limit)
""",
            "A key of `seconds`",
        ),
        # Stops at the first one over the limit
        Wrong(
            """
def best_batch(seconds, limit):
    best = None
    for batch, each in seconds.items():
        if each > limit:
            break
        best = batch
    return best
""",
            "largest is not the best",
        ),
        # The smallest where none keeps it
        Wrong(
            """
def best_batch(seconds, limit):
    within = {b: b / s for b, s in seconds.items() if s <= limit} or {min(seconds): 0}
    return max(within, key=within.get)
""",
            "return None",
        ),
        # A loop
        Right("""
def best_batch(seconds, limit):
    best, rate = None, 0.0
    for batch, each in sorted(seconds.items()):
        if each <= limit and batch / each > rate:
            best, rate = batch, batch / each
    return best
"""),
        # Sorting
        Right("""
def best_batch(seconds, limit):
    ranked = sorted((s / b, b) for b, s in seconds.items() if not s > limit)
    return ranked[0][1] if ranked else None
"""),
        # NumPy
        Right("""
def best_batch(seconds, limit):
    batches, times = np.array(list(seconds)), np.array(list(seconds.values()))
    rates = np.where(times <= limit, batches / times, -1.0)
    return None if rates.max() < 0 else int(batches[rates.argmax()])
"""),
        # NumPy's own integer
        Right("""
def best_batch(seconds, limit):
    batches, times = np.array(list(seconds)), np.array(list(seconds.values()))
    rates = np.where(times <= limit, batches / times, 0)
    return batches[rates.argmax()] if rates.any() else None
"""),
        # A try
        Right("""
def best_batch(seconds, limit):
    try:
        return max([b for b in seconds if seconds[b] <= limit], key=lambda b: b / seconds[b])
    except ValueError:
        return None
"""),
    ],
}
