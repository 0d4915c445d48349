"""Answers to lab 01: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong


def fed(body: str, outside: str = "") -> str:
    """A cell with make_input_fn around that body of input_fn."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"{outside}def make_input_fn(pixels, labels, batch_size, training):\n    def input_fn():\n{inner}\n\n    return input_fn\n"


def model(body: str, before: str = "") -> str:
    """A cell with a model_fn of that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    return f"{before}def model_fn(features, labels, mode, params):\n{inner}\n"


PAIRS = "dataset = tf.data.Dataset.from_tensor_slices((scaled(pixels), labels.astype(np.int32)))\n"
TRAIN = """
logits = inference(features)
loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
optimizer = v1.train.AdamOptimizer(params["learning_rate"])
step = v1.train.get_global_step()
"""
SPEC = "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n"
EVALUATED = """
logits = inference(features)
loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
classes = tf.argmax(logits, axis=1)
"""

ANSWERS = {
    "1a": [
        Mutant(".shuffle(len(labels), seed=1).repeat()", ".shuffle(len(labels))", "never ends"),
        Mutant(".shuffle(len(labels), seed=1).repeat()", ".repeat()", "same order"),
        Mutant(".shuffle(len(labels), seed=1)", ".shuffle(2)", "buffer"),
        Mutant(
            ".shuffle(len(labels), seed=1)",
            ".shuffle(len(labels), reshuffle_each_iteration=False)",
            "every epoch",
        ),
        Mutant("if training:\n            dataset = dataset", "dataset = dataset", "does not end"),
        Mutant(".batch(batch_size)", ".batch(64)", "batch_size"),
        Mutant("scaled(image)", "tf.cast(image, tf.float32)", "scaled"),
        Mutant("labels.astype(np.int32)", "labels", "int32"),
        Mutant(
            "dataset = dataset.shuffle(len(labels), seed=1).repeat()",
            "pair = [dataset.map(lambda *each, n=n: each[n]).shuffle(50, seed=n) for n in (0, 1)]\n"
            "            dataset = tf.data.Dataset.zip(tuple(pair)).repeat()",
            "own labels",
        ),
        Mutant("    return input_fn\n", "    return input_fn()\n", "function"),
        Right(
            fed("""
            images = tf.data.Dataset.from_tensor_slices(pixels).map(scaled)
            classes = tf.data.Dataset.from_tensor_slices(labels).map(lambda label: tf.cast(label, tf.int32))
            pairs = tf.data.Dataset.zip((images, classes))
            if not training:
                return pairs.batch(batch_size)
            return pairs.shuffle(buffer_size=2000, reshuffle_each_iteration=True).repeat().batch(batch_size)
        """)
        ),
        Right(
            fed(
                """
            dataset = tf.data.Dataset.from_tensor_slices((pixels, labels))
            if training:
                dataset = dataset.shuffle(len(pixels)).repeat(None)
            dataset = dataset.batch(batch_size, drop_remainder=training)
            return dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        """,
                "def prepare(images, labels):\n    return scaled(images), tf.cast(labels, tf.int32)\n\n\n",
            )
        ),
        Right("""
            def make_input_fn(pixels, labels, batch_size, training):
                pictures, classes = (np.asarray(pixels) / 16).astype("float32"), np.int32(labels)
                epochs = lambda data: data.shuffle(len(classes)).repeat() if training else data
                return lambda: epochs(tf.data.Dataset.from_tensor_slices((pictures, classes))).batch(batch_size)
        """),
        Right("""
            class Reader:
                def __init__(self, pixels, labels, batch_size, training):
                    self.arrays, self.batch_size, self.training = (pixels, labels), batch_size, training

                def __call__(self):
                    data = tf.data.Dataset.from_tensor_slices(self.arrays)
                    data = data.map(lambda x, y: (scaled(x), tf.cast(y, "int32"))).cache()
                    if self.training:
                        data = data.shuffle(1500).repeat()
                    return data.batch(batch_size=self.batch_size)


            make_input_fn = Reader
        """),
        Wrong(
            fed(
                PAIRS
                + "dataset = dataset.batch(batch_size)\nreturn dataset.shuffle(100).repeat() if training else dataset"
            ),
            "before batch",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(len(labels)).repeat(10)\nreturn dataset.batch(batch_size)"
            ),
            "never ends",
        ),
        Wrong(
            fed(
                PAIRS
                + "dataset = dataset.shuffle(len(labels)).repeat()\nreturn dataset.batch(batch_size)"
            ),
            "does not end",
        ),
        Wrong(
            fed(
                PAIRS
                + "if not training:\n    dataset = dataset.shuffle(len(labels)).repeat()\nreturn dataset.batch(batch_size)"
            ),
            re.compile("does not end|belongs to training"),
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices((pixels / 255.0, labels.astype(np.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.map(lambda x, y: (tf.cast(x, tf.float32), y)).batch(batch_size)
        """),
            "scaled",
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices((scaled(scaled(pixels)), labels.astype(np.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.batch(batch_size)
        """),
            "scaled",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(len(labels)).repeat()\nfollowing = v1.data.make_one_shot_iterator(dataset.batch(batch_size))\nreturn following.get_next()"
            ),
            "dataset",
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices(({"image": scaled(pixels)}, labels.astype(np.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.batch(batch_size)
        """),
            "pair",
        ),
        Wrong(
            fed("""
            dataset = tf.data.Dataset.from_tensor_slices((scaled(pixels), tf.one_hot(labels, 10, dtype=tf.int32)))
            if training:
                dataset = dataset.shuffle(len(labels)).repeat()
            return dataset.batch(batch_size)
        """),
            "labels [B]",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(len(labels)).repeat()\nreturn dataset"
            ),
            "batch",
        ),
        Wrong(
            fed("""
            images = tf.data.Dataset.from_tensor_slices(scaled(pixels))
            classes = tf.data.Dataset.from_tensor_slices(labels.astype(np.int32))
            if training:
                images, classes = images.shuffle(500), classes.shuffle(500)
            dataset = tf.data.Dataset.zip((images, classes)).batch(batch_size)
            return dataset.repeat() if training else dataset
        """),
            "own labels",
        ),
        Wrong(
            """
            def make_input_fn(pixels, labels, batch_size, training):
                dataset = tf.data.Dataset.from_tensor_slices((scaled(pixels), labels.astype(np.int32)))
                if training:
                    dataset = dataset.shuffle(len(labels)).repeat()
                dataset = dataset.batch(batch_size)

                def input_fn():
                    return dataset

                return input_fn
        """,
            "inside input_fn",
        ),
        Wrong(
            fed(
                PAIRS
                + "if training:\n    dataset = dataset.shuffle(4).repeat()\nreturn dataset.batch(batch_size)"
            ),
            "buffer",
        ),
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
            "activation (Relu)",
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
        Right("""
            def inference(images):
                net = tf.reshape(images, [-1, 64])
                for units in (128, 64):
                    net = tf.nn.relu(v1.layers.dense(inputs=net, units=units))
                return v1.layers.dense(net, units=10, use_bias=False)
        """),
        Right("""
            def inference(images):
                hidden = v1.layers.Dense(32, activation="tanh")(v1.layers.Flatten()(images))
                return v1.layers.Dense(10, name="logits")(hidden)
        """),
        Right("""
            def layer(name, inputs, units):
                kernel = v1.get_variable(name, [int(inputs.shape[-1]), units], initializer=v1.glorot_uniform_initializer())
                return inputs @ kernel


            def inference(images):
                flat = tf.reshape(images, [-1, 8 * 8])
                return layer("out", tf.nn.elu(layer("hidden", flat, 50)), 10)
        """),
        Right("""
            def inference(images):
                net = tf.expand_dims(images, -1)
                net = v1.layers.conv2d(net, filters=16, kernel_size=3, activation=tf.nn.relu)
                net = v1.layers.batch_normalization(net)
                net = tf.reduce_mean(net, axis=[1, 2])
                net = v1.layers.dense(net, 10)
                return tf.identity(net, name="logits")
        """),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(v1.layers.flatten(images), 64, activation=tf.nn.relu)
                return v1.layers.dense(net, 10, activation=tf.nn.tanh)
        """,
            "activation",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(v1.layers.flatten(images), 64, activation=tf.nn.relu)
                return tf.nn.log_softmax(v1.layers.dense(net, 10))
        """,
            "softmax",
        ),
        Wrong(
            """
            def inference(images):
                return v1.layers.dense(v1.layers.flatten(images), 10)
        """,
            "hidden layer",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(v1.layers.flatten(images), 64)
                net = v1.layers.dense(net, 64)
                return v1.layers.dense(net, 10)
        """,
            "activation",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(v1.layers.flatten(images), 64, activation=tf.nn.relu)
                net = v1.layers.dropout(net, 0.5, training=True)
                return v1.layers.dense(net, 10)
        """,
            "same image",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(images, 64, activation=tf.nn.relu)
                return v1.layers.dense(net, 10)
        """,
            "[B, 10]",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.conv2d(images, 32, 3, activation=tf.nn.relu)
                return v1.layers.dense(v1.layers.flatten(net), 10)
        """,
            re.compile("channel|ndim|rank"),
        ),
        Wrong(
            """
            def inference(images):
                kernel = tf.random.normal([64, 32])
                net = tf.nn.relu(tf.reshape(images, [-1, 64]) @ kernel)
                return net @ tf.random.normal([32, 10])
        """,
            "trainable",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(v1.layers.flatten(images), 64, activation=tf.nn.relu)
                net = v1.layers.batch_normalization(net, training=True)
                return v1.layers.dense(net, 10)
        """,
            "other images",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(tf.reshape(images, [100, 64]), 64, activation=tf.nn.relu)
                return v1.layers.dense(net, 10)
        """,
            "any number",
        ),
        Wrong(
            """
            def inference(images):
                net = v1.layers.dense(v1.layers.flatten(images), 64, activation=tf.nn.relu)
                return [v1.layers.dense(net, 1) for _ in range(10)]
        """,
            "tensor",
        ),
        Wrong(
            """
            def inference(images, labels):
                net = v1.layers.dense(v1.layers.flatten(images), 64, activation=tf.nn.relu)
                return v1.layers.dense(net, 10)
        """,
            "labels",
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
        Right(
            model(
                """
            return predicted(mode, classify(features))
        """,
                """def classify(pictures):
    return inference(pictures)


def predicted(mode, logits):
    likely = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return tf.estimator.EstimatorSpec(mode=mode, predictions=dict(class_id=likely, probabilities=tf.nn.softmax(logits)))


""",
            )
        ),
        Right(
            model("""
            scores = inference(images=features)
            exponents = tf.exp(scores - tf.reduce_max(scores, axis=1, keepdims=True))
            shares = exponents / tf.reduce_sum(exponents, axis=1, keepdims=True)
            spec = {"mode": mode}
            if mode == tf.estimator.ModeKeys.PREDICT:
                spec["predictions"] = {"probabilities": shares, "class_id": tf.math.top_k(shares).indices[:, 0]}
            return tf.estimator.EstimatorSpec(**spec)
        """)
        ),
        Right(
            model("""
            logits = inference(features)
            if mode == PREDICT:
                answers = {"class_id": v1.argmax(logits, 1), "probabilities": tf.nn.softmax(logits, -1), "logits": logits}
                return tf.estimator.EstimatorSpec(mode, answers)
            raise ValueError(mode)
        """)
        ),
        Right("""
            class Model:
                def __call__(self, features, labels, mode, params):
                    logits = inference(features)
                    answers = {"class_id": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
                    return tf.estimator.EstimatorSpec(mode, predictions=answers)


            model_fn = Model()
        """),
        Wrong(
            model("""
            logits = inference(features)
            answers = {"class_id": tf.argmax(logits, 1)[:, None], "probabilities": tf.nn.softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "[7]",
        ),
        Wrong(
            model("""
            logits = inference(features)
            answers = {"class_id": tf.reduce_max(logits, 1), "probabilities": tf.nn.softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "class",
        ),
        Wrong(
            model("""
            logits = inference(features)
            answers = {"class_id": tf.argmin(logits, 1), "probabilities": tf.nn.softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "most likely",
        ),
        Wrong(
            model("""
            logits = inference(features)
            answers = {"class_id": tf.argmax(logits, 1), "probabilities": tf.nn.log_softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "add up to 1",
        ),
        Wrong(
            model("""
            logits = inference(features)
            answers = {"class_id": tf.argmax(logits, 1), "probabilities": tf.reduce_max(tf.nn.softmax(logits), 1)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "ten",
        ),
        Wrong(
            model("""
            logits = inference(features)
            return {"class_id": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
        """),
            "EstimatorSpec",
        ),
        Wrong(
            model("""
            logits = inference(features)
            if mode == "predict":
                answers = {"class_id": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
                return tf.estimator.EstimatorSpec(mode, predictions=answers)
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.no_op())
        """),
            "PREDICT",
        ),
        Wrong(
            model("""
            logits = inference(features)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            answers = {"class_id": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers, loss=loss)
        """),
            "labels",
        ),
        Wrong(
            model("""
            logits = v1.layers.dense(v1.layers.flatten(features), 10)
            answers = {"class_id": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "inference",
        ),
        Wrong(
            model("""
            logits = inference(features)
            answers = [tf.argmax(logits, 1), tf.nn.softmax(logits)]
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "dict",
        ),
        Wrong(
            model("""
            logits = inference(features)
            shares = tf.nn.softmax(tf.nn.softmax(logits))
            answers = {"class_id": tf.argmax(logits, 1), "probabilities": shares}
            return tf.estimator.EstimatorSpec(mode, predictions=answers)
        """),
            "once",
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
            "most likely class of each row",
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
            "mean cross-entropy, as in training",
        ),
        Right(
            model(
                EVALUATED
                + """
right = tf.cast(tf.equal(tf.cast(classes, labels.dtype), labels), tf.float32)
return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=dict(accuracy=v1.metrics.mean(right)))
        """
            )
        ),
        Right(
            model(
                """
            logits = inference(features)
            return evaluated(mode=mode, labels=labels, logits=logits)
        """,
                """def evaluated(mode, labels, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    accuracy = v1.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, 1), name="accuracy")
    return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_mean(losses), eval_metric_ops={"accuracy": accuracy})


""",
            )
        ),
        Right(
            model("""
            logits = inference(features)
            loss = v1.losses.softmax_cross_entropy(tf.one_hot(labels, 10), logits)
            metrics = {}
            metrics["accuracy"] = v1.metrics.accuracy(labels, tf.math.top_k(logits, 1).indices[:, 0])
            metrics["top_3"] = v1.metrics.mean(tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32))
            return tf.estimator.EstimatorSpec(mode, None, loss, eval_metric_ops=metrics)
        """)
        ),
        Wrong(
            model(
                EVALUATED
                + """
accuracy = tf.reduce_mean(tf.cast(tf.equal(classes, tf.cast(labels, tf.int64)), tf.float32))
return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
        """
            ),
            "pair",
        ),
        Wrong(
            model(
                EVALUATED
                + """
accuracy = tf.reduce_mean(tf.cast(tf.equal(classes, tf.cast(labels, tf.int64)), tf.float32))
return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": (accuracy, tf.identity(accuracy))})
        """
            ),
            "all batches",
        ),
        Wrong(
            model(
                EVALUATED
                + """
accuracy = v1.metrics.mean_per_class_accuracy(labels, classes, 10)
return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
        """
            ),
            "35 of 60",
        ),
        Wrong(
            model(
                EVALUATED
                + """
return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=v1.metrics.accuracy(labels, classes))
        """
            ),
            "dict",
        ),
        Wrong(
            model(
                EVALUATED
                + """
return tf.estimator.EstimatorSpec(mode, eval_metric_ops={"accuracy": v1.metrics.accuracy(labels, classes)})
        """
            ),
            re.compile("[Ll]oss"),
        ),
        Wrong(
            model("""
            logits = inference(features)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            metrics = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))}
            return tf.estimator.EstimatorSpec(mode, loss=losses, eval_metric_ops=metrics)
        """),
            re.compile("scalar|mean"),
        ),
        Wrong(
            model("""
            logits = inference(features)
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            metrics = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))}
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        """),
            "mean",
        ),
        Wrong(
            model(
                EVALUATED
                + """
metrics = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 0))}
return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        """
            ),
            re.compile("each row|axis|shape"),
        ),
        Wrong(
            model(
                EVALUATED
                + """
optimizer = v1.train.AdamOptimizer(params["learning_rate"])
return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss))
        """
            ),
            re.compile('"accuracy"|EVAL'),
        ),
    ],
    "1e": [
        Mutant(", global_step=v1.train.get_global_step()", "", "global step"),
        Mutant('AdamOptimizer(params["learning_rate"])', "AdamOptimizer(0.05)", "learning_rate"),
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
            "optimizer.minimize(loss, global_step=v1.train.get_global_step())",
            "v1.train.get_global_step().assign_add(1)",
            "variables",
        ),
        Right(
            model(
                TRAIN
                + "pairs = optimizer.compute_gradients(loss)\ntrain_op = optimizer.apply_gradients(pairs, global_step=step)\n"
                + SPEC
            )
        ),
        Right(
            model(
                """
            logits = inference(features)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            return trained(mode, tf.reduce_mean(losses), params)
        """,
                """def trained(mode, loss, params):
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.AdamOptimizer(learning_rate=params["learning_rate"]).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)


""",
            )
        ),
        Right(
            model(
                TRAIN
                + """
variables = v1.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 100.0)
update = optimizer.apply_gradients(zip(gradients, variables))
with tf.control_dependencies([update]):
    train_op = v1.assign_add(step, 1)
"""
                + SPEC
            )
        ),
        Right(
            model(
                TRAIN
                + "train_op = tf.group(optimizer.minimize(loss, step), v1.get_collection(v1.GraphKeys.UPDATE_OPS))\n"
                + SPEC
            )
        ),
        Wrong(
            model(
                TRAIN.replace("AdamOptimizer", "GradientDescentOptimizer")
                + "train_op = optimizer.minimize(loss, step)\n"
                + SPEC
            ),
            "Adam",
        ),
        Wrong(
            model(
                TRAIN.replace("AdamOptimizer", "RMSPropOptimizer")
                + "train_op = optimizer.minimize(loss, step)\n"
                + SPEC
            ),
            "Adam",
        ),
        Wrong(
            model(
                TRAIN.replace('params["learning_rate"]', "learning_rate=1e-3")
                + "train_op = optimizer.minimize(loss, step)\n"
                + SPEC
            ),
            "learning_rate",
        ),
        Wrong(
            model(
                TRAIN.replace('params["learning_rate"]', 'params["learning_rate"] / 64')
                + "train_op = optimizer.minimize(loss, step)\n"
                + SPEC
            ),
            "learning_rate",
        ),
        Wrong(model(TRAIN + "train_op = optimizer.minimize(loss)\n" + SPEC), "global step"),
        Wrong(
            model(
                TRAIN
                + "train_op = tf.group(optimizer.minimize(loss, step), v1.assign_add(step, 1))\n"
                + SPEC
            ),
            "one step",
        ),
        Wrong(model(TRAIN + "train_op = optimizer.minimize(-loss, step)\n" + SPEC), "larger"),
        Wrong(model(TRAIN + "train_op = optimizer\n" + SPEC), "train_op"),
        Wrong(
            model(
                TRAIN + "optimizer.minimize(loss, step)\ntrain_op = v1.assign_add(step, 1)\n" + SPEC
            ),
            "variables",
        ),
        Wrong(
            model(
                TRAIN.replace("labels, logits)", "labels, tf.nn.softmax(logits))")
                + "train_op = optimizer.minimize(loss, step)\n"
                + SPEC
            ),
            "twice",
        ),
        Wrong(
            model(TRAIN + "train_op = optimizer.minimize(loss, step)\nreturn train_op, loss"),
            "EstimatorSpec",
        ),
        Wrong(
            model(
                TRAIN.replace("v1.train.AdamOptimizer(params", "tf.keras.optimizers.Adam(params")
                + "train_op = optimizer.minimize(loss, v1.trainable_variables())\n"
                + SPEC
            ),
            "Keras optimizer",
        ),
        Wrong(
            model(
                TRAIN.replace(
                    "sparse_softmax_cross_entropy(labels, logits)",
                    "mean_squared_error(labels, tf.argmax(logits, 1))",
                )
                + "train_op = optimizer.minimize(loss, step)\n"
                + SPEC
            ),
            "no gradient",
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
        Right("""
            def serving_input_fn():
                sent = {"pixels": v1.placeholder(dtype=tf.float32, shape=(None, 8, 8))}
                return tf.estimator.export.TensorServingInputReceiver(features=scaled(sent["pixels"]), receiver_tensors=sent)
        """),
        Right("""
            def raw():
                return v1.placeholder("float32", [None, 8, 8], "raw")


            def serving_input_fn():
                pixels = raw()
                features = tf.identity(pixels / 16.0)
                return tf.estimator.export.TensorServingInputReceiver(features, dict(pixels=pixels))
        """),
        Right("""
            receive = lambda pixels: tf.estimator.export.TensorServingInputReceiver(scaled(pixels), {"pixels": pixels})
            serving_input_fn = lambda: receive(v1.placeholder(tf.float32, tf.TensorShape([None, 8, 8])))
        """),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 8, 8])
                features = pixels / tf.reduce_max(pixels)
                return tf.estimator.export.TensorServingInputReceiver(features, {"pixels": pixels})
        """,
            "scaled",
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 8, 8])
                return tf.estimator.export.TensorServingInputReceiver(pixels / 255.0, {"pixels": pixels})
        """,
            "scaled",
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 8, 8])
                return tf.estimator.export.TensorServingInputReceiver(scaled(pixels), pixels)
        """,
            '"pixels"',
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 64])
                images = tf.reshape(scaled(pixels), [-1, 8, 8])
                return tf.estimator.export.TensorServingInputReceiver(images, {"pixels": pixels})
        """,
            "[None, 8, 8]",
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 8, 8])
                return scaled(pixels), {"pixels": pixels}
        """,
            "TensorServingInputReceiver",
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 8, 8])
                receiver = {"pixels": pixels}
                return tf.estimator.export.ServingInputReceiver({"pixels": scaled(pixels)}, receiver)
        """,
            "ServingInputReceiver",
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = tf.constant(eval_pixels, tf.float32)
                return tf.estimator.export.TensorServingInputReceiver(scaled(pixels), {"pixels": pixels})
        """,
            "placeholder",
        ),
        Wrong(
            """
            def serving_input_fn():
                pixels = v1.placeholder(tf.float32, [None, 8, 8])
                images = scaled(pixels)[:, :, :, None]
                return tf.estimator.export.TensorServingInputReceiver(images, {"pixels": pixels})
        """,
            "[3, 8, 8]",
        ),
    ],
}
