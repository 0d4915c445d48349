"""What learners get wrong in lab 01, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "1a": [
        Mutant(".shuffle(len(labels), seed=1).repeat()", ".shuffle(len(labels))", "ends after"),
        Mutant(".shuffle(len(labels), seed=1).repeat()", ".repeat()", "same order"),
        Mutant(".shuffle(len(labels), seed=1)", ".shuffle(2)", "buffer"),
        Mutant(
            ".shuffle(len(labels), seed=1)",
            ".shuffle(len(labels), reshuffle_each_iteration=False)",
            "every epoch",
        ),
        Mutant("if training:\n            dataset = dataset", "dataset = dataset", "does not end"),
        Mutant(".batch(batch_size)", ".batch(batch_size, drop_remainder=True)", "exactly once"),
        Mutant(".batch(batch_size)", ".batch(64)", "batch_size"),
        Mutant("scaled(image)", "tf.cast(image, tf.float32)", "scaled"),
        Mutant("labels.astype(np.int32)", "labels", "int32"),
        Mutant(
            "dataset = dataset.shuffle(len(labels), seed=1).repeat()",
            "pair = [dataset.map(lambda *each, n=n: each[n]).shuffle(50, seed=n) for n in (0, 1)]\n"
            "            dataset = tf.data.Dataset.zip(tuple(pair)).repeat()",
            "labels of other images",
        ),
        Mutant("    return input_fn\n", "    return input_fn()\n", "function"),
    ],
    "1b": [
        Mutant(
            "return v1.layers.dense(net, 10)",
            "return tf.nn.softmax(v1.layers.dense(net, 10))",
            "softmax",
        ),
        Mutant(
            "return v1.layers.dense(net, 10)",
            "return v1.layers.dense(net, 10, tf.nn.relu)",
            "negative",
        ),
        Mutant(
            "return v1.layers.dense(net, 10)",
            "return tf.argmax(v1.layers.dense(net, 10), 1)",
            "[B, 10]",
        ),
        Mutant("return v1.layers.dense(net, 10)", "return v1.layers.dense(net, 9)", "[B, 10]"),
        Mutant("    net = v1.layers.flatten(net)\n", "", "[B, 10]"),
        Mutant("v1.layers.flatten(net)", "tf.reshape(net, [64, 512])", "any number of images"),
        Mutant(
            """net, 32, 3, padding="same", activation=tf.nn.relu)
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64, activation=tf.nn.relu)""",
            """net, 32, 3, padding="same")
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64)""",
            "activation",
        ),
        Mutant(
            "net = images[:, :, :, None]",
            "net = (images - tf.reduce_mean(images, 0))[:, :, :, None]",
            "other images of the batch",
        ),
    ],
    "1c": [
        Mutant('"probabilities": tf.nn.softmax(logits)', '"probabilities": logits', "add up to 1"),
        Mutant(
            '"probabilities": tf.nn.softmax(logits)',
            '"probabilities": tf.nn.sigmoid(logits)',
            "add up to 1",
        ),
        Mutant(
            '"probabilities": tf.nn.softmax(logits)',
            '"probabilities": tf.nn.softmax(logits, axis=0)',
            "add up to 1",
        ),
        Mutant(
            '"class_id": tf.argmax(logits, axis=1)', '"class_id": tf.argmax(logits, axis=0)', "row"
        ),
        Mutant('"class_id":', '"classes":', "class_id"),
        Mutant("predictions=predictions)", "predictions=tf.nn.softmax(logits))", "dict"),
        Mutant(
            "    logits = inference(features)\n\n",
            "    logits = inference(features)\n"
            "    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)\n\n",
            "labels",
        ),
        Mutant(
            "return tf.estimator.EstimatorSpec(mode, predictions=predictions)", "pass", "labels"
        ),
    ],
    "1d": [
        Mutant("loss=loss, eval_metric_ops=metrics", "loss=loss", '"accuracy"'),
        Mutant('{"accuracy": v1', '{"acc": v1', '"accuracy"'),
        Mutant(
            "v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))",
            "tf.reduce_mean(tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32))",
            "update",
        ),
        Mutant(
            "v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))",
            "(tf.reduce_mean(tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32)),"
            " tf.no_op())",
            "all batches",
        ),
        Mutant(
            "accuracy(labels, tf.argmax(logits, axis=1))",
            "accuracy(labels, logits)",
            re.compile("InvalidArg|ValueError"),
        ),
        Mutant(
            "accuracy(labels, tf.argmax(logits, axis=1))",
            "accuracy(tf.argmax(logits, axis=1), tf.argmax(logits, axis=1))",
            "35 of 60",
        ),
        Mutant(
            "v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))",
            "v1.metrics.mean(tf.nn.softmax(logits))",
            "35 of 60",
        ),
        Mutant(
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)\n        metrics",
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, tf.nn.softmax(logits))\n        metrics",
            "loss of training",
        ),
    ],
    "1e": [
        Mutant(", global_step=v1.train.get_global_step()", "", "global step"),
        Mutant('AdamOptimizer(params["learning_rate"])', "AdamOptimizer(0.05)", "learning_rate"),
        Mutant(
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)\n    optimizer",
            "loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))\n"
            "    optimizer",
            "mean",
        ),
        Mutant(
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)\n    optimizer",
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, tf.nn.softmax(logits))\n    optimizer",
            "twice",
        ),
        Mutant(
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)\n    optimizer",
            "loss = -v1.losses.sparse_softmax_cross_entropy(labels, logits)\n    optimizer",
            "ln 10",
        ),
        Mutant(
            "loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)\n    optimizer",
            "loss = v1.losses.mean_squared_error(tf.one_hot(labels, 10), logits)\n    optimizer",
            "ln 10",
        ),
        Mutant("loss=loss, train_op=train_op", "loss=loss", "train_op"),
        Mutant(
            "logits = inference(features)\n",
            "logits = v1.layers.dense(features, 10)\n",
            "inference",
        ),
        Mutant(
            "optimizer.minimize(loss, global_step=v1.train.get_global_step())",
            "v1.train.get_global_step().assign_add(1)",
            "variables",
        ),
    ],
    "1f": [
        Mutant("scaled(pixels), {", "pixels, {", "scaled"),
        Mutant("scaled(pixels), {", "scaled(scaled(pixels)), {", "scaled"),
        Mutant("[None, 8, 8], name", "[1, 8, 8], name", "any number"),
        Mutant('{"pixels": pixels}', '{"images": pixels}', '"pixels"'),
        Mutant("export.TensorServing", "export.Serving", "plain ServingInputReceiver"),
        Mutant('{"pixels": pixels}', '{"pixels": scaled(pixels)}', "placeholder"),
        Mutant("v1.placeholder(tf.float32, ", "v1.placeholder(tf.uint8, ", "float32"),
    ],
}
