"""Answers to lab 02: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong


def evaluating(body: str, before: str = "") -> str:
    """A cell with a model_fn whose EVAL branch has that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"""{before}def model_fn(features, labels, mode, params):
    logits = inference(features)

    if mode == PREDICT:
        answers = {{"class_id": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}}
        return tpu.TPUEstimatorSpec(mode, predictions=answers)

    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == EVAL:
{inner}

    train_op = make_optimizer(params).minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def fed(body: str) -> str:
    """A cell with make_input_fn whose input_fn ends with that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"""def make_input_fn(split):
    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
        if split == "train":
            dataset = dataset.shuffle(2048, seed=1).repeat()
        dataset = dataset.map(lambda image, label: (scaled(image), label))
{inner}

    return input_fn
"""


ANSWERS = {
    "2a": [
        Mutant('if params["use_tpu"]:', "if False:", "CrossShardOptimizer"),
        Mutant('if params["use_tpu"]:', "if True:", "one copy"),
        Mutant('if params["use_tpu"]:', 'if not params["use_tpu"]:', "CrossShardOptimizer"),
        Mutant("    return optimizer\n", "", "return missing"),
        Mutant('AdamOptimizer(params["learning_rate"])', "AdamOptimizer()", "learning_rate"),
        Mutant("v1.train.AdamOptimizer(", "v1.train.GradientDescentOptimizer(", "Adam"),
        Mutant("v1.train.AdamOptimizer(", "tf.keras.optimizers.Adam(", "Keras optimizer cannot"),
        Right("""
            def make_optimizer(params):
                adam = v1.train.AdamOptimizer(learning_rate=params["learning_rate"])
                return v1.tpu.CrossShardOptimizer(adam) if params["use_tpu"] else adam
        """),
        Right("""
            def wrapped(optimizer):
                return v1.tpu.CrossShardOptimizer(opt=optimizer, reduction=v1.losses.Reduction.MEAN)


            def make_optimizer(params):
                make = v1.train.AdamOptimizer
                if not params["use_tpu"]:
                    return make(params["learning_rate"])
                return wrapped(make(params["learning_rate"]))
        """),
        Right("""
            make_optimizer = lambda params: (v1.tpu.CrossShardOptimizer if params["use_tpu"] else lambda same: same)(
                tf.compat.v1.train.AdamOptimizer(params["learning_rate"], beta1=0.9, beta2=0.999)
            )
        """),
        Wrong(
            """
            def make_optimizer(params):
                optimizer = v1.train.AdamOptimizer(params["learning_rate"])
                if "use_tpu" in params:
                    optimizer = v1.tpu.CrossShardOptimizer(optimizer)
                return optimizer
        """,
            "one copy",
        ),
        Wrong(
            """
            def make_optimizer(params):
                optimizer = v1.train.AdamOptimizer(params["learning_rate"])
                if settings["use_tpu"]:
                    optimizer = v1.tpu.CrossShardOptimizer(optimizer)
                return optimizer
        """,
            re.compile('params."use_tpu"'),
        ),
        Wrong(
            """
            def make_optimizer(params):
                if params["use_tpu"]:
                    return v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(params["learning_rate"]))
                return v1.train.AdamOptimizer(params["learning_rate"])
        """,
            "Adam",
        ),
        Wrong(
            """
            def make_optimizer(params):
                if params["use_tpu"]:
                    return v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(8 * params["learning_rate"]))
                return v1.train.AdamOptimizer(params["learning_rate"])
        """,
            "learning_rate",
        ),
        Wrong(
            """
            def make_optimizer(params):
                optimizer = v1.train.AdamOptimizer(params["learning_rate"])
                if params["use_tpu"]:
                    optimizer = v1.tpu.CrossShardOptimizer(v1.tpu.CrossShardOptimizer(optimizer))
                return optimizer
        """,
            "twice",
        ),
        Wrong(
            """
            def make_optimizer(params):
                optimizer = v1.train.AdamOptimizer(params["learning_rate"])
                if params["use_tpu"]:
                    v1.tpu.CrossShardOptimizer(optimizer)
                return optimizer
        """,
            "CrossShardOptimizer",
        ),
        Wrong(
            """
            def make_optimizer(params):
                return v1.train.AdamOptimizer(params["learning_rate"]), v1.tpu.CrossShardOptimizer
        """,
            "optimizer of v1.train",
        ),
        Wrong(
            """
            def make_optimizer(params):
                optimizer = v1.train.AdamOptimizer(0.003)
                return v1.tpu.CrossShardOptimizer(optimizer) if params["use_tpu"] else optimizer
        """,
            "learning_rate",
        ),
    ],
    "2b": [
        # An object, whose parameters have other names
        Right("""
class Metrics:
    def __call__(self, y, z):
        best = tf.cast(tf.math.top_k(z, k=1).indices[:, 0], tf.int32)
        return {"accuracy": v1.metrics.mean(tf.cast(tf.equal(y, best), tf.float32))}

metric_fn = Metrics()
"""),
        Mutant('{"accuracy": v1', '{"acc": v1', '"accuracy"'),
        Mutant("axis=1))}", "axis=0))}", "most likely class of each row"),
        Mutant(
            "v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))",
            "tf.reduce_mean(tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32))",
            "pair",
        ),
        Mutant(
            "v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))",
            "v1.metrics.mean(logits)",
            "3 of 4",
        ),
        Right("""
            def metric_fn(labels, logits):
                right = tf.equal(labels, tf.argmax(logits, -1, output_type=labels.dtype))
                return dict(accuracy=v1.metrics.mean(tf.cast(right, tf.float32)))
        """),
        Right("""
            def likely(scores):
                return tf.math.top_k(scores, k=1).indices[:, 0]


            def metric_fn(labels, logits):
                metrics = {"accuracy": v1.metrics.accuracy(labels=labels, predictions=likely(logits))}
                metrics["top_3"] = v1.metrics.mean(tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32))
                return metrics
        """),
        Right("""
            metric_fn = lambda labels, logits: {"accuracy": v1.metrics.accuracy(labels, tf.argmax(tf.nn.softmax(logits), 1))}
        """),
        Wrong(
            """
            def metric_fn(labels, logits):
                return v1.metrics.accuracy(labels, tf.argmax(logits, 1))
        """,
            "dict",
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                right = tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32)
                return {"accuracy": (tf.reduce_mean(right), tf.no_op())}
        """,
            "batches",
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                metric = tf.keras.metrics.SparseCategoricalAccuracy()
                metric.update_state(labels, logits)
                return {"accuracy": metric}
        """,
            "pair",
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))[0]}
        """,
            "pair",
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                return {"accuracy": v1.metrics.accuracy(labels, tf.argmin(logits, 1))}
        """,
            re.compile("3 of 4|most likely"),
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                return {"accuracy": v1.metrics.accuracy(labels, logits)}
        """,
            re.compile("class|shape"),
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                return {"accuracy": v1.metrics.sparse_categorical_accuracy(labels, logits)}
        """,
            "sparse_categorical_accuracy",
        ),
        Wrong(
            """
            def metric_fn(labels, logits):
                return {"accuracy": v1.metrics.accuracy(tf.argmax(logits, 1), tf.argmax(logits, 1))}
        """,
            "labels",
        ),
    ],
    "2c": [
        Mutant(
            "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)",
            "return tf.estimator.EstimatorSpec("
            "mode, loss=loss, eval_metric_ops=metric_fn(labels, logits))",
            "plain EstimatorSpec",
        ),
        Mutant("loss=loss, eval_metrics=metrics", "loss=loss", "no eval_metrics"),
        Mutant(
            "metrics = (metric_fn, [labels, logits])",
            "metrics = (metric_fn(labels, logits), [labels, logits])",
            re.compile("callable|function itself"),
        ),
        Mutant("(metric_fn, [labels, logits])", "(metric_fn, [logits, labels])", "order"),
        Mutant("(metric_fn, [labels, logits])", "(metric_fn, [labels])", "length of tensors 1"),
        Mutant("(metric_fn, [labels, logits])", "(metric_fn, [labels, loss])", "batch first"),
        Mutant(
            "(metric_fn, [labels, logits])",
            "(lambda a, b: metric_fn(labels, logits), [labels, logits])",
            "closes over",
        ),
        Mutant(
            "(metric_fn, [labels, logits])",
            "(lambda a, b: metric_fn(a, logits), [labels, logits])",
            "closes over",
        ),
        Mutant("(metric_fn, [labels, logits])", "(lambda: metric_fn(labels, logits), [])", "empty"),
        Mutant(
            "(metric_fn, [labels, logits])",
            "(metric_fn, [labels, tf.argmax(logits, axis=1)])",
            re.compile(r"\[16, 10\]; yours is int64 \[16\]"),
        ),
        Right(
            evaluating(
                'return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, {"labels": labels, "logits": logits}))'
            )
        ),
        Right(
            evaluating(
                """
            return evaluated(mode, loss, labels, logits)
        """,
                """def evaluated(mode, loss, *tensors):
    return tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(metric_fn, tensors))


""",
            )
        ),
        Right(
            evaluating("""
            def on_the_host(scores, truth):
                return metric_fn(labels=truth, logits=scores)

            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(on_the_host, [logits, labels]))
        """)
        ),
        Right(
            evaluating("""
            call = lambda labels, logits: metric_fn(labels, logits)
            spec = {"loss": tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))}
            return tpu.TPUEstimatorSpec(mode, eval_metrics=(call, (labels, logits)), **spec)
        """)
        ),
        Right(
            evaluating(
                """
            host = functools.partial(metric_fn)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(host, [labels, logits]))
        """,
                "import functools\n\n\n",
            )
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metric_ops=metric_fn(labels, logits))"
            ),
            "eval_metric_ops",
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, eval_metrics=(metric_fn, [labels, logits]))"
            ),
            "loss",
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=-loss, eval_metrics=(metric_fn, [labels, logits]))"
            ),
            "loss",
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, host_call=(metric_fn, [labels, logits]))"
            ),
            "eval_metrics",
        ),
        Wrong(
            evaluating("""
            def accuracy(predicted):
                return {"accuracy": v1.metrics.accuracy(labels, predicted)}

            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(accuracy, [tf.argmax(logits, 1)]))
        """),
            "closes over",
        ),
        Wrong(
            evaluating("""
            def on_the_host(labels, logits):
                return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1)), "loss": v1.metrics.mean(loss)}

            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(on_the_host, [labels, logits]))
        """),
            "closes over",
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, labels]))"
            ),
            "logits",
        ),
        Wrong(
            evaluating("return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metric_fn)"),
            re.compile("pair|tuple"),
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, labels, logits))"
            ),
            re.compile("pair|tuple|two"),
        ),
        Wrong(
            evaluating(
                'return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, {"truth": labels, "scores": logits}))'
            ),
            re.compile("argument|names"),
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, tf.reduce_mean(logits, 0)]))"
            ),
            "[16, 10]",
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(TRAIN, loss=loss, train_op=tf.no_op(), eval_metrics=(metric_fn, [labels, logits]))"
            ),
            re.compile("mode|EVAL"),
        ),
    ],
    "2d": [
        Mutant(", drop_remainder=True", "", "drop_remainder"),
        Mutant('params["batch_size"]', "128", "batch_size"),
        Mutant("drop_remainder=True", 'drop_remainder=split == "train"', "evaluation"),
        Mutant(
            'params["batch_size"], drop_remainder=True)',
            'params["batch_size"], drop_remainder=True).repeat()',
            "never ends",
        ),
        Mutant("def input_fn(params):", "def input_fn():\n        params = settings", "params"),
        Right(fed('return dataset.batch(params["batch_size"], True)')),
        Right(
            fed("""
            size = params.get("batch_size")
            full = functools.partial(dataset.batch, drop_remainder=True)
            return full(batch_size=size, num_parallel_calls=2).prefetch(tf.data.AUTOTUNE)
        """).replace("def make", "import functools\n\n\ndef make", 1)
        ),
        Right("""
            class Input:
                def __init__(self, split):
                    self.split = split

                def __call__(self, params):
                    arrays = (pixels[self.split] / 16).astype(np.float32), classes[self.split]
                    data = tf.data.Dataset.from_tensor_slices(arrays)
                    if self.split == "train":
                        data = data.shuffle(2048).repeat()
                    return data.batch(params["batch_size"], drop_remainder=True)


            make_input_fn = Input
        """),
        Wrong(
            fed('return dataset.batch(params["batch_size"] // 8, drop_remainder=True)'),
            "batch_size",
        ),
        Wrong(
            fed('return dataset.batch(params["train_batch_size"], drop_remainder=True)'),
            'params["batch_size"]',
        ),
        Wrong(
            fed('return dataset.batch(settings["eval_batch_size"], drop_remainder=True)'),
            "batch_size",
        ),
        Wrong(fed('return dataset.batch(params["batch_size"]).repeat()'), "drop_remainder"),
        Wrong(
            fed('return dataset.batch(params["batch_size"], drop_remainder=True).repeat()'),
            "never ends",
        ),
        Wrong(
            fed(
                'batches = dataset.batch(params["batch_size"], drop_remainder=True)\nreturn v1.data.make_one_shot_iterator(batches).get_next()'
            ),
            "dataset",
        ),
        Wrong(
            fed('return dataset.batch(params["batch_size"], drop_remainder=True).batch(1)'), "24"
        ),
        Wrong(
            """
            def make_input_fn(split):
                def input_fn(params):
                    dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
                    dataset = dataset.map(lambda image, label: (scaled(image), label))
                    return dataset.batch(params["batch_size"], drop_remainder=True)

                return input_fn
        """,
            "training",
        ),
        Wrong(
            fed(
                'return (dataset if split == "train" else dataset.take(24)).batch(params["batch_size"], drop_remainder=True)'
            ),
            "evaluation",
        ),
        Wrong(
            """
            def make_input_fn(split):
                dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
                dataset = dataset.map(lambda image, label: (scaled(image), label))

                def input_fn(params):
                    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)

                return input_fn
        """,
            "inside input_fn",
        ),
        Right("""
            ARRAYS = {split: (np.float32(pixels[split] / 16), classes[split]) for split in ("train", "eval")}


            def make_input_fn(split):
                def input_fn(params):
                    data = tf.data.Dataset.from_tensor_slices(ARRAYS[split])
                    if split == "train":
                        data = data.repeat().shuffle(2048)
                    return data.batch(params["batch_size"], drop_remainder=True)

                return input_fn
        """),
        Wrong(
            """
            def make_input_fn(split):
                def input_fn(params):
                    data = tf.data.Dataset.from_tensor_slices((pixels["train"], classes["train"]))
                    data = data.map(lambda image, label: (scaled(image), label))
                    if split == "train":
                        data = data.shuffle(2048).repeat()
                    return data.batch(params["batch_size"], drop_remainder=True)

                return input_fn
        """,
            "evaluation of 60",
        ),
    ],
    "2e": [
        Mutant("tpu_config=tpu.TPUConfig(iterations_per_loop=loop),", "", "iterations_per_loop"),
        Mutant(
            'cluster=cluster,\n        model_dir=settings["model_dir"],\n'
            "        save_checkpoints_steps=10 * loop,\n        tpu_config=tpu",
            'cluster, settings["model_dir"], 10 * loop, tpu',
            "by name",
        ),
        Mutant("return tpu.RunConfig(", "return tf.estimator.RunConfig(", "RunConfig"),
        Mutant('if settings["use_tpu"]:', "if True:", "use_tpu is false"),
        Mutant('if settings["use_tpu"]:', "if False:", "resolver"),
        Mutant(
            'TPUClusterResolver(settings["tpu"])', 'TPUClusterResolver("grpc://x:1")', "settings"
        ),
        Mutant("save_checkpoints_steps=10 * loop", "save_checkpoints_steps=100", "300"),
        Mutant('model_dir=settings["model_dir"],', "", "model_dir"),
        Right("""
            def make_config(settings):
                steps = settings["iterations_per_loop"]
                where = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=settings["tpu"]) if settings["use_tpu"] else None
                loop = tpu.TPUConfig(steps)
                return tpu.RunConfig(tpu_config=loop, cluster=where, model_dir=settings["model_dir"], save_checkpoints_steps=steps * 10)
        """),
        Right("""
            def make_config(settings):
                options = dict(
                    model_dir=settings["model_dir"],
                    save_checkpoints_steps=10 * settings["iterations_per_loop"],
                    tpu_config=v1.estimator.tpu.TPUConfig(iterations_per_loop=settings["iterations_per_loop"], num_shards=None),
                    keep_checkpoint_max=3,
                    log_step_count_steps=None,
                )
                if settings.get("use_tpu"):
                    options["cluster"] = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])
                return tpu.RunConfig(**options)
        """),
        Right("""
            def resolver_of(settings):
                if not settings["use_tpu"]:
                    return None
                return tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])


            make_config = lambda settings: tpu.RunConfig(
                cluster=resolver_of(settings),
                tpu_config=tpu.TPUConfig(iterations_per_loop=settings["iterations_per_loop"]),
                model_dir=settings["model_dir"],
                save_checkpoints_steps=settings["iterations_per_loop"] * 10,
            )
        """),
        Wrong(
            """
            def make_config(settings):
                cluster = settings["tpu"] if settings["use_tpu"] else None
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(cluster=cluster, model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop,
                                     tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
        """,
            "resolver",
        ),
        Wrong(
            """
            def make_config(settings):
                cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(cluster=cluster, model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop,
                                     tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
        """,
            "use_tpu is false",
        ),
        Wrong(
            """
            def make_config(settings):
                loop = settings["iterations_per_loop"]
                if not settings["use_tpu"]:
                    return tpu.RunConfig(model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop,
                                         tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
                return tpu.RunConfig(cluster=tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"]),
                                     model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop)
        """,
            "iterations_per_loop",
        ),
        Wrong(
            """
            def make_config(settings):
                cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"]) if settings["use_tpu"] else None
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(cluster=cluster, model_dir=settings["model_dir"], save_checkpoints_steps=loop,
                                     tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
        """,
            "300",
        ),
        Wrong(
            """
            def make_config(settings):
                cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"]) if settings["use_tpu"] else None
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(cluster=cluster, model_dir=settings["model_dir"],
                                     tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
        """,
            "300",
        ),
        Wrong(
            """
            def make_config(settings):
                master = settings["tpu"] if settings["use_tpu"] else ""
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(master=master, model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop,
                                     tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
        """,
            "resolver",
        ),
        Wrong(
            """
            def make_config(settings):
                cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"]) if settings["use_tpu"] else None
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(cluster=cluster, model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop,
                                     tpu_config={"iterations_per_loop": loop})
        """,
            "TPUConfig",
        ),
        Wrong(
            """
            def make_config(settings):
                cluster = tf.distribute.cluster_resolver.TPUClusterResolver() if settings["use_tpu"] else None
                loop = settings["iterations_per_loop"]
                return tpu.RunConfig(cluster=cluster, model_dir=settings["model_dir"], save_checkpoints_steps=10 * loop,
                                     tpu_config=tpu.TPUConfig(iterations_per_loop=loop))
        """,
            'settings["tpu"]',
        ),
        # A number of cores, as in old code
        Wrong(
            """
def make_config(settings):
    loop = settings["iterations_per_loop"]
    use_tpu, resolver = settings["use_tpu"], tf.distribute.cluster_resolver.TPUClusterResolver
    return tpu.RunConfig(
        cluster=resolver(settings["tpu"]) if use_tpu else None,
        model_dir=settings["model_dir"],
        save_checkpoints_steps=10 * loop,
        tpu_config=tpu.TPUConfig(iterations_per_loop=loop, num_shards=4),
    )
""",
            "num_shards=4 stops the job",
        ),
    ],
    "2f": [
        Mutant(
            'params={"learning_rate": settings["learning_rate"]}',
            'params={"learning_rate": settings["learning_rate"], "batch_size": 64}',
            "reserved",
        ),
        Mutant('params={"learning_rate": settings["learning_rate"]}', "params={}", "learning_rate"),
        Mutant(
            'eval_batch_size=settings["eval_batch_size"],\n        predict',
            "predict",
            "eval_batch_size",
        ),
        Mutant('predict_batch_size=settings["eval_batch_size"],', "", "predict_batch_size"),
        Mutant(
            'train_batch_size=settings["train_batch_size"]',
            "train_batch_size=8",
            "train_batch_size",
        ),
        Mutant('use_tpu=settings["use_tpu"]', "use_tpu=False", "use_tpu"),
        Mutant('use_tpu=settings["use_tpu"],', "", "defaults to True"),
        Mutant("config=config,", "config=config, eval_on_tpu=False,", "eval_on_tpu"),
        Right("""
            def make_estimator(model, config, settings):
                sizes = {f"{run}_batch_size": settings[f"{run}_batch_size"] for run in ("train", "eval")}
                sizes["predict_batch_size"] = sizes["eval_batch_size"]
                return tpu.TPUEstimator(model_fn=model, config=config, use_tpu=settings["use_tpu"],
                                        params=dict(learning_rate=settings["learning_rate"]), **sizes)
        """),
        Right("""
            def make_estimator(model, config, settings):
                kept = {name: value for name, value in settings.items() if name not in ("use_tpu", "batch_size", "context")}
                return tpu.TPUEstimator(
                    model, None, config, kept, settings["use_tpu"],
                    settings["train_batch_size"], settings["eval_batch_size"], settings["eval_batch_size"],
                )
        """),
        Right("""
            class Digits(tpu.TPUEstimator):
                pass


            make_estimator = lambda model, config, settings: Digits(
                model,
                config=config,
                use_tpu=bool(settings["use_tpu"]),
                train_batch_size=settings["train_batch_size"],
                eval_batch_size=settings["eval_batch_size"],
                predict_batch_size=settings["eval_batch_size"],
                params={"learning_rate": settings["learning_rate"]},
                export_to_tpu=False,
            )
        """),
        Right(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=config, use_tpu=settings["use_tpu"], params=settings,
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model_fn, config=config, use_tpu=settings["use_tpu"],
                                        params={"learning_rate": settings["learning_rate"]},
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
            "model",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=tpu.RunConfig(), use_tpu=settings["use_tpu"],
                                        params={"learning_rate": settings["learning_rate"]},
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
            "config",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=config, params={"learning_rate": settings["learning_rate"]},
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
            "use_tpu",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=config, use_tpu=False, params={"learning_rate": settings["learning_rate"]},
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
            "use_tpu",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=config, use_tpu=settings["use_tpu"],
                                        params={"learning_rate": settings["learning_rate"]},
                                        train_batch_size=settings["train_batch_size"] // 8, eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
            "train_batch_size",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=config, use_tpu=settings["use_tpu"],
                                        params={"learning_rate": settings["learning_rate"]},
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"])
        """,
            "predict_batch_size",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tf.estimator.Estimator(model, config=config, params={"learning_rate": settings["learning_rate"]})
        """,
            "TPUEstimator",
        ),
        Wrong(
            """
            def make_estimator(model, config, settings):
                return tpu.TPUEstimator(model, config=config, use_tpu=settings["use_tpu"],
                                        train_batch_size=settings["train_batch_size"], eval_batch_size=settings["eval_batch_size"],
                                        predict_batch_size=settings["eval_batch_size"])
        """,
            "learning_rate",
        ),
    ],
}
