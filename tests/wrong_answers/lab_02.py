"""Answers to lab 02: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong, edited


def evaluating(body: str, before: str = "") -> str:
    """A cell with a model_fn whose EVAL branch has that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"""{before}def model_fn(features, labels, mode, params):
    logits = inference(features)
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == EVAL:
{inner}

    train_op = make_optimizer(params).minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def making(body: str) -> str:
    """A cell with a make_port of that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    return f'def make_port(model, settings, use_tpu=False, name="local"):\n{inner}\n'


def writing(program: str) -> str:
    """A cell that writes port.py."""
    return f"%%writefile port.py\n{textwrap.dedent(program).strip()}\n"


def with_letter(port: str, letter: str) -> str:
    """A cell: the solution's letters with another one for a port."""
    return f"outcomes = {{**outcomes, {port!r}: {letter!r}}}"


FUNCTION = """def metric_fn(labels, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return {
        "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1)),
        "nats": v1.metrics.mean(losses),
    }


"""
SICK = "momentum.apply_gradients("
FIXED = "optimizer.apply_gradients("
SAVE = 'settings["may_lose"] // settings["loop"] * settings["loop"]'
TRAIN = 'cores * settings["examples_per_core"]'

ANSWERS = {
    "2a": [
        Mutant('if params["use_tpu"]:', "if False:", "CrossShardOptimizer"),
        Mutant('if params["use_tpu"]:', "if True:", "one copy"),
        # No optimizer of several cores, so nothing is said of them
        Wrong(
            "make_optimizer = lambda params: v1.train.GradientDescentOptimizer(params['learning_rate'])",
            re.compile("^With use_tpu false the optimizer: expected 'AdamOptimizer'"),
        ),
        # A subclass
        Right("""
            class Summed(v1.tpu.CrossShardOptimizer):
                pass


            def make_optimizer(params):
                adam = v1.train.AdamOptimizer(params["learning_rate"])
                kind = v1.losses.Reduction.SUM if params.get("loss") == "sum" else v1.losses.Reduction.MEAN
                return Summed(adam, reduction=kind) if params["use_tpu"] else adam
        """),
        Mutant('if params["use_tpu"]:', 'if not params["use_tpu"]:', "one copy"),
        Mutant("    return optimizer\n", "", "return missing"),
        # The notebook's tpu is v1.estimator.tpu
        Mutant("v1.tpu.Cross", "tpu.Cross", "write v1.tpu.CrossShardOptimizer"),
        Mutant(
            'AdamOptimizer(params["learning_rate"])',
            'AdamOptimizer(params["learning_rate"], beta1=0.5)',
            "beta1 and beta2 are Adam's defaults",
        ),
        Mutant(
            'AdamOptimizer(params["learning_rate"])',
            'AdamOptimizer(params["learning_rate"], beta2=0.99)',
            "beta1 and beta2 are Adam's defaults",
        ),
        Mutant('AdamOptimizer(params["learning_rate"])', "AdamOptimizer()", "learning_rate"),
        Mutant("v1.train.AdamOptimizer(", "v1.train.GradientDescentOptimizer(", "Adam"),
        Mutant("v1.train.AdamOptimizer(", "tf.keras.optimizers.Adam(", "Keras optimizer cannot"),
        Right("""
            def wrapped(optimizer, summed):
                kinds = v1.losses.Reduction
                return v1.tpu.CrossShardOptimizer(opt=optimizer, reduction=kinds.SUM if summed else kinds.MEAN)


            def make_optimizer(params):
                make = v1.train.AdamOptimizer
                if not params["use_tpu"]:
                    return make(params["learning_rate"])
                return wrapped(make(params["learning_rate"]), params.get("loss", "mean") == "sum")
        """),
        Right("""
            KINDS = {"mean": v1.losses.Reduction.MEAN, "sum": v1.losses.Reduction.SUM}
            make_optimizer = lambda params: (
                (lambda same: v1.tpu.CrossShardOptimizer(same, KINDS[params.get("loss", "mean")]))
                if params["use_tpu"]
                else lambda same: same
            )(tf.compat.v1.train.AdamOptimizer(params["learning_rate"], beta1=0.9, beta2=0.999))
        """),
        # The gradient of a sum is right, and so is that of a mean
        Right("""
            class Undivided(v1.tpu.CrossShardOptimizer):
                def compute_gradients(self, loss, *args, **kwargs):
                    return self._opt.compute_gradients(loss, *args, **kwargs)


            def make_optimizer(params):
                adam = v1.train.AdamOptimizer(params["learning_rate"])
                if not params["use_tpu"]:
                    return adam
                return (Undivided if params.get("loss") == "sum" else v1.tpu.CrossShardOptimizer)(adam)
        """),
        # As the picture has it, for a mean only
        Wrong(
            """
            def make_optimizer(params):
                adam = v1.train.AdamOptimizer(learning_rate=params["learning_rate"])
                return v1.tpu.CrossShardOptimizer(adam) if params["use_tpu"] else adam
        """,
            "one of eight cores contributes 0.375 of its gradient of 3. The sum over the whole batch",
        ),
        Wrong(
            """
            def make_optimizer(params):
                adam = v1.train.AdamOptimizer(params["learning_rate"])
                summed = params["loss"] == "sum"
                over_cores = v1.losses.Reduction.SUM if summed else v1.losses.Reduction.MEAN
                return v1.tpu.CrossShardOptimizer(adam, over_cores) if params["use_tpu"] else adam
        """,
            'params need not hold "loss"',
        ),
        # As reductions of losses in Keras and in v1.losses
        Wrong(
            """
            def make_optimizer(params):
                adam = v1.train.AdamOptimizer(params["learning_rate"])
                if not params["use_tpu"]:
                    return adam
                return v1.tpu.CrossShardOptimizer(adam, params.get("loss", "mean"))
        """,
            "Argument `reduction` should be one of",
        ),
        # Never divided, and interchanged
        Mutant(
            "optimizer, over_cores)",
            "optimizer, v1.losses.Reduction.SUM)",
            "Adam then gets the sum of eight means",
        ),
        Mutant(
            'params.get("loss") == "sum"',
            'params.get("loss") == "mean"',
            "Where the loss is a mean, one of eight",
        ),
        Mutant(
            'params.get("loss") == "sum"',
            'params.get("loss") != "mean"',
            'a mean, since params hold no "loss"',
        ),
        # A larger rate in the place of a larger gradient: Adam does not even see the difference
        Wrong(
            """
            def make_optimizer(params):
                rate = params["learning_rate"] * (8 if params.get("loss") == "sum" else 1)
                adam = v1.train.AdamOptimizer(rate)
                return v1.tpu.CrossShardOptimizer(adam) if params["use_tpu"] else adam
        """,
            "Where the loss is a sum, one of eight cores contributes 0.375",
        ),
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
            "KeyError: 'use_tpu'",
        ),
        Wrong(
            """
            def make_optimizer(params):
                if params["use_tpu"]:
                    kind = v1.losses.Reduction.SUM if params.get("loss") == "sum" else v1.losses.Reduction.MEAN
                    return v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(params["learning_rate"]), kind)
                return v1.train.AdamOptimizer(params["learning_rate"])
        """,
            "Adam",
        ),
        Wrong(
            """
            def make_optimizer(params):
                if params["use_tpu"]:
                    kind = v1.losses.Reduction.SUM if params.get("loss") == "sum" else v1.losses.Reduction.MEAN
                    return v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(8 * params["learning_rate"]), kind)
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
            "divided by the number of cores more than once",
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
            "optimizer from v1.train",
        ),
        Wrong(
            """
            def make_optimizer(params):
                optimizer = v1.train.AdamOptimizer(0.003)
                kind = v1.losses.Reduction.SUM if params.get("loss") == "sum" else v1.losses.Reduction.MEAN
                return v1.tpu.CrossShardOptimizer(optimizer, kind) if params["use_tpu"] else optimizer
        """,
            "learning_rate",
        ),
    ],
    "2b": [
        Mutant(
            "[labels, classes, losses])", "[labels, classes, loss])", "is a scalar. Each tensor"
        ),
        Mutant("v1.metrics.mean(losses)", "v1.metrics.mean(loss)", "closes over"),
        Mutant("[labels, classes, losses])", "[losses, labels, classes])", "one without a mistake"),
        Mutant(
            "(metric_fn, [labels", "(metric_fn(labels, classes, losses), [labels", "not its result"
        ),
        Mutant("loss=loss, eval_metrics=metrics", "loss=loss", "needs eval_metrics"),
        Mutant("loss=loss, eval_metrics", "loss=2.0 * loss, eval_metrics", "mean cross-entropy"),
        Mutant('"nats": v1', '"loss": v1', '"nats"'),
        Mutant("v1.metrics.mean(losses)", "tf.reduce_mean(losses)", "A metric is a pair"),
        Mutant(
            "v1.metrics.mean(losses)", "(tf.reduce_mean(losses), tf.no_op())", "over all batches"
        ),
        Mutant("tf.argmax(logits, axis=1)", "tf.argmin(logits, axis=1)", "one without a mistake"),
        # The host joins eight means, each of as many examples: their mean is that of all
        Right(
            evaluating("""
            def metric_fn(labels, classes, losses):
                accuracy = v1.metrics.accuracy(labels, classes)
                return {"accuracy": accuracy, "nats": v1.metrics.mean(losses)}

            sent = [labels, tf.argmax(logits, axis=1), tf.tile(loss[None], [params["batch_size"]])]
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, sent))
            """)
        ),
        Right(
            evaluating("""
            def metric_fn(labels, classes, loss):
                accuracy = v1.metrics.accuracy(labels, classes)
                return {"accuracy": accuracy, "nats": v1.metrics.mean(loss)}

            sent = [labels, tf.argmax(logits, 1, tf.int32), loss[None]]
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, sent))
            """)
        ),
        # As in lab 01, the host takes the class: ten logits for each example go there
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))",
                FUNCTION,
            ),
            "You send 11 numbers for each example",
        ),
        Wrong(
            evaluating(
                """
            sent = {"labels": labels, "logits": logits}
            return tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(metric_fn, sent))
        """,
                FUNCTION,
            ),
            "You send 11 numbers for each example",
        ),
        Wrong(
            evaluating("""
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

            def metric_fn(labels, logits, losses):
                accuracy = v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))
                return {"accuracy": accuracy, "nats": v1.metrics.mean(losses)}

            sent = [labels, logits, losses]
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, sent))
            """),
            "You send 12 numbers for each example",
        ),
        # Two columns of classes
        Right(
            evaluating("""
            def metric_fn(classes, losses):
                right = v1.metrics.accuracy(classes[:, 0], classes[:, 1])
                return dict(accuracy=right, nats=v1.metrics.mean(losses))

            losses = -tf.reduce_sum(tf.one_hot(labels, 10) * tf.nn.log_softmax(logits), axis=-1)
            classes = tf.stack([labels, tf.argmax(logits, -1, output_type=tf.int32)], axis=1)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [classes, losses]))
            """)
        ),
        Right(
            evaluating("""
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            right = tf.cast(tf.equal(labels, tf.argmax(logits, 1, tf.int32)), tf.float32)
            host = lambda a, b: {"accuracy": v1.metrics.mean(a), "nats": v1.metrics.mean(b)}
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(host, (right, losses)))
        """)
        ),
        Wrong(
            evaluating(
                """
            metrics = metric_fn(labels, logits)
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        """,
                FUNCTION,
            ),
            "plain EstimatorSpec",
        ),
        Wrong(
            evaluating(
                """
            metrics = metric_fn(labels, logits)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        """,
                FUNCTION,
            ),
            "It has no eval_metric_ops",
        ),
        Wrong(
            evaluating(
                """
            sent = {"truth": labels, "answers": tf.argmax(logits, axis=1)}
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, sent))
        """,
                FUNCTION,
            ),
            re.compile("keys of the dict|keyword"),
        ),
        Wrong(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metric_fn)", FUNCTION
            ),
            "a pair: the function, not called",
        ),
        # A dict, as in eval_metric_ops
        Wrong(
            evaluating(
                """
            metrics = metric_fn(labels, logits)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        """,
                FUNCTION,
            ),
            "a pair: the function, not called",
        ),
        # The loss of the model's graph
        Mutant(
            "v1.metrics.mean(losses)",
            "v1.metrics.mean(v1.losses.get_total_loss())",
            "send the loss of each example",
        ),
        # The class of each row is not taken
        Mutant("tf.argmax(logits, axis=1)", "logits", "You send 12 numbers for each example"),
        Mutant("tf.argmax(logits, axis=1)", "tf.argmax(logits)", "compares classes with classes"),
    ],
    "2c": [
        Right(
            making("""
            config = {"tpu_config": tpu.TPUConfig(settings["loop"])}
            if use_tpu:
                config["cluster"] = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
            loops, _ = divmod(settings["may_lose"], settings["loop"])
            config |= {"save_checkpoints_steps": loops * settings["loop"]}
            config = tpu.RunConfig(model_dir=tempfile.mkdtemp(), **config)
            of_core = next(n for n in range(settings["most_per_core"], 0, -1) if settings["held_out"] % (n * settings["cores"]) == 0)
            sizes = {f"{mode}_batch_size": of_core * settings["cores"] for mode in ("eval", "predict")}
            sizes["train_batch_size"] = settings["examples_per_core"] * settings["cores"]
            return tpu.TPUEstimator(
                params=dict(learning_rate=settings["learning_rate"]), model_fn=model, config=config, use_tpu=use_tpu, **sizes
            )
            """)
        ),
        # Helper functions, a folder by the Estimator, version 1's names
        Right("""
            import math


            def resolver_of(name):
                return v1.distribute.cluster_resolver.TPUClusterResolver(name)


            def interval(loop, most):
                return loop * math.floor(most / loop)


            def whole(settings):
                steps = 1
                while settings["held_out"] % (steps * settings["cores"]) or settings["held_out"] > steps * settings["cores"] * settings["most_per_core"]:
                    steps += 1
                return settings["held_out"] // steps


            def config_of(settings, cluster):
                loop = settings["loop"]
                steps = interval(loop, settings["may_lose"])
                tpu_config = v1.estimator.tpu.TPUConfig(iterations_per_loop=loop, num_shards=settings["cores"])
                return v1.estimator.tpu.RunConfig(tpu_config, cluster=cluster, save_checkpoints_steps=steps)


            make_port = lambda model, settings, use_tpu=False, name="local": v1.estimator.tpu.TPUEstimator(
                model,
                tempfile.mkdtemp(),
                config_of(settings, resolver_of(name) if use_tpu else None),
                {"learning_rate": settings["learning_rate"], "comment": "of our own"},
                use_tpu,
                settings["cores"] * settings["examples_per_core"],
                whole(settings),
                whole(settings),
            )
        """),
        # A model_fn around the model; the Estimator's own temporary folder; sums by a loop
        Right(
            making("""
            def model_fn(features, labels, mode, params):
                return model(features, labels, mode, params)

            steps = 0
            while steps + settings["loop"] <= settings["may_lose"]:
                steps += settings["loop"]
            batch = settings["cores"] * settings["most_per_core"]
            while settings["held_out"] % batch:
                batch -= settings["cores"]
            cluster = None
            if use_tpu is True:
                cluster = tf.distribute.cluster_resolver.TPUClusterResolver(name)
            return tpu.TPUEstimator(
                model_fn,
                config=tpu.RunConfig(
                    save_checkpoints_steps=steps, cluster=cluster, log_step_count_steps=settings["loop"],
                    tpu_config=tpu.TPUConfig(iterations_per_loop=settings["loop"]),
                ),
                use_tpu=bool(use_tpu),
                train_batch_size=sum([settings["examples_per_core"]] * settings["cores"]),
                eval_batch_size=batch,
                predict_batch_size=batch,
                params={"learning_rate": settings["learning_rate"]},
            )
            """)
        ),
        Mutant("tpu.RunConfig(", "tf.estimator.RunConfig(", re.compile("cluster|tpu_config")),
        Wrong(
            making("""
            config = tf.estimator.RunConfig(tempfile.mkdtemp(), save_checkpoints_steps=100)
            return tpu.TPUEstimator(model, config=config, use_tpu=use_tpu, train_batch_size=1024)
            """),
            "make a tpu.RunConfig",
        ),
        Wrong(
            making("""
            config = tf.estimator.RunConfig(tempfile.mkdtemp(), save_checkpoints_steps=100)
            return tf.estimator.Estimator(model, config=config, params={"learning_rate": 0.003})
            """),
            "make a tpu.TPUEstimator",
        ),
        Mutant("cluster=resolver(name) if use_tpu else None", "cluster=None", "has no cluster"),
        Mutant(
            "cluster=resolver(name) if use_tpu else None",
            "cluster=resolver(name)",
            "no TPU to find",
        ),
        Mutant("resolver(name) if", 'resolver("local") if', "another TPU than `name`"),
        Mutant(
            "cluster=resolver(name) if use_tpu else None",
            "master=name if use_tpu else None",
            "master= expects",
        ),
        Mutant(
            "resolver(name) if use_tpu else None",
            "resolver(name) if not use_tpu else None",
            "has no cluster",
        ),
        Mutant(
            "use_tpu=use_tpu,",
            "use_tpu=True,",
            "With use_tpu=False, TPUEstimator gets use_tpu=True",
        ),
        Mutant(
            "        use_tpu=use_tpu,\n", "", "With use_tpu=False, TPUEstimator gets use_tpu=True"
        ),
        Mutant(
            "use_tpu=use_tpu,",
            "use_tpu=False,",
            "With use_tpu=True, TPUEstimator gets use_tpu=False",
        ),
        Mutant(
            '        tpu_config=tpu.TPUConfig(iterations_per_loop=settings["loop"]),\n',
            "",
            "TPUConfig's default",
        ),
        Mutant(
            'iterations_per_loop=settings["loop"]', "iterations_per_loop=100", "settings want 70"
        ),
        Mutant('iterations_per_loop=settings["loop"]', "num_shards=8", "The loop has 2 steps"),
        Mutant(
            'iterations_per_loop=settings["loop"]',
            'iterations_per_loop=settings["loop"], num_shards=8',
            "there are 16 cores: omit it",
        ),
        Mutant(SAVE, 'settings["may_lose"]', "written at step 45,100"),
        Mutant(f"save_checkpoints_steps={SAVE}", "save_checkpoints_secs=600", "say it in steps"),
        Mutant(f"        save_checkpoints_steps={SAVE},\n", "", "every 600 seconds"),
        Mutant(SAVE, 'settings["loop"]', "more often than a loss of 45,050 steps"),
        Mutant(
            SAVE,
            '-(-settings["may_lose"] // settings["loop"]) * settings["loop"]',
            "may cost more than 45,050",
        ),
        Mutant(SAVE, "45_000", "written at step 45,010"),
        Mutant(
            TRAIN, 'settings["examples_per_core"]', "train_batch_size is 128, the share of one core"
        ),
        Mutant(TRAIN, "1024", "train_batch_size is 1,024, not what settings want"),
        Mutant(f"        train_batch_size={TRAIN},\n", "", "train_batch_size is missing"),
        Mutant("eval_batch_size=whole", 'eval_batch_size=settings["held_out"]', "45 on each"),
        Mutant(
            "eval_batch_size=whole",
            "eval_batch_size=whole // cores",
            "eval_batch_size is 9, for 360 examples on 8 cores: the cores cannot share",
        ),
        Mutant(
            "eval_batch_size=whole", "eval_batch_size=cores", "but a larger batch does that, too"
        ),
        Mutant(  # the largest that the memory allows
            "whole = max(size for size in sizes if held_out % size == 0)",
            "whole = max(sizes)",
            "is 96, for 360 examples on 8 cores: full batches hold 288 of the examples",
        ),
        Mutant(  # the largest divisor of 360
            'range(cores, cores * settings["most_per_core"] + 1, cores)',
            'range(cores, cores * settings["most_per_core"] + 1)',
            "is 90, for 360 examples on 8 cores: the cores cannot share a batch evenly",
        ),
        Mutant(  # sizes below the largest
            'cores * settings["most_per_core"] + 1, cores)',
            'cores * settings["most_per_core"] // 2, cores)',
            "a larger batch does that, too",
        ),
        Mutant("        eval_batch_size=whole,\n", "", "eval_batch_size is missing"),
        Mutant("        predict_batch_size=whole,\n", "", "predict_batch_size is missing"),
        Mutant(
            '        params={"learning_rate": settings["learning_rate"]},\n',
            "",
            'params["learning_rate"]',
        ),
        Mutant(
            'settings["learning_rate"]}', "0.003}", "the learning rate 0.003; settings want 0.5"
        ),
        Mutant(
            '{"learning_rate": settings["learning_rate"]}',
            'settings | {"batch_size": 1024}',
            "hand over the learning rate only",
        ),
        Mutant("        model,\n", "        model_fn,\n", "does not call `model`"),
        Mutant('tempfile.mkdtemp(prefix="digits-")', '"run"', "share a model_dir"),
        Mutant("    return tpu.TPUEstimator(", "    tpu.TPUEstimator(", "return missing"),
        Mutant("resolver(name) if", "resolver.connect(name) if", "contacts the TPU"),
    ],
    "2d": [
        Wrong(with_letter("never wrapped", "B"), "never wrapped: not B. With one copy the sum"),
        Wrong(with_letter("never wrapped", "D"), "each of eight copies"),
        Wrong(with_letter("always wrapped", "A"), "Which machine has it?"),
        Wrong(with_letter("plain spec", "A"), "TPUEstimator accepts an EstimatorSpec on a CPU"),
        Wrong(with_letter("fixed rows", "B"), "How many rows does model_fn get here"),
        Wrong(with_letter("five cores", "D"), "Which batch sizes does make_port work out"),
        Wrong(with_letter("plain RunConfig", "B"), "TPUConfig"),
        Wrong(with_letter("loop of 2", "C"), "The steps stay the same"),
        Wrong(with_letter("loop of 2", "F"), "is not one of A, B, C, D, E"),
        Wrong("outcomes = {'plain spec': 'B'}", "Not decided yet"),
        Right("outcomes = {port: letter.lower() for port, letter in outcomes.items()}"),
    ],
    "2e": [
        Wrong(
            edited("curves", ("2.0 if", "1.0 if")), re.compile("TPU201.*The fault is not at", re.S)
        ),
        Wrong(
            edited("curves", (SICK, FIXED), ("2.0 if", "1.0 if")),
            "moves dense/bias 0.5 times as far",
        ),
        Wrong(
            edited(
                "curves",
                (SICK, FIXED),
                (
                    'tf.train.MomentumOptimizer(params["learning_rate"], 0.9)',
                    "tf.train.AdamOptimizer(0.05)",
                ),
            ),
            "is the optimizer another one",
        ),
        Wrong(
            edited("curves", (SICK, FIXED), (' if params["use_tpu"] else momentum', "")),
            "wrap the optimizer only if params['use_tpu']",
        ),
        Wrong(edited("curves", (SICK, FIXED), (".shuffle(512)", "")), "shuffle"),
        # The halves of minimize: a sum of gradients of the whole loss, 8 times too large on eight cores
        Wrong(
            edited(
                "curves",
                (SICK, FIXED),
                ("in optimizer.compute_gradients(loss)", "in momentum.compute_gradients(loss)"),
            ),
            re.compile("TPU403.*the mean loss over the cores is", re.S),
        ),
        Wrong('curves_reason = "A"', "The reason is not A"),
        Wrong('curves_reason = "Z"', "one of the letters A to E"),
        Right('curves_reason = " b"'),
        Right(
            edited(
                "curves",
                (
                    f"    train_op = {SICK}gradients, tf.train.get_global_step())",
                    "    step = tf.train.get_global_step()\n    train_op = optimizer.apply_gradients(gradients, step)",
                ),
            )
        ),
        # The sum by hand, where the gradients are changed: apply_gradients of the inner optimizer is right then
        Right(
            edited(
                "curves",
                (
                    "        gradients.append(",
                    '        if params["use_tpu"]:\n'
                    "            gradient = tf.tpu.cross_replica_sum(gradient)\n"
                    "        gradients.append(",
                ),
            )
        ),
        # One name for both optimizers
        Right(
            edited(
                "curves",
                (
                    "optimizer = tf.tpu.CrossShardOptimizer(momentum) if",
                    "momentum = optimizer = tf.tpu.CrossShardOptimizer(momentum) if",
                ),
            )
        ),
    ],
    "2f": [
        Mutant('("local") if USE_TPU else None', '("local") if False else None', "has no cluster"),
        Mutant("use_tpu=USE_TPU,", "use_tpu=False,", "hand the flag over to it"),
        Mutant(
            "    tpu_config=tpu.TPUConfig(iterations_per_loop=50),\n", "", "TPUConfig's default"
        ),
        Mutant(", steps=1)", ")", "Pass steps to evaluate"),
        Mutant('"eval_batch_size": 48', '"eval_batch_size": 32', "16 of 48 held-out examples"),
        Mutant(
            "        optimizer = v1.tpu.CrossShardOptimizer(optimizer)\n",
            "        pass\n",
            "TPU201",
        ),
        Mutant('if params["use_tpu"]:', "if True:", "wrap the optimizer only if params['use_tpu']"),
        Mutant(", max_steps=100)", ")", "Pass steps or max_steps to train"),
        Mutant(
            'USE_TPU = "--use_tpu=True" in sys.argv\n',
            "import argparse\n\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--use_tpu", type=bool, default=False)\n'
            "USE_TPU = parser.parse_args().use_tpu\n",
            "With --use_tpu=False, TPUEstimator gets use_tpu=True",
        ),
        Mutant(
            "    train_op = optimizer.minimize(loss, v1.train.get_global_step())\n",
            "    inner = v1.train.AdamOptimizer(0.01)\n"
            "    gradients = inner.compute_gradients(loss)\n"
            "    train_op = optimizer.apply_gradients(gradients, v1.train.get_global_step())\n",
            "TPU403",
        ),
        Mutant(
            'tpu.RunConfig(\n    cluster=resolver("local") if USE_TPU else None,\n',
            "tf.estimator.RunConfig(\n",
            "RunConfig",
        ),
        Wrong(writing("import sys\nprint(sys.argv)"), "without calling train and evaluate"),
        Wrong(writing("import sys\ndef main(:"), "is not Python yet: line 2"),
    ],
}
