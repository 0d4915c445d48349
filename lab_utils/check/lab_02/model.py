"""What a core runs: TODO 2a, the optimizer, 2b and 2c, the spec, and 2d, the batches it gets."""

from collections.abc import Callable

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Mutant, todo
from lab_utils.check.tools import a, expect, expect_dataset
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf, tpu, v1


@todo(
    "2a",
    hints=(
        'v1.train.AdamOptimizer(params["learning_rate"]) comes first, in any case.',
        'if params["use_tpu"]: optimizer = v1.tpu.CrossShardOptimizer(optimizer)',
    ),
    mutants=(
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
    ),
)
def optimizer(make_optimizer: Callable) -> str:
    """Adam, wrapped on a TPU alone."""
    with tf.Graph().as_default(), v1.Session() as session:
        plain = make_optimizer({"learning_rate": 0.5, "use_tpu": False})
        try:
            wrapped = make_optimizer({"learning_rate": 0.5, "use_tpu": True})
        except TypeError as error:
            if "Keras" not in str(error):
                raise
            raise Wrong(
                "A Keras optimizer cannot be wrapped: take v1.train.AdamOptimizer."
            ) from None
        expect(
            isinstance(plain, v1.train.Optimizer),
            f"make_optimizer should return an optimizer of v1.train; yours returns {a(plain)}.",
        )
        expect(
            isinstance(wrapped, v1.tpu.CrossShardOptimizer),
            'With params["use_tpu"] the optimizer should be a CrossShardOptimizer; yours is '
            f"{a(wrapped)}, and the cores would drift apart.",
        )
        expect(
            not isinstance(plain, v1.tpu.CrossShardOptimizer),
            'Without params["use_tpu"] there is one copy of the model and nothing to sum; a CPU has no '
            "kernel for it.",
        )
        expect(
            isinstance(plain, v1.train.AdamOptimizer),
            f"The optimizer of the lab is Adam; yours is {a(plain)}.",
        )
        # The first step of Adam moves a variable by the learning rate.
        variable = v1.get_variable("variable", initializer=2.0)
        with _tensorflow.replicas(8):
            ((gradient, _),) = wrapped.compute_gradients(3.0 * variable, [variable])
        step = plain.minimize(3.0 * variable)
        session.run(v1.global_variables_initializer())
        session.run(step)
        moved = 2.0 - session.run(variable)
        share = session.run(gradient)
    expect(
        abs(share - 3.0 / 8) < 1e-6,
        "The sum over eight cores would be 8 times the gradient of the batch's mean loss. Leave reduction "
        "alone: by default each core's loss is divided by the number of cores first.",
    )
    expect(abs(moved - 0.5) < 1e-3, 'The optimizer should take params["learning_rate"].')
    return "Adam on a CPU, Adam with summed gradients on a TPU."


@todo(
    "2b",
    hints=(
        "As in lab 01: v1.metrics.accuracy(labels, classes), with the class of each row of logits.",
        'return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}',
    ),
    mutants=(
        Mutant('{"accuracy": v1', '{"acc": v1', '"accuracy"'),
        Mutant('return {"accuracy"', '{"accuracy"', "return missing"),
        Mutant("axis=1))}", "axis=0))}", "ValueError|3 of 4"),
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
    ),
)
def metrics(metric_fn: Callable) -> str:
    """An accuracy from labels and logits, and from nothing else."""
    with tf.Graph().as_default(), v1.Session() as session:
        logits = tf.one_hot([1, 2, 3, 4], 10)
        made = metric_fn(labels=tf.constant([1, 2, 3, 9]), logits=logits)
        expect(
            isinstance(made, dict) and "accuracy" in made,
            f'metric_fn should return a dict with "accuracy"; yours returns '
            f"{list(made) if isinstance(made, dict) else a(made)}.",
        )
        pair = made["accuracy"]
        expect(
            isinstance(pair, tuple) and len(pair) == 2,
            "A metric is a pair (value so far, update op), as v1.metrics.accuracy makes it; a Keras metric "
            f"is none. Yours is {a(pair)}.",
        )
        session.run(v1.local_variables_initializer())
        session.run(pair[1])
        value = session.run(pair[0])
    expect(abs(value - 0.75) < 1e-6, f"With 3 of 4 right, accuracy is 0.75; yours is {value:.4g}.")
    return "An accuracy of the tensors that it is given: it can run on the host."


@todo(
    "2c",
    hints=(
        "eval_metrics is a pair: the function itself, not called, and a list of tensors.",
        "tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))",
    ),
    mutants=(
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
            "callable|function itself",
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
            r"\[16, 10\]; yours is int64 \[16\]",
        ),
    ),
)
def eval_spec(model_fn: Callable) -> str:
    """A TPUEstimatorSpec for evaluation, whose tensors can travel to the host."""
    with tf.Graph().as_default():
        v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [16, 8, 8])
        labels = v1.placeholder(tf.int32, [16])
        try:
            spec = model_fn(images, labels, "eval", {"learning_rate": 0.1, "use_tpu": False})
        except (TypeError, ValueError) as error:
            if "callable" not in str(error):
                raise
            raise Wrong(
                "The first part of eval_metrics should be the function itself, not called: the host calls "
                "it, with tensors that have come from the TPU."
            ) from None
    expect(
        not isinstance(spec, tf.estimator.EstimatorSpec),
        "This is a plain EstimatorSpec, which a TPU's evaluation refuses: return a tpu.TPUEstimatorSpec.",
    )
    expect(
        isinstance(spec, tpu.TPUEstimatorSpec),
        f"In mode EVAL model_fn should return a tpu.TPUEstimatorSpec; yours returns {a(spec)}.",
    )
    expect(
        bool(spec.eval_metrics),
        "There are no eval_metrics: evaluation would tell the loss alone.",
    )
    function, tensors = spec.eval_metrics
    sent = tf.nest.flatten(tensors)
    expect(
        bool(sent),
        "The second part of eval_metrics should hold labels and logits; yours is empty.",
    )
    for each in sent:
        expect(
            each.shape.rank != 0,
            f"{each.name} is a scalar. What leaves a TPU for metric_fn has the batch first, since the "
            "cores' parts are joined along it.",
        )
    swapped = sent[0].shape.as_list() == [16, 10]
    labels_first = sent[::-1] if swapped else sent
    for name, each, wanted in zip(
        ("labels", "logits"), labels_first, ([16], [16, 10]), strict=False
    ):
        expect(
            each.shape.as_list() == wanted,
            f"{name} should be a tensor {wanted}; yours is {each.dtype.name} {each.shape.as_list()}.",
        )
    _runs_on_the_host(function, tensors, swapped)
    return "The metrics are a function and its tensors; the host can run it."


def _runs_on_the_host(function: Callable, tensors: list | dict, swapped: bool) -> None:
    """Calls the function of eval_metrics as the host does: with other tensors, in another graph."""
    with tf.Graph().as_default() as host:
        arrived = tf.nest.map_structure(
            lambda each: v1.placeholder(each.dtype, each.shape), tensors
        )
        try:
            made = function(**arrived) if isinstance(arrived, dict) else function(*arrived)
            strays = any(getattr(each, "graph", host) is not host for each in tf.nest.flatten(made))
        except ValueError as error:
            if swapped:
                raise Wrong(
                    "The tensors should stand in the order of metric_fn's arguments: labels, logits."
                ) from None
            strays = "graph" in str(error)
            if not strays:
                raise
    expect(
        not strays,
        "Your function closes over a tensor of model_fn, which stays on the TPU: it may use nothing of the "
        "graph but its own arguments.",
    )


@todo(
    "2d",
    hints=(
        'The size of a batch stands in params["batch_size"].',
        'dataset.batch(params["batch_size"], drop_remainder=True)',
    ),
    mutants=(
        Mutant(", drop_remainder=True", "", "drop_remainder"),
        Mutant('params["batch_size"]', "128", "batch_size"),
        Mutant("return dataset.batch", "dataset.batch", "return missing"),
        Mutant("drop_remainder=True", 'drop_remainder=split == "train"', "evaluation"),
        Mutant(
            'params["batch_size"], drop_remainder=True)',
            'params["batch_size"], drop_remainder=True).repeat()',
            "never ends",
        ),
        Mutant("def input_fn(params):", "def input_fn():\n        params = settings", "params"),
    ),
)
def input_fn(make_input_fn: Callable) -> str:
    """Full batches of the size that params names, of both splits; an evaluation comes to its end."""
    for split, run in (("train", "training"), ("eval", "evaluation")):
        made = make_input_fn(split)
        try:
            with tf.Graph().as_default(), v1.Session() as session:
                dataset = made({"batch_size": 24})
                expect_dataset(dataset, "input_fn")
                shape = dataset.element_spec[0].shape
                batches = session.run(dataset.cardinality())
        except TypeError as error:
            if "positional argument" not in str(error):
                raise
            raise Wrong(
                "input_fn should take params: TPUEstimator passes the batch size there."
            ) from None
        expect(
            shape[0] is not None,
            f"In {run} the batch's shape is {shape}: the last batch may be smaller, so a TPU program cannot "
            "be compiled for it. drop_remainder=True.",
        )
        expect(
            shape[0] == 24,
            f'In {run} with params["batch_size"] of 24 the batch is {shape}: take the size from params.',
        )
    expect(
        batches != tf.data.INFINITE_CARDINALITY,
        "The dataset of the evaluation never ends: repeat() is for training alone.",
    )
    return "Every batch has the shape that the program is compiled for."
