"""The checks of lab 02, the four changes."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import (
    a,
    call,
    expect,
    expect_dataset,
    other_names,
    returns,
    translated,
)
from lab_utils.dry_run.inspect import replicas, settings
from lab_utils.estimator import tf, tpu, v1

SETTINGS = {
    "use_tpu": False,
    "tpu": "grpc://10.0.0.2:8470",
    "model_dir": "never_written",
    "train_batch_size": 64,
    "eval_batch_size": 24,
    "learning_rate": 0.5,
    "iterations_per_loop": 30,
}
_WRAPPED = "CrossShardOptimizer(optimizer)"


@todo(
    "2a",
    hints=(
        "Which optimizer is there in any case, and what comes around it on a TPU?",
        "What CrossShardOptimizer returns is an optimizer, too: the function returns the one or the other.",
    ),
    why="The wrapper sums gradients over the cores. A CPU has one copy of the model and no kernel for the sum.",
    slips={
        (_WRAPPED, "CrossShardOptimizer(optimizer, reduction=v1.losses.Reduction.SUM)"): "Leave reduction "
        "alone: by default each core's loss is divided by the number of cores first.",
        (_WRAPPED, f"CrossShardOptimizer(v1.tpu.{_WRAPPED})"): "The optimizer is wrapped twice, and each "
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
        label = "With use_tpu false there is one copy of the model and nothing to sum: the optimizer"
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


@todo(
    "2d",
    hints=(
        "Where does TPUEstimator put the size of a batch?",
        "One argument of batch leaves a smaller last batch out.",
    ),
    why="The program is compiled for one shape, and only TPUEstimator knows how the global batch is shared out.",
)
def input_fn(make_input_fn: Callable) -> Cases:
    """Full batches of the size that params names, of both splits; an evaluation comes to its end."""
    counts = {"train": 100, "eval": 60}
    pixels = {split: np.full([n, 8, 8], 8.0) for split, n in counts.items()}
    for each in pixels.values():
        each[:, 0, 0] = np.arange(len(each)) % 16
    classes = {split: np.arange(n, dtype=np.int32) % 16 for split, n in counts.items()}
    with other_names(make_input_fn, pixels=pixels, classes=classes):
        for split, run in (("train", "training"), ("eval", "evaluation")):
            number, taken = _batches(make_input_fn(split), run)
            ours = all(np.ptp(images[:, 1:, 1:]) == 0 for images, _ in taken)
            if split == "train":
                endless = number in (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
                yield "The dataset of the training never ends: repeat()", endless
            else:
                never = "The dataset of the evaluation never ends: repeat() is for training alone."
                expect(number != tf.data.INFINITE_CARDINALITY, never)
                # Arrays may have been prepared before; then they are not ours.
                known = ours and number != tf.data.UNKNOWN_CARDINALITY
                yield "Full batches of 24 in an evaluation of 60 examples", number if known else 2
            for count, (images, labels) in enumerate(taken, 1):
                paired = np.allclose(images[:, 0, 0] * 16, labels) or not ours
                scaled = images.dtype == np.float32 and images.max() <= 1.0
                label = f"Images in batch {count} of {run} are scaled, float32, with their own labels"
                yield label, bool(scaled and paired)
    return "Every batch has the shape that the program is compiled for."


def _batches(input_fn: Callable, run: str) -> tuple[int, list[tuple[np.ndarray, np.ndarray]]]:
    """How many batches of 24 an input_fn gives, below 0 where that is unknown, and the first two."""
    params = "input_fn should take params: TPUEstimator passes the batch size there."
    inside = "Make the whole dataset inside input_fn, which the Estimator calls in a graph of its own."
    named = 'The batch size stands in params["batch_size"]: TPUEstimator puts it there in each run.'
    graphs = "EagerTensor|same graph|different graph"
    with tf.Graph().as_default(), v1.Session() as session:
        with (
            translated("positional argument", params),
            translated(graphs, inside, (RuntimeError, ValueError)),
            translated("^'.*batch_size'$", named, (KeyError,)),
        ):
            dataset = input_fn({"batch_size": 24})
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], tf.TensorSpec)
        expect(pair, f"Each element should be a pair (images, labels); yours is {spec}.")
        shape = spec[0].shape
        expect(
            shape[0] is not None,
            f"In {run} the batch's shape is {shape}: the last batch may be smaller, so a TPU program cannot "
            "be compiled for it. drop_remainder=True.",
        )
        expect(
            shape.as_list() == [24, 8, 8],
            f'In {run} with params["batch_size"] of 24 the batch is {shape}, not [24, 8, 8]: batch once, and '
            "take the size from params as it is. It is this input_fn's share already.",
        )
        following = v1.data.make_one_shot_iterator(dataset).get_next()
        taken = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            for _ in range(2):
                taken.append(session.run(following))
        return session.run(dataset.cardinality()), taken


@todo(
    "2e",
    hints=(
        "tpu.RunConfig takes cluster, model_dir, save_checkpoints_steps and tpu_config, by name.",
        "A resolver without a TPU raises an exception: make it only where settings ask for one. What is "
        "cluster otherwise?",
    ),
    why="All but the cluster is the same on a CPU and on a TPU, so the CPU run tries what the TPU run will use.",
)
def config(make_config: Callable) -> Cases:
    """A RunConfig with TPUConfig, and a resolver on a TPU alone."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    by_name = "Pass RunConfig's arguments by name."
    no_master = (
        'cluster should be a resolver of settings["tpu"], a TPUClusterResolver; a name alone cannot find a TPU.'
    )
    estimators = "tf.estimator.RunConfig takes no arguments for a TPU: use tpu.RunConfig."
    unnamed = 'The resolver should look for settings["tpu"]: pass it.'
    for use_tpu, loop in ((False, 30), (True, 40)):
        given = SETTINGS | {"use_tpu": use_tpu, "iterations_per_loop": loop}
        with (
            translated("Both master and cluster|multiple values", by_name),
            translated("argument.*(tpu_config|cluster)", estimators, (TypeError,)),
            translated("has no attribute 'master'", no_master, (AttributeError,)),
            translated("provide a TPU Name", unnamed),
        ):
            found = make_config(given)
        returns(found, tpu.RunConfig, "make_config", "a tpu.RunConfig")
        where = f"Where use_tpu is {use_tpu} and iterations_per_loop {loop}".lower().replace("w", "W", 1)
        yield f"{where}, model_dir", found.model_dir
        told = f"tpu_config should be a tpu.TPUConfig(...); yours is {a(found.tpu_config)}."
        expect(isinstance(found.tpu_config, tpu.TPUConfig), told)
        yield f"{where}, TPUConfig's iterations_per_loop", found.tpu_config.iterations_per_loop
        yield f"{where}, save_checkpoints_steps", found.save_checkpoints_steps
        shards = found.tpu_config.num_shards
        expect(
            shards in (None, 8),
            f"num_shards={shards} stops the job on a TPU with eight cores. Leave it out: TPUEstimator asks "
            "the TPU.",
        )
        cluster = found.cluster
        master = cluster.master() if isinstance(cluster, resolver) else cluster
        yield f"{where}, what cluster's resolver looks for, settings['tpu']", master
    return "The TPU's name, its loop and the checkpoints are in their places."


@todo(
    "2f",
    hints=(
        "The text lists the arguments. Three of them are batch sizes, over all cores.",
        "params is a dict of what model_fn reads beside batch_size and use_tpu: one entry.",
    ),
    why="Batch sizes are global; TPUEstimator divides them by the cores, and puts batch_size and "
    "use_tpu into params.",
)
def estimator_of(make_estimator: Callable) -> str:
    """A TPUEstimator, whose batch sizes and params arrive where they should."""
    config = tpu.RunConfig(model_dir="never_written")
    made = make_estimator(_model, config, dict(SETTINGS))
    expect(
        isinstance(made, tpu.TPUEstimator),
        f"make_estimator should return a tpu.TPUEstimator; yours returns {a(made)}.",
    )
    expect(
        made.model_dir == "never_written",
        f"The TPUEstimator should have the config that is given; yours writes to {made.model_dir}.",
    )
    try:
        with tf.Graph().as_default():
            made.model_fn(tf.zeros([24, 1]), None, "infer", made.config)
        used = False
    except _Enough:
        used = True
    except Exception:  # whatever another model makes of these features
        used = False
    expect(used, "Give TPUEstimator the argument model; yours calls another function.")
    expect(
        made.params.get("learning_rate") == 0.5,
        f"params should hold the learning_rate of settings; yours hold {made.params}.",
    )
    for name, run, use, wanted in (
        ("train_batch_size", "training", lambda read: made.train(read, steps=1), 64),
        ("eval_batch_size", "evaluation", lambda read: made.evaluate(read, steps=1), 24),
        ("predict_batch_size", "prediction", lambda read: next(made.predict(read)), 24),
    ):
        with translated(
            "TPU",
            "It looks for a TPU though settings say use_tpu: false. use_tpu defaults to True: set it from "
            "settings.",
            (RuntimeError,),
        ):
            size = _batch_size(use)
        expect(
            size == wanted,
            f"In {run} input_fn should get a batch_size of {wanted}, and gets {size}: set {name} from "
            "settings.",
        )
    expect(
        settings(made).eval_on_tpu,
        "eval_on_tpu=False leaves the TPU idle in every evaluation: leave it out.",
    )
    try:
        make_estimator(_model, config, SETTINGS | {"use_tpu": True, "train_batch_size": 0})
    except ValueError:
        return "Each batch size arrives where it belongs, and use_tpu is a setting."
    raise Wrong('use_tpu should be settings["use_tpu"]; the TPU is never used.')


class _Enough(Exception):
    """Raised by an input_fn or a model that has been called as it should."""


def _model(features, labels, mode, params):
    raise _Enough


def _batch_size(use: Callable) -> int | None:
    """The batch size that an Estimator tells input_fn; with use_tpu=False that is the global one."""
    seen = {}

    def read(params):
        seen.update(params)
        raise _Enough

    with contextlib.suppress(_Enough):
        use(read)
    return seen.get("batch_size")
