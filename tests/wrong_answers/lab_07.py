"""What learners get wrong in lab 07, and the words that they must hear."""

import re

from wrong_answers import Mutant

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
    ],
    "7c": [
        Mutant("if mode == TRAIN:", "if True:", "mode 'eval'"),
        Mutant("if mode == TRAIN:", "if mode != EVAL:", "mode 'infer'"),
        Mutant("if mode == TRAIN:", "if False:", "unchanged"),
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
    ],
    "7d": [
        Mutant("with v1.tpu.bfloat16_scope():", "if True:", "variables"),
        Mutant("    if bfloat16:\n        net = tf.cast(net, tf.bfloat16)\n", "", "in float32"),
        Mutant("    if bfloat16:\n        net =", "    if True:\n        net =", "bfloat16=False"),
        Mutant("return tf.cast(logits, tf.float32)", "return logits", "cast them to float32"),
        Mutant(
            "return tf.cast(logits, tf.float32)",
            "return tf.nn.softmax(tf.cast(logits, tf.float32))",
            "softmax",
        ),
        Mutant("net = tf.reduce_mean(net, [1, 2])", "net = v1.layers.flatten(net)", "positions"),
        Mutant("training=training, momentum", "training=True, momentum", "training"),
        Mutant("            net = tf.nn.relu(net)\n", "", "activation"),
        Mutant(
            "logits = v1.layers.dense(net, classes)", "logits = v1.layers.dense(net, 5)", "classes"
        ),
        Mutant("training=training, momentum", "training=False, momentum", "UPDATE_OPS"),
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
        Mutant("MomentumOptimizer(rate, 0.9", "MomentumOptimizer(-rate, 0.9", "does not fall"),
        Mutant(", host_call=host_call(loss, rate, params)", "", "host_call"),
        Mutant("host_call=host_call(loss, rate, params)", "host_call=host_call", "pair"),
        Mutant(
            "    return tpu.TPUEstimatorSpec(\n        mode, loss=loss, train_op=train_op, "
            "host_call=host_call(loss, rate, params)\n    )",
            "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
            "TPUEstimatorSpec",
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
    ],
}
