"""Answers to lab 04: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong


def hosted(body: str, outside: str = "") -> str:
    """A cell with make_host_fn around that body of host_fn; `outside` stands above host_fn."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    above = textwrap.indent(textwrap.dedent(outside).strip(), " " * 4)
    return f"def make_host_fn(directory, every):\n{above}\n\n    def host_fn(step, loss, rate):\n{inner}\n\n    return host_fn\n"


def training(body: str, before: str = "") -> str:
    """A cell with train_spec, in which that body stands for the TODO."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    return f"""{before}def train_spec(mode, loss, params, scaffold_fn=None):
    step = v1.train.get_global_step()
    rate = v1.train.exponential_decay(params["learning_rate"], step, 100, 0.5)
    optimizer = v1.train.AdamOptimizer(rate)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, step)
{inner}
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, host_call=host_call, scaffold_fn=scaffold_fn
    )
"""


def acting(body: str, more: str = "") -> str:
    """A cell with the hook, in which that body stands for the TODO."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"""class Every(v1.train.SessionRunHook):
    def __init__(self, steps, action):
        self.steps, self.action = steps, action
        self.last = 0

    def begin(self):
        self.global_step = v1.train.get_global_step()
{more}
    def after_run(self, run_context, run_values):
        step = run_context.session.run(self.global_step)
{inner}
"""


HOST_FN = 'host_fn = make_host_fn(params["summary_dir"], params["summary_steps"])\n'
SPEC = "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)\n"
LOSSES = """
loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, weight)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
"""


def spec(body: str, before: str = "") -> str:
    """A cell with eval_spec of that body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
    return f"{before}def eval_spec(mode, labels, logits, weight):\n{inner}\n"


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
        Right("""
            def metric_fn(labels, logits, losses, weight):
                def weighted(values):
                    return v1.metrics.mean(tf.cast(values, tf.float32), weight)

                classes = tf.argmax(logits, 1, output_type=tf.int32)
                return {
                    "accuracy": weighted(tf.equal(classes, labels)),
                    "top_3": weighted(tf.nn.in_top_k(labels, logits, 3)),
                    "mean_loss": weighted(losses),
                }
        """),
        Right("""
            def metric_fn(labels, logits, losses, weight):
                labels, logits, losses = (tf.boolean_mask(each, weight > 0) for each in (labels, logits, losses))
                best = tf.math.top_k(logits, k=3).indices
                metrics = dict(accuracy=v1.metrics.accuracy(labels=labels, predictions=best[:, 0]))
                metrics["top_3"] = v1.metrics.mean(tf.cast(tf.reduce_any(tf.equal(best, labels[:, None]), 1), tf.float32))
                metrics["mean_loss"] = v1.metrics.mean(losses)
                return metrics
        """),
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
            "padding",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight),
                    "top_3": v1.metrics.mean(top, weights=weight),
                    "mean_loss": v1.metrics.mean(losses * weight),
                }
        """,
            "padding",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 5), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight),
                    "top_3": v1.metrics.mean(top, weights=weight),
                    "mean_loss": v1.metrics.mean(losses, weights=weight),
                }
        """,
            "top_3",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight),
                    "top3": v1.metrics.mean(top, weights=weight),
                    "loss": v1.metrics.mean(losses, weights=weight),
                }
        """,
            '"top_3"',
        ),
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
            "batch",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight),
                    "top_3": v1.metrics.mean(top, weights=weight),
                    "mean_loss": tf.reduce_mean(losses),
                }
        """,
            "pair",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                top = tf.cast(tf.math.in_top_k(logits, labels, 3), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=weight),
                    "top_3": v1.metrics.mean(top, weights=weight),
                    "mean_loss": v1.metrics.mean(losses, weights=weight),
                }
        """,
            "in_top_k",
        ),
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
            "padding",
        ),
        Wrong(
            """
            def metric_fn(labels, logits, losses, weight):
                kept = tf.cast(labels > 0, tf.float32)
                top = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
                return {
                    "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=kept),
                    "top_3": v1.metrics.mean(top, weights=kept),
                    "mean_loss": v1.metrics.mean(losses, weights=kept),
                }
        """,
            "accuracy of two batches",
        ),
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
        Right(
            spec(
                LOSSES
                + """
tensors = {"labels": labels, "logits": logits, "losses": losses, "weight": weight}
return tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(metric_fn, tensors))
        """
            )
        ),
        Right(
            spec(
                LOSSES
                + """
return assembled(mode, loss, labels, logits, losses, weight)
        """,
                """def assembled(mode, loss, *tensors):
    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, list(tensors)))


""",
            )
        ),
        Right(
            spec("""
            losses = v1.losses.sparse_softmax_cross_entropy(labels, logits, weight, reduction=v1.losses.Reduction.NONE)
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses * weight), tf.reduce_sum(weight))

            def on_the_host(*tensors):
                return metric_fn(*tensors)

            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(on_the_host, (labels, logits, losses, weight)))
        """)
        ),
        Right(
            spec("""
            losses = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 10), logits)
            loss = v1.losses.softmax_cross_entropy(tf.one_hot(labels, 10), logits, weights=weight)
            call = lambda weight, losses, logits, labels: metric_fn(labels=labels, logits=logits, losses=losses, weight=weight)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(call, [weight, losses, logits, labels]))
        """)
        ),
        Right("""
            def losses_of(labels, logits):
                return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


            def eval_spec(mode, labels, logits, weight):
                losses = losses_of(labels, logits)
                loss = v1.losses.compute_weighted_loss(losses, weight)
                metrics = functools.partial(metric_fn), [labels, logits, losses, weight]
                return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)


            import functools
        """),
        Wrong(
            spec(
                LOSSES
                + """
loss = tf.reduce_mean(losses)
metrics = (metric_fn, [labels, logits, losses, weight])
"""
                + SPEC
            ),
            "padding",
        ),
        Wrong(
            spec(
                LOSSES
                + """
loss = tf.reduce_sum(losses * weight)
metrics = (metric_fn, [labels, logits, losses, weight])
"""
                + SPEC
            ),
            re.compile("mean loss|sum"),
        ),
        Wrong(
            spec(
                LOSSES
                + """
loss = tf.reduce_sum(losses * weight) / tf.reduce_sum(weight)
metrics = (metric_fn, [labels, logits, losses, weight])
"""
                + SPEC
            ),
            re.compile("0 / 0|padding alone|nan"),
        ),
        Wrong(
            spec(
                LOSSES
                + """
def on_the_host(labels, logits):
    return metric_fn(labels, logits, losses, weight)

metrics = (on_the_host, [labels, logits])
"""
                + SPEC
            ),
            "captures",
        ),
        Wrong(
            spec(
                LOSSES
                + """
def on_the_host(labels, logits, losses, weight):
    return {**metric_fn(labels, logits, losses, weight), "loss": v1.metrics.mean(loss)}

metrics = (on_the_host, [labels, logits, losses, weight])
"""
                + SPEC
            ),
            "captures",
        ),
        Wrong(
            spec(
                LOSSES
                + "metrics = (metric_fn, [labels, logits, tf.reshape(loss, [1]), weight])\n"
                + SPEC
            ),
            "one for each row",
        ),
        Wrong(
            spec(LOSSES + "metrics = (metric_fn, [logits, labels, losses, weight])\n" + SPEC),
            "order",
        ),
        Wrong(
            spec(LOSSES + "metrics = (metric_fn, [labels, logits, losses])\n" + SPEC),
            re.compile("length of tensors 3|four|weight"),
        ),
        Wrong(
            spec(
                LOSSES
                + "return tpu.TPUEstimatorSpec(mode, loss=losses, eval_metrics=(metric_fn, [labels, logits, losses, weight]))"
            ),
            "scalar",
        ),
        Wrong(
            spec(
                LOSSES
                + "return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metric_fn(labels, logits, losses, weight))"
            ),
            "TPUEstimatorSpec",
        ),
        Wrong(
            spec("""
            loss = v1.losses.sparse_softmax_cross_entropy(labels, tf.nn.softmax(logits), weight)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.nn.softmax(logits))
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits, losses, weight]))
        """),
            "softmax",
        ),
        Wrong(
            spec(
                LOSSES
                + "metrics = (metric_fn, [labels, logits, losses, tf.reduce_mean(weight)])\n"
                + SPEC
            ),
            "scalar",
        ),
        Wrong(
            spec(
                LOSSES
                + "return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metric_ops=(metric_fn, [labels, logits, losses, weight]))"
            ),
            "eval_metric_ops",
        ),
        Wrong(
            spec(
                LOSSES
                + "metrics = (metric_fn, [labels, logits, tf.fill([6], loss), weight])\n"
                + SPEC
            ),
            "mean of the batch",
        ),
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
        Right(
            hosted("""
            now = tf.reduce_max(step)
            writer = tf.summary.create_file_writer(directory)
            with writer.as_default():
                with tf.summary.record_if(tf.math.equal(tf.math.floormod(now, every), 0)):
                    tf.summary.scalar("loss", tf.math.reduce_mean(loss), now)
                    tf.summary.scalar("learning_rate", tf.reduce_mean(rate), now)
            return v1.summary.all_v2_summary_ops()
        """)
        ),
        Right("""
            def make_host_fn(directory, every):
                def is_time(step):
                    return tf.equal(step % every, 0)

                def write(name, value, step):
                    tf.summary.scalar(name=name, data=value, step=step)

                def host_fn(step, loss, rate):
                    step = tf.cast(step[0], tf.int64)
                    with tf.summary.create_file_writer(logdir=directory, flush_millis=1000).as_default():
                        with tf.summary.record_if(lambda: is_time(step)):
                            write("loss", tf.reduce_mean(loss), step)
                            write("learning_rate", rate[-1], step)
                    return tf.group(v1.summary.all_v2_summary_ops())

                return host_fn
        """),
        Right(
            hosted("""
            values = {"loss": tf.reduce_sum(loss) / tf.cast(tf.size(loss), tf.float32), "learning_rate": rate[0]}
            with tf.summary.create_file_writer(directory).as_default(step=step[0]), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                for name, value in values.items():
                    tf.summary.scalar(name, value)
            return v1.summary.all_v2_summary_ops()
        """)
        ),
        Wrong(
            hosted(
                """
            with writer.as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """,
                "writer = tf.summary.create_file_writer(directory)",
            ),
            "inside host_fn",
        ),
        Wrong(
            hosted("""
            now = v1.train.get_or_create_global_step()
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(now % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=now)
                tf.summary.scalar("learning_rate", rate[0], step=now)
            return v1.summary.all_v2_summary_ops()
        """),
            "step",
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.not_equal(step[0] % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            re.compile("every=3|divides"),
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default():
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            "every step",
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(step[0] % every == 0):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            "tf.equal",
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                tf.summary.scalar("loss", tf.reduce_sum(loss), step=step[0])
                tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            "mean over the cores",
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss))
                tf.summary.scalar("learning_rate", rate[0])
            return v1.summary.all_v2_summary_ops()
        """),
            "step",
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(step % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step)
                tf.summary.scalar("learning_rate", rate[0], step=step)
            return v1.summary.all_v2_summary_ops()
        """),
            re.compile("step.*one entry|scalar"),
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                v1.summary.scalar("loss", tf.reduce_mean(loss))
                v1.summary.scalar("learning_rate", rate[0])
            return v1.summary.merge_all()
        """),
            "tf.summary.scalar",
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer("summaries").as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            "directory",
        ),
        Wrong(
            hosted("""
            if int(step[0]) % every == 0:
                with tf.summary.create_file_writer(directory).as_default():
                    tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                    tf.summary.scalar("learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            re.compile("int|Python"),
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
            return v1.summary.all_v2_summary_ops()
        """),
            '"learning_rate"',
        ),
    ],
    "4d": [
        # A class that make_host_fn is a second name of
        Right("""
class HostFn:
    def __init__(self, directory, every):
        self.directory, self.every = directory, every

    def __call__(self, step, loss, rate):
        return v1.summary.all_v2_summary_ops()

make_host_fn = HostFn

def train_spec(mode, loss, params, scaffold_fn=None):
    step = v1.train.get_global_step()
    rate = v1.train.exponential_decay(params["learning_rate"], step, 100, 0.5)
    train_op = v1.train.AdamOptimizer(rate).minimize(loss, step)
    tensors = {"step": step[None], "loss": loss[None], "rate": rate[None]}
    host_call = (HostFn(params["summary_dir"], params["summary_steps"]), tensors)
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, host_call=host_call, scaffold_fn=scaffold_fn
    )
"""),
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
        Right(
            training(
                HOST_FN
                + 'host_call = (host_fn, {"step": step[None], "loss": loss[None], "rate": rate[None]})'
            )
        ),
        Right(
            training(
                "host_call = call_of(params, step, loss, rate)",
                """def call_of(params, *scalars):
    function = make_host_fn(directory=params["summary_dir"], every=params["summary_steps"])
    return function, tuple(tf.expand_dims(each, 0) for each in scalars)


""",
            )
        ),
        Right(
            training("""
            folder, every = params["summary_dir"], params["summary_steps"]
            host_call = (
                lambda rate, loss, step: make_host_fn(folder, every)(step, loss, rate),
                [tf.stack([rate]), tf.stack([loss]), tf.stack([step])],
            )
        """)
        ),
        Right(
            training("""
            tensors = []
            for tensor in (step, loss, rate):
                tensors.append(tf.reshape(tensor, shape=(1,)))
            host_call = make_host_fn(params["summary_dir"], params["summary_steps"]), tensors
        """)
        ),
        Wrong(
            training(
                HOST_FN
                + """
host_call = (lambda step: host_fn(step, tf.reshape(loss, [1]), tf.reshape(rate, [1])), [tf.reshape(step, [1])])
        """
            ),
            re.compile("closes over|captures"),
        ),
        Wrong(
            training(
                HOST_FN
                + """
tensors = [tf.reshape(each, [1]) for each in (step, loss, rate)]
host_call = (lambda *_: host_fn(*tensors), tensors)
        """
            ),
            re.compile("closes over|captures"),
        ),
        Wrong(training(HOST_FN + "host_call = (host_fn, [step, loss, rate])"), "scalar"),
        Wrong(
            training(
                HOST_FN
                + "host_call = (host_fn, [tf.reshape(each, [1]) for each in (loss, rate, step)])"
            ),
            "order",
        ),
        Wrong(
            training(
                HOST_FN
                + 'host_call = (host_fn, [tf.reshape(each, [1]) for each in (step, loss, tf.constant(params["learning_rate"]))])'
            ),
            "rate of this step",
        ),
        Wrong(
            training(
                HOST_FN
                + "host_call = (host_fn, [tf.reshape(each, [1, 1]) for each in (step, loss, rate)])"
            ),
            "[1]",
        ),
        Wrong(
            training(
                HOST_FN
                + "host_call = (host_fn, [tf.fill([8], each) for each in (step, loss, rate)])"
            ),
            "[1]",
        ),
        Wrong(
            training(HOST_FN + "host_call = (host_fn(step, loss, rate), [])"),
            re.compile("function itself|callable"),
        ),
        Wrong(
            training(
                'host_fn = make_host_fn(params["summary_steps"], params["summary_dir"])\nhost_call = (host_fn, [tf.reshape(each, [1]) for each in (step, loss, rate)])'
            ),
            "summary_dir",
        ),
        Wrong(training(HOST_FN + "host_call = host_fn"), re.compile("pair|tuple")),
        Wrong(
            training(
                HOST_FN + "host_call = (host_fn, [tf.reshape(each, [1]) for each in (step, loss)])"
            ),
            re.compile("length of tensors 2|rate|argument"),
        ),
        Wrong(training(HOST_FN + "host_call = None"), "no host_call"),
        Wrong(
            training(
                HOST_FN + 'host_call = (host_fn, [step[None], loss[None], params["learning_rate"]])'
            ),
            "tensors",
        ),
        Wrong(
            training(
                HOST_FN + "host_call = [tf.reshape(each, [1]) for each in (step, loss, rate)]"
            ),
            "should be a pair",
        ),
    ],
    "4e": [
        # Always at the first call
        Wrong(
            acting("""
            if not self.last or step - self.last >= self.steps:
                self.action(step)
                self.last = step
        """),
            "with 50 steps in loops of 1",
        ),
        Mutant("            self.action(step)\n", "", "yours gives []"),
        Right(
            acting("""
            if step < self.last + self.steps:
                return
            self.last = step
            self.action(step)
        """)
        ),
        Right(
            acting(
                """
            if self.due(step):
                self.action(int(step))
        """,
                """
    def due(self, step):
        taken = step - self.last
        if taken >= self.steps:
            self.last = step
            return True
        return False
""",
            )
        ),
        Right("""
            class Every(v1.train.SessionRunHook):
                def __init__(self, steps, action):
                    self.steps, self.action, self.next = steps, action, steps

                def begin(self):
                    self.global_step = v1.train.get_global_step()

                def after_run(self, run_context, run_values):
                    now = run_context.session.run(self.global_step)
                    if now >= self.next:
                        self.action(now)
                        self.next = now + self.steps
        """),
        Wrong(
            acting("""
            if step - self.last >= self.steps:
                self.action(step)
                self.last += self.steps
        """),
            "last acted",
        ),
        Wrong(
            acting("""
            if step // self.steps > self.last // self.steps:
                self.action(step)
                self.last = step
        """),
            "last acted",
        ),
        Wrong(
            acting("""
            if step % self.steps == 0:
                self.action(step)
        """),
            "misses",
        ),
        Wrong(
            acting("""
            if step - self.last == self.steps:
                self.action(step)
                self.last = step
        """),
            re.compile("misses|never acts"),
        ),
        Wrong(
            acting("""
            if step - self.last >= self.steps:
                self.action(step)
        """),
            "keep the step",
        ),
        Wrong(
            acting("""
            if step - self.last >= self.steps:
                self.action(step)
            self.last = step
        """),
            "yours gives []",
        ),
        Wrong(
            acting("""
            if step - self.last > self.steps:
                self.action(step)
                self.last = step
        """),
            "50 steps",
        ),
        Wrong(
            acting("""
            if step - self.last >= self.steps:
                self.action(self.last + self.steps)
                self.last = step
        """),
            "The steps that action gets, with 50 steps in loops of 30",
        ),
        Wrong(
            acting("""
            if step - self.last >= self.steps:
                self.action()
                self.last = step
        """),
            "action",
        ),
        Wrong(
            acting("""
            self.last += 1
            if self.last == self.steps:
                self.action(step)
                self.last = 0
        """),
            re.compile("counts|never acts"),
        ),
    ],
    "4f": [
        Mutant("        return v1.train.Scaffold()\n", "", "None"),
        Mutant(
            'v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})', "", "conv2d/kernel"
        ),
        Mutant('{"conv2d/": "conv2d/"}', '{"/": "/"}', "dense"),
        Mutant("    return scaffold_fn\n", "    return scaffold_fn()\n", "function"),
        Mutant('{"conv2d/": "conv2d/"}', '{"conv2d/": "convolution/"}', "conv2d/kernel"),
        Right("""
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    names = [name for name, _ in tf.train.list_variables(checkpoint) if name.startswith("conv2d/")]
                    v1.train.init_from_checkpoint(checkpoint, {name: name for name in names})
                    return v1.train.Scaffold()

                return scaffold_fn
        """),
        Right("""
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    convolution = [each for each in v1.global_variables() if each.op.name.startswith("conv2d/")]
                    saver = v1.train.Saver(convolution)
                    return v1.train.Scaffold(init_fn=lambda scaffold, session: saver.restore(session, checkpoint))

                return scaffold_fn
        """),
        Right("""
            def scaffold_from(checkpoint):
                tf.compat.v1.train.init_from_checkpoint(ckpt_dir_or_file=checkpoint, assignment_map={"conv2d/": "conv2d/"})
                return tf.compat.v1.train.Scaffold()


            make_scaffold_fn = lambda checkpoint: lambda: scaffold_from(checkpoint)
        """),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})

                def scaffold_fn():
                    return v1.train.Scaffold()

                return scaffold_fn
        """,
            "inside scaffold_fn",
        ),
        Right(
            """
            def make_scaffold_fn(checkpoint):
                scaffold = v1.train.Scaffold()

                def scaffold_fn():
                    v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})
                    return scaffold

                return scaffold_fn
        """,
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    v1.train.init_from_checkpoint(checkpoint, {"/": "/"})
                    return v1.train.Scaffold()

                return scaffold_fn
        """,
            "only conv2d",
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    return v1.train.Scaffold()

                return scaffold_fn
        """,
            "does not start from the checkpoint",
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    return v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})

                return scaffold_fn
        """,
            "Scaffold",
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})
                return v1.train.Scaffold()
        """,
            "the function scaffold_fn",
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    v1.train.init_from_checkpoint(checkpoint, {"conv2d": "conv2d"})
                    return v1.train.Scaffold()

                return scaffold_fn
        """,
            re.compile("conv2d"),
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    v1.train.init_from_checkpoint(checkpoint, {"dense/": "dense/"})
                    return v1.train.Scaffold()

                return scaffold_fn
        """,
            "conv2d",
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                def scaffold_fn():
                    v1.train.init_from_checkpoint(checkpoint, {"conv2d/kernel": "conv2d/kernel"})
                    return v1.train.Scaffold()

                return scaffold_fn
        """,
            "conv2d/bias",
        ),
    ],
}
