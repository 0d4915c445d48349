"""Answers to lab 04: right ones in other habits, and wrong ones with the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong


def _loops(digits: str = "None", flowers: str = "25", resnet: str = "10") -> str:
    return f'loops = {{"digits": {digits}, "flowers": {flowers}, "ResNet-50": {resnet}}}'


ANSWERS = {
    "4a": [
        # Parameters of other names
        Right("""
            def metric_fn(y, out, each, w):
                most = v1.get_local_variable("most", shape=[], initializer=v1.zeros_initializer())
                each = tf.math.multiply_no_nan(each, w)
                return dict(
                    accuracy=v1.metrics.accuracy(y, tf.math.argmax(out, -1), w),
                    mean_loss=v1.metrics.mean(each, w),
                    worst_loss=(most, v1.assign(most, tf.maximum(most, tf.reduce_max(each)))),
                )
        """),
        # Padding taken out before the metrics
        Right("""
            def metric_fn(labels, logits, losses, weight):
                labels, logits, losses = (tf.boolean_mask(each, weight > 0) for each in (labels, logits, losses))
                metrics = dict(accuracy=v1.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, 1)))
                metrics["mean_loss"] = v1.metrics.mean(losses)
                worst = v1.get_local_variable("worst", initializer=-1.0)
                largest = tf.reduce_max(tf.concat([losses, worst[None]], 0))
                metrics["worst_loss"] = (worst.read_value(), worst.assign(largest))
                return metrics
        """),
        # All losses kept, and one more metric than asked for
        Right("""
            def metric_fn(labels, logits, losses, weight):
                losses = tf.where(tf.equal(weight, 0.0), tf.zeros_like(losses), losses)
                means = {"accuracy": tf.math.in_top_k(labels, logits, 1), "mean_loss": losses, "examples": weight}
                metrics = {n: v1.metrics.mean(tf.cast(each, tf.float32), weights=weight) for n, each in means.items()}
                worst = v1.get_local_variable("largest", initializer=0.0)
                return {**metrics, "worst_loss": (worst, tf.cond(tf.reduce_max(losses) > worst,
                    lambda: v1.assign(worst, tf.reduce_max(losses)), lambda: tf.identity(worst)))}
        """),
        # No weights at all
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                worst = v1.get_local_variable("worst", initializer=0.0)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1)),
                    "mean_loss": v1.metrics.mean(losses),
                    "worst_loss": (worst, worst.assign(tf.maximum(worst, tf.reduce_max(losses)))),
                }
            """,
            "is the value without weights",
        ),
        # The mean of batches' means
        Wrong(
            """
            _right = metric_fn

            def metric_fn(labels, logits, losses, weight):
                mean_loss = tf.reduce_sum(losses * weight) / tf.reduce_sum(weight)
                return {**_right(labels, logits, losses, weight), "mean_loss": v1.metrics.mean(mean_loss)}
            """,
            "mean_loss of two batches",
        ),
        # Weights turned round
        Wrong(
            """
            _right = metric_fn

            def metric_fn(labels, logits, losses, weight):
                return _right(labels, logits, losses, 1.0 - weight)
            """,
            re.compile("accuracy(:| of two batches)"),
        ),
        Mutant("reduce_max(real)", "reduce_max(losses)", "worst_loss: "),
        # Zeros times what may be NaN
        Mutant(
            "tf.where(weight > 0, losses, 0.0)",
            "losses * weight",
            "where the loss of padding is NaN",
        ),
        Mutant("mean(real, weights=weight)", "mean(losses, weights=weight)", "mean_loss is nan"),
        Mutant("mean(real, weights=weight)", "mean(losses)", "value without weights"),
        Mutant("tf.argmax(logits, axis=1), weights", "logits, weights", "most likely class"),
        Mutant(
            "v1.metrics.mean(real, weights=weight)",
            "tf.reduce_sum(losses * weight) / tf.reduce_sum(weight)",
            "pair",
        ),
        Mutant("(worst, update)", "(update, update)", "depends on one batch only"),
        Mutant("(worst, update)", "(worst, tf.reduce_max(real))", "what the variable began"),
        Mutant("tf.maximum(worst, ", "(worst + ", "the sum of the batches' maxima"),
        Mutant(
            "(worst, update)",
            "v1.metrics.mean(tf.reduce_max(real))",
            "the mean of the batches' maxima",
        ),
        Mutant(
            'v1.get_local_variable("worst", initializer=0.0)',
            "v1.Variable(0.0)",
            "v1.get_local_variable",
        ),
        Mutant('        "mean_loss": v1', '        "loss": v1', '"mean_loss"'),
    ],
    "4b": [
        Right("wrong = ' d '"),
        Right("hides, shows = np.array([0, 1] * 8), tuple([1] * 8 + [0] * 8)"),
        Right("hides, shows = [0, 1, 1, 0] * 4, [0] * 15 + [True]"),
        Wrong("wrong = 'A'", "Change A is correct. A Python number is the same on every machine"),
        Wrong("wrong = 'B'", "B is correct. This is the repair"),
        Wrong("wrong = 'C'", "recall gets the weights, it counts no padding"),
        Wrong("wrong = 'loss'", "is A, B, C or D"),
        Wrong(
            "hides = shows",
            "hides: the cores have 2, 2, 2, 2, 2, 2, 2, 1 real rows. With random losses D reports",
        ),
        Wrong(
            "hides = [1] * 8 + [0] * 8",
            re.compile("hides: the cores have 2, 2, 2, 2, 0, .*, but the mean"),
        ),
        Wrong("shows = hides", re.compile("shows: .* 1 real rows.* as well")),
        Wrong("hides = [1] * 16", "hides has no padding"),
        Wrong("shows = [0] * 16", "shows has no real row"),
        Wrong("shows = [1] * 7 + [0]", "should have 16 weights; yours has 8"),
        Wrong("shows = [0.5] * 16", "each weight should be 0 or 1"),
    ],
    "4c": [
        Right(_loops(flowers="10", resnet="1")),
        Right(_loops(flowers="50", resnet="25")),
        Right(_loops(flowers="np.int64(25)", resnet="20")),
        Wrong(
            _loops(digits="200"),
            "digits: with loops of 200, the hook that is due at step 100 comes",
        ),
        Wrong(_loops(flowers="None"), "flowers: not None"),
        Wrong(_loops(resnet="None"), "ResNet-50: not None"),
        Wrong(_loops(digits="100"), "digits: with loops of 100 the core is busy 92.6% of the time"),
        Wrong(_loops(digits="300"), "a checkpoint that is due at step 1000 comes at step 1200"),
        Wrong(_loops(flowers="5"), "flowers: with loops of 5 the core is busy 94.9%"),
        Wrong(_loops(flowers="100"), "the hook that is due at step 50 comes at step 100"),
        Wrong(_loops(resnet="100"), "ResNet-50: a loop of 100 steps takes 32 seconds"),
        Wrong(_loops(resnet="0"), "a whole number of steps"),
        Wrong(_loops(resnet="2.5"), "a whole number of steps"),
        # When each multiple of 200 is passed
        Wrong(
            "written = [0, 270, 450, 630, 810, 1000]",
            "the checkpoint after the one at step 270 is due at step 470. Yours has it at 450",
        ),
        Wrong(
            "written = [0, 180, 360, 540, 720, 900, 1000]",
            "due at step 200. Yours has it at 180",
        ),
        Wrong("written = [0, 200, 400, 600, 800, 1000]", "no loop of 90 ends at step 200"),
        Wrong("written = [0, 270, 540, 810, 1080]", "no loop of 90 ends at step 1080"),
        Wrong("written = [270, 540, 810, 1000]", "before its first step"),
        Wrong("written = [0, 270, 540, 810]", "after its last step"),
        Wrong("written = [0, 270, 540, 1000]", "due at step 740. Yours has it at 1000"),
        Wrong("written = 4", "a list of steps"),
        Right("written = tuple(reversed(written))"),
        Right("written = np.array(written)"),
        Wrong("loops = [250, 25, 10]", "a dict of digits, flowers"),
        Wrong(
            "loops['ResNet50'] = loops.pop('ResNet-50')", "missing: ResNet-50; unknown: ResNet50"
        ),
    ],
}
