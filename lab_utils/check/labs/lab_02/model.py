"""What a core runs: TODO 2a, the optimizer, and 2b and 2c, the spec."""

import contextlib
from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import (
    a,
    call,
    expect,
    expect_dataset,
    other_names,
    translated,
)
from lab_utils.dry_run.inspect import replicas
from lab_utils.estimator import tf, tpu, v1


@todo(
    "2a",
    hints=(
        "Which optimizer is there in any case, and what comes around it on a TPU?",
        "What CrossShardOptimizer returns is an optimizer, too: the function returns the one or"
        " the other.",
    ),
    why="The wrapper sums gradients over the cores. A CPU has one copy of the model and no kernel "
    "for the sum.",
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
            'Without params["use_tpu"] there is one copy of the model and nothing to sum, and a CPU has no '
            "kernel for that: wrap the optimizer only where it is true.",
        )
        expect(
            isinstance(plain, v1.train.AdamOptimizer),
            f"The optimizer of the lab is Adam; yours is {a(plain)}.",
        )
        # The first step of Adam moves a variable by the learning rate.
        variable = v1.get_variable("variable", initializer=2.0)
        with replicas(8):
            ((gradient, _),) = wrapped.compute_gradients(3.0 * variable, [variable])
        step = plain.minimize(3.0 * variable)
        session.run(v1.global_variables_initializer())
        session.run(step)
        moved = 2.0 - session.run(variable)
        share = session.run(gradient)
    expect(
        abs(share - 3.0 / 64) > 1e-6,
        "The optimizer is wrapped twice, and each CrossShardOptimizer divides the loss by the number of cores: wrap it "
        "once.",
    )
    expect(
        abs(share - 3.0 / 8) < 1e-6,
        "The sum over eight cores would be 8 times the gradient of the batch's mean loss. Leave reduction "
        "alone: by default each core's loss is divided by the number of cores first.",
    )
    expect(abs(moved - 0.5) < 1e-3, 'The optimizer should take params["learning_rate"].')
    _inside(make_optimizer)
    return "Adam on a CPU, Adam with summed gradients on a TPU."


def _inside(make_optimizer: Callable) -> None:
    """What CrossShardOptimizer wraps, read from the update that it makes; no CPU could run that."""
    with tf.Graph().as_default() as graph, replicas(8):
        wrapped = make_optimizer({"learning_rate": 0.5, "use_tpu": True})
        variable = v1.get_variable("variable", initializer=2.0)
        wrapped.apply_gradients([(tf.constant(3.0), variable)])
    update = next(op for op in graph.get_operations() if "Apply" in op.type)
    expect(
        update.type.endswith("ApplyAdam"),
        f'With params["use_tpu"] the optimizer inside should be Adam too; yours updates by {update.type}.',
    )
    rate = tf.get_static_value(update.inputs[5])
    expect(
        rate is None or abs(rate - 0.5) < 1e-6,
        f'With params["use_tpu"], too, the optimizer should take params["learning_rate"], 0.5 here, as it is: '
        f"the batch's mean loss keeps its scale. Yours takes {rate:.4g}.",
    )


@todo(
    "2b",
    hints=(
        "As in lab 01. The tensors are the function's own arguments.",
        "A dict with one name; its value is the pair that v1.metrics.accuracy makes of classes.",
    ),
    why="It uses nothing but its arguments, so the host can call it with tensors that came from all"
    " cores.",
)
def metrics(metric_fn: Callable) -> str:
    """An accuracy from labels and logits, and from nothing else."""
    batches = (([1, 2, 3, 4], [1, 2, 3, 9]), ([0, 5, 0, 7], [0, 0, 0, 0]))  # 3 of 4, then 2 of 4
    with tf.Graph().as_default(), v1.Session() as session:
        said, labels = (v1.placeholder(tf.int32, [4]) for _ in range(2))
        with classes_compared():
            made = call(metric_fn, {"labels": labels, "logits": tf.one_hot(said, 10)})
        expect(
            isinstance(made, dict) and "accuracy" in made,
            f'metric_fn should return a dict with "accuracy"; yours returns '
            f"{list(made) if isinstance(made, dict) else a(made)}.",
        )
        pair = made["accuracy"]
        expect(
            isinstance(pair, tuple) and len(pair) == 2,
            "A metric is a pair (value so far, update op), as v1.metrics.accuracy makes it; a Keras metric "
            f"is another thing. Yours is {a(pair)}.",
        )
        session.run(v1.local_variables_initializer())
        for truth, guess in batches:
            session.run(pair[1], {labels: truth, said: guess})
        with translated(
            "must feed a value",
            "The value of accuracy depends on the batch at hand; it should add up over all batches, as the "
            "pair of v1.metrics.accuracy does.",
            (tf.errors.InvalidArgumentError,),
        ):
            value = session.run(pair[0])
    expect(
        abs(value - 5 / 8) < 1e-6,
        f"With 3 of 4 right, and then 2 of 4, accuracy is 0.625; yours is {value:.4g}. Compare the labels with "
        "the most likely class of each row of logits.",
    )
    return "An accuracy of the tensors that it is given: it can run on the host."


@todo(
    "2c",
    hints=(
        "eval_metrics is a pair: a function, and what to call it with.",
        "The function itself, not what it returns; the tensors in the order of its arguments.",
    ),
    why="The spec hands over a function and the tensors that have to travel; the host does the "
    "rest.",
)
def eval_spec(model_fn: Callable) -> str:
    """A TPUEstimatorSpec for evaluation, whose tensors can travel to the host."""
    with tf.Graph().as_default() as graph:
        v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [16, 8, 8])
        labels = v1.placeholder(tf.int32, [16])
        with translated(
            "callable",
            "The first part of eval_metrics should be the function itself, not called: the host calls it, with "
            "tensors that have come from the TPU.",
        ):
            spec = model_fn(images, labels, "eval", {"learning_rate": 0.1, "use_tpu": False})
    expect(
        not isinstance(spec, tf.estimator.EstimatorSpec),
        "This is a plain EstimatorSpec, which a TPU's evaluation refuses: return a tpu.TPUEstimatorSpec.",
    )
    expect(
        isinstance(spec, tpu.TPUEstimatorSpec),
        f"In mode EVAL model_fn should return a tpu.TPUEstimatorSpec; yours returns {a(spec)}.",
    )
    expect(
        spec.mode == "eval",
        f"The spec's mode should be the mode given, EVAL; yours is {spec.mode!r}.",
    )
    expect(
        bool(spec.eval_metrics),
        "There are no eval_metrics, so evaluation would report the loss alone: give the spec a pair, the function of "
        "TODO 2b and its tensors.",
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
    with v1.Session(graph=graph) as session:
        random = np.random.default_rng(0)
        fed = {images: random.random([16, 8, 8]), labels: random.integers(0, 10, 16)}
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        loss, truths, scores = session.run([spec.loss, *labels_first], fed)
    exponents = np.exp(scores)
    right = -np.log(exponents[np.arange(16), truths] / exponents.sum(axis=1)).mean()
    expect(
        abs(loss - right) < 1e-3,
        f"The loss should be that of training, the mean cross-entropy: {right:.4f} here; yours is {loss:.4f}.",
    )
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
