"""What a core runs: TODO 2a, the optimizer, and 2b and 2c, the spec."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import (
    a,
    call,
    expect,
    returns,
    translated,
)
from lab_utils.dry_run.inspect import replicas
from lab_utils.estimator import tf, tpu, v1

_WRAPPED = "CrossShardOptimizer(optimizer)"


@todo(
    "2a",
    hints=(
        "Which optimizer is there in any case, and what comes around it on a TPU?",
        "What CrossShardOptimizer returns is an optimizer, too: the function returns the one or the other.",
    ),
    why="The wrapper sums gradients over the cores. A CPU has one copy of the model and no kernel for the sum.",
    slips={
        (
            _WRAPPED,
            "CrossShardOptimizer(optimizer, reduction=v1.losses.Reduction.SUM)",
        ): "Leave reduction "
        "alone: by default each core's loss is divided by the number of cores first.",
        (
            _WRAPPED,
            f"CrossShardOptimizer(v1.tpu.{_WRAPPED})",
        ): "The optimizer is wrapped twice, and each "
        "wrapper divides the loss by the number of cores: wrap it once.",
    },
)
def optimizer(make_optimizer: Callable) -> Cases:
    """Adam, wrapped on a TPU alone."""
    on_cpu, on_tpu = ({"learning_rate": 0.5, "use_tpu": use} for use in (False, True))
    keras = "A Keras optimizer cannot be wrapped: take v1.train.AdamOptimizer."
    with tf.Graph().as_default(), v1.Session() as session:
        plain = make_optimizer(on_cpu)
        with translated("Keras", keras):
            wrapped = make_optimizer(on_tpu)
        returns(plain, v1.train.Optimizer, "make_optimizer", "an optimizer of v1.train")
        label = (
            "With use_tpu false there is one copy of the model and nothing to sum: the optimizer"
        )
        yield label, type(plain).__name__
        yield 'With params["use_tpu"] the optimizer', type(wrapped).__name__
        variable = v1.get_variable("variable", initializer=2.0)
        with replicas(8):
            ((gradient, _),) = wrapped.compute_gradients(3.0 * variable, [variable])
        step = plain.minimize(3.0 * variable)
        session.run(v1.global_variables_initializer())
        session.run(step)
        moved, share = 2.0 - session.run(variable), session.run(gradient)
    yield "The part of one of eight cores in a gradient of 3", share
    yield 'A first step of Adam moves a variable by params["learning_rate"]', moved, 1e-3
    # What CrossShardOptimizer wraps, read from the update that it makes; no CPU could run that.
    with tf.Graph().as_default() as graph, replicas(8):
        variable = v1.get_variable("variable", initializer=2.0)
        make_optimizer(on_tpu).apply_gradients([(tf.constant(3.0), variable)])
    update = next(op for op in graph.get_operations() if "Apply" in op.type)
    yield 'The update by the optimizer inside, with params["use_tpu"], is Adam too', update.type
    rate = tf.get_static_value(update.inputs[5])
    rate = 0.5 if rate is None else float(rate)
    yield 'Its learning rate, with params["use_tpu"], too, params["learning_rate"] as it is', rate
    return "Adam on a CPU, Adam with summed gradients on a TPU."


@todo(
    "2b",
    hints=(
        "As in lab 01. The tensors are the function's own arguments.",
        "A dict with one name; its value is the pair that v1.metrics.accuracy makes of classes.",
    ),
    why="It uses nothing but its arguments, so the host can call it with tensors that came from all cores.",
)
def metrics(metric_fn: Callable) -> Cases:
    """An accuracy from labels and logits, and from nothing else."""
    one_batch = (
        "The value of accuracy depends on the batch at hand; it should add up over all batches, as the pair of "
        "v1.metrics.accuracy does."
    )
    with tf.Graph().as_default(), v1.Session() as session:
        said, labels = (v1.placeholder(tf.int32, [4]) for _ in range(2))
        with classes_compared():
            found = call(metric_fn, {"labels": labels, "logits": tf.one_hot(said, 10)})
        returns(found, lambda each: "accuracy" in each, "metric_fn", 'a dict with "accuracy"')
        pair = found["accuracy"]
        told = "A metric is a pair (value so far, update op), as v1.metrics.accuracy makes it; yours is"
        expect(isinstance(pair, tuple) and len(pair) == 2, f"{told} {a(pair)}.")
        session.run(v1.local_variables_initializer())
        for truth, guess in (([1, 2, 3, 4], [1, 2, 3, 9]), ([0, 5, 0, 7], [0, 0, 0, 0])):
            session.run(pair[1], {labels: truth, said: guess})
        with translated("must feed a value", one_batch, (tf.errors.InvalidArgumentError,)):
            value = session.run(pair[0])
    label = "accuracy of 3 of 4 right, and then 2 of 4: labels against the most likely class of each row"
    yield label, value
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
        except TypeError as error:
            if "keyword argument" not in str(error):
                raise
            raise Wrong(
                "The names in the dict should be those of the function's arguments, labels and logits. "
                f"Python says: {error}"
            ) from None
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
