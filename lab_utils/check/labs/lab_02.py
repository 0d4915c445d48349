"""The checks of lab 02, the four changes."""

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.labs.metrics import values_of_metrics
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import as_wrong, expect, expect_keys, other_names, returns
from lab_utils.dry_run.inspect import replicas
from lab_utils.estimator import tf, tpu, v1


@todo(
    "2a",
    hints=(
        "Which optimizer do both cases need, and what wraps it on a TPU?",
        "A CrossShardOptimizer is an optimizer too, so the function can return either.",
    ),
    why="The wrapper sums gradients over the cores. A CPU has one copy of the model and no kernel for the sum.",
    slips=(
        Slip(
            "(optimizer)",
            "(optimizer, reduction=v1.losses.Reduction.SUM)",
            "Leave reduction as it is: by default the "
            "loss of each core is divided by the number of cores first.",
        ),
        Slip(
            "(optimizer)",
            "(v1.tpu.CrossShardOptimizer(optimizer))",
            "The optimizer is wrapped twice, and each "
            "wrapper divides the loss by the number of cores: wrap it once.",
        ),
    ),
)
def optimizer(make_optimizer: Callable) -> Cases:
    """Adam, wrapped on a TPU only."""
    on_cpu, on_tpu = ({"learning_rate": 0.5, "use_tpu": use} for use in (False, True))
    keras = "A Keras optimizer cannot be wrapped: use v1.train.AdamOptimizer."
    with tf.Graph().as_default(), v1.Session() as session:
        plain = make_optimizer(on_cpu)
        with as_wrong("Keras", keras):
            cross_shard = make_optimizer(on_tpu)
        returns(plain, v1.train.Optimizer, "make_optimizer", "an optimizer from v1.train")
        one_copy = "With use_tpu false there is one copy of the model and nothing to sum: return Adam itself."
        expect(not isinstance(plain, v1.tpu.CrossShardOptimizer), one_copy)
        yield "With use_tpu false the optimizer", _kind(plain)
        yield 'With params["use_tpu"] the optimizer', _kind(cross_shard)
        variable = v1.get_variable("variable", initializer=2.0)
        with replicas(8):
            ((gradient, _),) = cross_shard.compute_gradients(3.0 * variable, [variable])
        step = plain.minimize(3.0 * variable)
        session.run(v1.global_variables_initializer())
        session.run(step)
        change, share = 2.0 - session.run(variable), session.run(gradient)
    yield "What one of eight cores contributes to a gradient of 3", share
    yield 'A first step of Adam moves a variable by params["learning_rate"]', change, 1e-3
    # What CrossShardOptimizer wraps, read from the update that it makes; no CPU could run that.
    with tf.Graph().as_default() as graph, replicas(8):
        variable = v1.get_variable("variable", initializer=2.0)
        make_optimizer(on_tpu).apply_gradients([(tf.constant(3.0), variable)])
    update = next(op for op in graph.get_operations() if "Apply" in op.type)
    yield 'With params["use_tpu"] the update op of the wrapped optimizer', update.type
    rate = tf.get_static_value(update.inputs[5])
    rate = 0.5 if rate is None else float(rate)
    yield 'With params["use_tpu"] the learning rate is params["learning_rate"] unchanged', rate
    return "A CPU gets Adam, and a TPU gets Adam with summed gradients."


def _kind(optimizer: v1.train.Optimizer) -> str:
    """The name of its class; that of the class asked for where it is a subclass."""
    kinds = (v1.tpu.CrossShardOptimizer, v1.train.AdamOptimizer)
    return next((kind for kind in kinds if isinstance(optimizer, kind)), type(optimizer)).__name__


@todo(
    "2b",
    hints=(
        "eval_metrics is a pair: a function that you write, and a list of its arguments.",
        "`loss` is one number on each core, without a batch axis. Which op gives a loss for each example?",
        "A def inside the branch may be called metric_fn; it uses nothing but its own parameters.",
    ),
    why="Tensors for the host have the batch as their first axis. The host computes metrics only from these.",
)
def eval_spec(model_fn: Callable) -> Cases:
    """A function and its tensors, which the host can join and run."""
    call = "The first part of eval_metrics should be the function itself, not its result: the host calls it."
    pair = (
        "TPUEstimatorSpec expects eval_metrics, a pair: the function, not called, and the list of its tensors. "
        "It has no eval_metric_ops, and no dict of metrics."
    )
    params = {"learning_rate": 0.1, "use_tpu": False}
    with (
        tf.Graph().as_default() as graph,
        other_names(model_fn, inference=_logits),
        as_wrong("callable", call),
        as_wrong("eval_metrics should be|eval_metric_ops", pair),
    ):
        v1.train.create_global_step()
        images, labels = v1.placeholder(tf.float32, [16, 8, 8]), v1.placeholder(tf.int32, [16])
        spec = model_fn(images, labels, "eval", params)
    plain = isinstance(spec, tf.estimator.EstimatorSpec)
    expect(not plain, "This is a plain EstimatorSpec, which evaluation on a TPU refuses.")
    noun = "a tpu.TPUEstimatorSpec in mode EVAL"
    returns(spec, tpu.TPUEstimatorSpec, "model_fn", noun)
    message = "The spec needs eval_metrics: a pair of a function and its tensors."
    expect(bool(spec.eval_metrics), message)
    function, tensors = spec.eval_metrics
    for tensor in tf.nest.flatten(tensors):
        reason = "needs the batch axis first: the host concatenates the cores' parts along it"
        message = f"{tensor.name} is a scalar. Each tensor for metric_fn {reason}."
        expect(tensor.shape.rank != 0, message)
    batches = [
        {images: np.eye(64)[rows].reshape([16, 8, 8]), labels: np.arange(16) % 10}
        for rows in (np.arange(16) % 10, np.arange(16) % 3)
    ]
    with v1.Session(graph=graph) as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        runs = [session.run([spec.loss, tensors], batch) for batch in batches]
    order = "metric_fn gets the tensors in the order of the list, or by the keys of the dict: do its parameters fit?"
    with as_wrong("keyword argument|positional|[Ss]hape|[Rr]ank|DataType", order):
        metrics = values_of_metrics(function, [arrays for _, arrays in runs], ("accuracy", "nats"))
    yield "The loss of a batch, the mean cross-entropy", runs[1][0], 1e-3
    for name in ("accuracy", "nats"):
        yield f"The metric {name!r} of two batches (one without a mistake)", metrics[name], 1e-3
    return "eval_metrics holds a function and its tensors, and the host can run the function."


def _logits(images: tf.Tensor) -> tf.Tensor:
    """In the place of inference: the first ten pixels of an image as logits."""
    return 8.0 * tf.reshape(images, [-1, 64])[:, :10]


_STEP, _RETURN, _SAVE, _SHARE = 0.020, 0.010, 5.0, 0.01  # seconds, but for the share


@todo(
    "2c",
    hints=(
        "Does the constructor expect the batch size of one core or that of all cores?",
        "How many steps must a loop have so that a return of 10 ms takes 1 % of the time? How many steps take 2 s?",
        "Do the same for checkpoints. At which steps can the host write a checkpoint, if it runs only between loops?",
    ),
    why="Each cost sets a lower bound, and what you accept to lose sets an upper one. A checkpoint "
    "waits for the end of the loop in which it is due.",
)
def run_settings(settings: Mapping) -> str:
    """Numbers within the bounds that the text gives."""
    names = ("train_batch_size", "eval_batch_size", "iterations_per_loop", "save_checkpoints_steps")
    expect_keys(settings, names, "settings")
    for name, value in settings.items():
        whole = isinstance(value, Integral) and value > 0
        expect(whole, f"{name} should be a whole number, at least 1; yours is {value!r}.")
    train, evaluation, loop, save = (settings[name] for name in names)
    core = "The constructor expects global sizes, for all eight cores"
    expect(train == 8 * 128, f"{core}: with {train} a core gets {train / 8:g}, not 128.")
    expect(evaluation == 360, f"{core}: one step evaluates {evaluation} digits, not 360.")
    returns_ = _RETURN / (loop * _STEP + _RETURN)
    message = f"With a loop of {loop}, {returns_:.3%} of the time goes to returns to the host; allow at most 1 %."
    expect(returns_ <= _SHARE, message)
    message = f"A loop of {loop} takes {loop * _STEP:g} s, and the log changes only at its end."
    expect(loop * _STEP <= 2.0, message)
    save = -(-save // loop) * loop  # the end of the loop in which a checkpoint is due
    saves = _SAVE / (save * _STEP + _SAVE)
    message = f"With a checkpoint every {save} steps, {saves:.3%} of the time goes to writing them; allow at most 1 %."
    expect(saves <= _SHARE, message)
    message = f"{save} steps are {save * _STEP / 60:.0f} minutes: a crash could lose all of them."
    expect(save * _STEP <= 15 * 60, message)
    return f"Returns cost {returns_:.1%}, checkpoints {saves:.1%}, a crash {save * _STEP / 60:.0f} minutes at most."


_OUTCOMES = {  # the letter of each wrong port, and what is asked of another letter
    "plain optimizer": ("C", "With one copy the sum is the gradient. Which examples does each of eight copies use?"),
    "plain spec": ("B", "TPUEstimator accepts an EstimatorSpec on a CPU. How would eight cores send metrics?"),
    "plain RunConfig": ("A", "Its constructor looks for a TPUConfig. Does a RunConfig of lab 01 have one?"),
    "plain Estimator": ("A", "Which class of spec does a plain Estimator expect from model_fn?"),
    "batch of 1,020": ("B", "1,020 / 8 is 127.5. On which machine is the batch divided?"),
    "loop of 2": ("D", "The steps stay the same. How often does the TPU return to the host?"),
}  # fmt: skip


@todo(
    "2d",
    hints=(
        "For each port: does the mistake change what one copy of the model computes? Does it change what eight do?",
        "Two fail at once, two fail only on a TPU, one is wrong without an error, and one is only slow.",
    ),
    why="Any machine checks the classes; a mistake that concerns several copies shows only on several cores.",
)
def outcomes_of_wrong_ports(outcomes: Mapping) -> str:
    """A letter for each port."""
    expect_decisions(outcomes, _OUTCOMES, "ABCD")
    return "Two ports fail anywhere, two on a TPU only, one is slow, and one is wrong without an error."


enter_patient(
    "2e",
    "curves",
    (
        "Follow the gradients from the loss to the variables: which object computes them, which one applies them?",
        "CrossShardOptimizer does half of its work in compute_gradients, and the other half in apply_gradients.",
    ),
    "The wrapper all-reduces in its apply_gradients, which the program never called.",
)
