"""Answers to lab 04: right ones in other habits, and wrong ones with the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_LINES = "38: 'def metric_fn(labels, logits, weight):', 46: 'mode, loss=loss, eval_metrics=(metric_fn, [{}])'"


def _treated(tensors: str) -> str:
    """A cell: the solution's treatment with other tensors."""
    return f"parts_treatment = {{{_LINES.format(tensors)}}}"


def _loops(digits: str = "250", flowers: str = "25", resnet: str = "10") -> str:
    return f'loops = {{"digits": {digits}, "flowers": {flowers}, "ResNet-50": {resnet}}}'


ANSWERS = {
    "4a": [
        # Parameters of other names
        Right("""
            def metric_fn(y, out, each, w):
                hit = tf.cast(tf.math.in_top_k(y, out, 3), tf.float32)
                return dict(
                    accuracy=v1.metrics.accuracy(y, tf.math.argmax(out, -1), w),
                    top_3=v1.metrics.mean(hit, w),
                    mean_loss=v1.metrics.mean(each, w),
                )
        """),
        # Padding taken out before the metrics
        Right("""
            def metric_fn(labels, logits, losses, weight):
                labels, logits, losses = (tf.boolean_mask(each, weight > 0) for each in (labels, logits, losses))
                best = tf.math.top_k(logits, k=3).indices
                metrics = dict(accuracy=v1.metrics.accuracy(labels=labels, predictions=best[:, 0]))
                metrics["top_3"] = v1.metrics.mean(tf.cast(tf.reduce_any(tf.equal(best, labels[:, None]), 1), tf.float32))
                metrics["mean_loss"] = v1.metrics.mean(losses)
                return metrics
        """),
        # One kind of metric, and one more than asked for
        Right("""
            def metric_fn(labels, logits, losses, weight):
                values = {
                    "accuracy": tf.math.in_top_k(labels, logits, 1),
                    "top_3": tf.math.in_top_k(targets=labels, predictions=logits, k=3),
                    "mean_loss": losses,
                    "examples": weight,
                }
                return {name: v1.metrics.mean(tf.cast(each, tf.float32), weights=weight) for name, each in values.items()}
        """),
        # No weights at all
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1)),
                    "top_3": v1.metrics.mean(top),
                    "mean_loss": v1.metrics.mean(losses),
                }
            """,
            "is the value without weights=",
        ),
        # The mean of batches' means
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                mean_loss = tf.reduce_sum(losses * weight) / tf.reduce_sum(weight)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight),
                    "top_3": v1.metrics.mean(top, weights=weight),
                    "mean_loss": v1.metrics.mean(mean_loss),
                }
            """,
            "mean_loss of two batches",
        ),
        # Weights turned round
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                inverse = 1.0 - weight
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=inverse),
                    "top_3": v1.metrics.mean(top, weights=inverse),
                    "mean_loss": v1.metrics.mean(losses, weights=inverse),
                }
            """,
            "accuracy of two batches",
        ),
        Mutant("mean(in_top_3, weights=weight)", "mean(in_top_3)", "top_3: "),
        Mutant("mean(losses, weights=weight)", "mean(losses)", "value without weights="),
        Mutant("tf.argmax(logits, axis=1), weights", "logits, weights", "most likely class"),
        Mutant(
            "v1.metrics.mean(losses, weights=weight)",
            "tf.reduce_sum(losses * weight) / tf.reduce_sum(weight)",
            "pair",
        ),
        Mutant('        "mean_loss": v1', '        "loss": v1', '"mean_loss"'),
        Mutant("in_top_k(labels, logits, 3)", "in_top_k(labels, logits, 1)", "top_3 of two"),
        Mutant("in_top_k(labels, logits, 3)", "in_top_k(logits, labels, 3)", "in_top_k"),
    ],
    "4b": [
        # The same tensors under names, at other lines
        Right("parts_diagnosis = {38: 'c'}"),
        Right("parts_diagnosis = {46: 'C', 41: 'C'}"),
        Right(
            """
            parts_treatment = {
                38: "def metric_fn(labels, logits, keep):",
                41: '"accuracy": tf.metrics.accuracy(labels, cracked, weights=keep),',
                42: '"recall": tf.metrics.recall(labels, cracked, weights=keep),',
                46: 'mode, loss=loss, eval_metrics=(metric_fn, {"labels": labels, "logits": logits, "keep": weight})',
            }
            """
        ),
        Wrong("parts_diagnosis = {33: 'C'}", "weight is in order here. Which line uses it"),
        # A single line with more indentation than the one that it replaces
        Right("parts_treatment[46] = 8 * ' ' + parts_treatment[46]"),
        Wrong("parts_diagnosis = {39: 'A'}", re.compile("Line 39 is correct. .* all ops")),
        Wrong("parts_diagnosis = {36: 'A'}", "same on every machine"),
        Wrong("parts_diagnosis = {41: 'D'}", "but not for the reason that you give"),
        Wrong("parts_diagnosis = {}", "The fault is not found yet"),
        Wrong("parts_diagnosis = {41: 'Z'}", "is not one of the letters A to"),
        Wrong("parts_treatment = {}", "TPU118"),
        # Another order than the parameters'
        Wrong(_treated("labels, weight, logits"), "the metric accuracy is"),
        # A parameter without its tensor
        Wrong(_treated("labels, logits"), "TPU112"),
        # Padding counts
        Wrong(
            """
            parts_treatment = {
                41: '"accuracy": tf.metrics.accuracy(labels, cracked),',
                42: '"recall": tf.metrics.recall(labels, cracked),',
            }
            """,
            "the metric accuracy is",
        ),
    ],
    "4c": [
        Right(_loops("200", "10", "1")),
        Right(_loops("1000", "50", "25")),
        Right(_loops("500", "25", "20")),
        Wrong(_loops(digits="100"), "digits: with loops of 100 the core is busy 92.6% of the time"),
        Wrong(_loops(digits="300"), "a checkpoint that is due at step 1000 comes at step 1200"),
        Wrong(_loops(flowers="5"), "flowers: with loops of 5 the core is busy 94.9%"),
        Wrong(_loops(flowers="100"), "the hook that is due at step 50 comes at step 100"),
        Wrong(_loops(resnet="100"), "ResNet-50: a loop of 100 steps takes 32 seconds"),
        Wrong(_loops(resnet="0"), "a whole number of steps"),
        Wrong(_loops(resnet="2.5"), "a whole number of steps"),
        Wrong("loops = [250, 25, 10]", "a dict of digits, flowers"),
        Wrong(
            "loops['ResNet50'] = loops.pop('ResNet-50')", "missing: ResNet-50; unknown: ResNet50"
        ),
    ],
}
