"""What learners get wrong in lab 02, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "2a": [
        Mutant('if params["use_tpu"]:', "if False:", "CrossShardOptimizer"),
        Mutant('if params["use_tpu"]:', "if True:", "one copy"),
        Mutant('if params["use_tpu"]:', 'if not params["use_tpu"]:', "CrossShardOptimizer"),
        Mutant("    return optimizer\n", "", "return missing"),
        Mutant('AdamOptimizer(params["learning_rate"])', "AdamOptimizer()", "learning_rate"),
        Mutant("v1.train.AdamOptimizer(", "v1.train.GradientDescentOptimizer(", "Adam"),
        Mutant("v1.train.AdamOptimizer(", "tf.keras.optimizers.Adam(", "Keras optimizer cannot"),
        Mutant(
            "CrossShardOptimizer(optimizer)",
            "CrossShardOptimizer(optimizer, reduction=v1.losses.Reduction.SUM)",
            "Leave reduction alone",
        ),
    ],
    "2b": [
        Mutant('{"accuracy": v1', '{"acc": v1', '"accuracy"'),
        Mutant("axis=1))}", "axis=0))}", re.compile("ValueError|3 of 4")),
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
    ],
}
