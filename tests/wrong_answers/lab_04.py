"""What learners get wrong in lab 04, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "4a": [
        Mutant(
            "tf.argmax(logits, axis=1), weights=weight)", "tf.argmax(logits, axis=1))", "accuracy"
        ),
        Mutant("v1.metrics.mean(in_top_3, weights=weight)", "v1.metrics.mean(in_top_3)", "top_3"),
        Mutant(
            "v1.metrics.mean(losses, weights=weight)",
            "v1.metrics.mean(losses * weight)",
            re.compile("mean_loss.*padding"),
        ),
        Mutant(
            "v1.metrics.mean(losses, weights=weight)",
            "tf.reduce_sum(losses * weight) / tf.reduce_sum(weight)",
            "pair",
        ),
        Mutant('        "mean_loss": v1', '        "loss": v1', '"mean_loss"'),
        Mutant("in_top_k(labels, logits, 3)", "in_top_k(labels, logits, 1)", "top_3"),
    ],
    "4b": [
        Mutant("[labels, logits, losses, weight])", "[labels, logits, loss, weight])", "scalar"),
        Mutant(
            "[labels, logits, losses, weight])",
            "[labels, logits, tf.reshape(loss, [1]), weight])",
            "one for each row",
        ),
        Mutant(
            "[labels, logits, losses, weight])",
            "[labels, logits, tf.fill(tf.shape(weight), loss), weight])",
            "mean of the batch",
        ),
        Mutant("[labels, logits, losses, weight])", "[labels, logits, weight, losses])", "order"),
        Mutant(
            "v1.losses.sparse_softmax_cross_entropy(labels, logits, weight)\n    losses =",
            "v1.losses.sparse_softmax_cross_entropy(labels, logits)\n    losses =",
            "padding",
        ),
        Mutant(
            "metrics = (metric_fn, [labels, logits, losses, weight])",
            "metrics = (lambda labels, logits, losses: metric_fn(labels, logits, losses, weight), "
            "[labels, logits, losses])",
            "captures",
        ),
        Mutant(
            "metrics = (metric_fn, [labels",
            "metrics = (metric_fn(labels, logits, losses, weight), [labels",
            "function itself",
        ),
        Mutant("loss=loss, eval_metrics=metrics", "loss=loss", "no eval_metrics"),
    ],
    "4c": [
        Mutant("tf.reduce_mean(loss), step=now", "loss[0], step=now", "mean over the cores"),
        Mutant(", tf.summary.record_if(tf.equal(now % every, 0))", "", "every"),
        Mutant("tf.equal(now % every, 0)", "now % every == 0", "tf.equal"),
        Mutant("tf.equal(now % every, 0)", "tf.equal(now, every)", "should be"),
        Mutant("        return v1.summary.all_v2_summary_ops()\n", "", "all_v2_summary_ops"),
        Mutant("with writer.as_default(), tf.summary", "with tf.summary", "as_default"),
        Mutant(
            'tf.summary.scalar("learning_rate", rate[0], step=now)',
            'tf.summary.scalar("learning_rate", rate, step=now)',
            "scalar",
        ),
        Mutant('"learning_rate", rate[0]', '"rate", rate[0]', "learning_rate"),
        Mutant("now = step[0]", "now = tf.reduce_sum(step)", "step"),
        Mutant("v1.summary.all_v2_summary_ops()", "v1.summary.merge_all()", "all_v2_summary_ops"),
    ],
    "4d": [
        Mutant(
            "[tf.reshape(each, [1]) for each in (step, loss, rate)]", "[step, loss, rate]", "scalar"
        ),
        Mutant("for each in (step, loss, rate)]", "for each in (loss, step, rate)]", "order"),
        Mutant("(step, loss, rate)]", '(step, loss, params["learning_rate"])]', "rate"),
        Mutant("host_call = (host_fn, [", "host_call = (make_host_fn, [", "make_host_fn"),
        Mutant(
            'params["summary_dir"], params["summary_steps"]',
            'params["summary_dir"], 1',
            "summary_steps",
        ),
        Mutant(
            "host_call = (host_fn, [tf.reshape(each, [1]) for each in (step, loss, rate)])",
            "host_call = None",
            "no host_call",
        ),
    ],
    "4e": [
        Mutant("if step - self.last >= self.steps:", "if step % self.steps == 0:", "divides"),
        Mutant("            self.last = step\n", "", "again and again"),
        Mutant(
            "if step - self.last >= self.steps:", "if step - self.last == self.steps:", "never acts"
        ),
        Mutant("self.last = step\n", "self.last += 1\n", "again and again"),
        Mutant("            self.action(step)\n", "", "never"),
        Mutant("self.action(step)", "self.action(self.steps)", "step as it is"),
    ],
    "4f": [
        Mutant("        return v1.train.Scaffold()\n", "", "None"),
        Mutant(
            'v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})', "", "conv2d/kernel"
        ),
        Mutant('{"conv2d/": "conv2d/"}', '{"/": "/"}', "dense"),
        Mutant("    return scaffold_fn\n", "    return scaffold_fn()\n", "function"),
        Mutant('{"conv2d/": "conv2d/"}', '{"conv2d/": "convolution/"}', "conv2d/kernel"),
    ],
}
