"""Answers to lab 02: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong


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


def with_setting(name: str, value: str) -> str:
    """A cell: the solution's settings with another value."""
    return f"settings = {{**settings, {name!r}: {value}}}"


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
FIX = "train_op = optimizer.apply_gradients(gradients, tf.train.get_global_step())"

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
                return Summed(adam) if params["use_tpu"] else adam
        """),
        Mutant('if params["use_tpu"]:', 'if not params["use_tpu"]:', "one copy"),
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
            "KeyError: 'use_tpu'",
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
            "optimizer from v1.train",
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
        Mutant("[labels, logits, losses])", "[labels, logits, loss])", "is a scalar. Each tensor"),
        Mutant("v1.metrics.mean(losses)", "v1.metrics.mean(loss)", "closes over"),
        Mutant(
            "[labels, logits, losses])", "[logits, labels, losses])", "in the order of the list"
        ),
        Mutant(
            "(metric_fn, [labels", "(metric_fn(labels, logits, losses), [labels", "not its result"
        ),
        Mutant("loss=loss, eval_metrics=metrics", "loss=loss", "needs eval_metrics"),
        Mutant("loss=loss, eval_metrics", "loss=2.0 * loss, eval_metrics", "mean cross-entropy"),
        Mutant('"nats": v1', '"loss": v1', '"nats"'),
        Mutant("v1.metrics.mean(losses)", "tf.reduce_mean(losses)", "A metric is a pair"),
        Mutant(
            "v1.metrics.mean(losses)", "(tf.reduce_mean(losses), tf.no_op())", "over all batches"
        ),
        Mutant("tf.argmax(logits, axis=1)", "tf.argmin(logits, axis=1)", "one without a mistake"),
        Right(
            evaluating(
                "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))",
                FUNCTION,
            )
        ),
        Right(
            evaluating(
                """
            sent = {"labels": labels, "logits": logits}
            return tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(metric_fn, sent))
        """,
                FUNCTION,
            )
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
            sent = {"truth": labels, "scores": logits}
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
        # The class of each row is not taken
        Mutant("tf.argmax(logits, axis=1)", "logits", "compares classes with classes"),
        Mutant("tf.argmax(logits, axis=1)", "tf.argmax(logits)", "compares classes with classes"),
    ],
    "2c": [
        Wrong(with_setting("train_batch_size", "128"), "a core gets 16, not 128"),
        Wrong(with_setting("eval_batch_size", "45"), "evaluates 45 digits"),
        Wrong(with_setting("iterations_per_loop", "40"), "1.235% of the time goes to returns"),
        Wrong(with_setting("iterations_per_loop", "500"), "the log changes only at its end"),
        Wrong(with_setting("save_checkpoints_steps", "1000"), "goes to writing them"),
        Wrong(with_setting("save_checkpoints_steps", "60_000"), "20 minutes"),
        # Due at 24,750, written at the end of the loop, 24,800
        Right(with_setting("save_checkpoints_steps", "24_750")),
        Wrong(
            with_setting("save_checkpoints_steps", "24_700"), "1.002% of the time goes to writing"
        ),
        Wrong(
            "settings['checkpoint_steps'] = settings.pop('save_checkpoints_steps')",
            "missing: save_checkpoints_steps; unknown: checkpoint_steps",
        ),
        Right("settings = {name: np.int32(value) for name, value in settings.items()}"),
        Wrong(with_setting("iterations_per_loop", "49"), "1.010% of the time goes to returns"),
        Wrong(with_setting("save_checkpoints_steps", "30e3"), "whole number"),
        Wrong("settings = [1024, 360, 100, 30_000]", "should be a dict"),
        Right(
            "settings = {**settings, 'iterations_per_loop': 50, 'save_checkpoints_steps': 25_000}"
        ),
        Right("settings = dict(settings, save_checkpoints_steps=45_000)"),
    ],
    "2d": [
        Wrong(with_letter("plain optimizer", "B"), "plain optimizer: not B. With one copy the sum"),
        Wrong(with_letter("plain optimizer", "D"), "each of eight copies"),
        Wrong(with_letter("plain spec", "A"), "TPUEstimator accepts an EstimatorSpec on a CPU"),
        Wrong(with_letter("plain RunConfig", "B"), "TPUConfig"),
        Wrong(with_letter("plain Estimator", "B"), "Which class of spec"),
        Wrong(with_letter("batch of 1,020", "A"), "127.5"),
        Wrong(with_letter("loop of 2", "C"), "The steps stay the same"),
        Wrong(with_letter("loop of 2", "E"), "is not one of A, B, C, D"),
        Wrong("outcomes = {'plain spec': 'B'}", "Not decided yet"),
        Right("outcomes = {port: letter.lower() for port, letter in outcomes.items()}"),
    ],
    "2e": [
        Wrong("curves_diagnosis = {41: 'B'}", "Line 41 is correct. The wrapper is there"),
        Wrong("curves_diagnosis = {43: 'B'}", "divides the loss by the number of cores"),
        Wrong("curves_diagnosis = {46: 'C'}", "not for the reason that you give"),
        Wrong("curves_diagnosis = {}", "The fault is not found yet"),
        Wrong("curves_treatment = {}", "TPU201"),
        Wrong(
            f"curves_treatment = {{40: 'momentum = tf.train.AdamOptimizer(0.05)', 46: {FIX!r}}}",
            "not what the same weights should give",
        ),
        Wrong(
            f"curves_treatment = {{44: 'faster = 1.0', 46: {FIX!r}}}",
            "not what the same weights should give",
        ),
        Right(
            "curves_treatment = {46: 'step = tf.train.get_global_step()\\ntrain_op = optimizer.apply_gradients(gradients, step)'}"
        ),
    ],
}
