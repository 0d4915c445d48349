"""The checks of lab 02, the four changes."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.labs.metrics import values_of_metrics
from lab_utils.check.labs.own_port import check_port
from lab_utils.check.labs.treatment import enter_program, read_program
from lab_utils.check.outcome import Wrong
from lab_utils.check.same import show
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import as_wrong, expect, other_names, returns
from lab_utils.dry_run.inspect import replicas
from lab_utils.dry_run.inspect import settings as settings_of
from lab_utils.estimator import tf, tpu, v1


@todo(
    "2a",
    hints=(
        "Suppose that eight cores have the losses 1, 2, 3 and so on. What is the mean of the whole batch, and "
        "what is the sum? Which of the two needs the division by eight?",
        "One argument of the wrapper decides whether it divides. Its two values are in v1.losses.Reduction.",
        "A CrossShardOptimizer is an optimizer too, so the function can return either.",
    ),
    why="The wrapper sums gradients over the cores. The mean of a batch is the sum of the cores' means, each divided by "
    "the number of cores, but the sum of a batch is the sum of the cores' sums. A CPU has one copy of the model and no "
    "kernel for the sum.",
)
def optimizer(make_optimizer: Callable) -> Cases:
    """Adam, wrapped on a TPU only."""
    on_cpu, on_tpu = ({"learning_rate": 0.5, "use_tpu": use} for use in (False, True))
    keras = "A Keras optimizer cannot be wrapped: use v1.train.AdamOptimizer."
    module = (
        "`tpu` is v1.estimator.tpu here, the module of TPUEstimator. CrossShardOptimizer stands in another one: "
        "write v1.tpu.CrossShardOptimizer."
    )
    other_module = as_wrong("no attribute 'CrossShardOptimizer'", module, (AttributeError,))
    missing = as_wrong("'loss'", _NO_LOSS, (KeyError,))
    with other_module, missing, tf.Graph().as_default(), v1.Session() as session:
        plain = make_optimizer(on_cpu)
        with as_wrong("Keras", keras):
            cross_shard = make_optimizer(on_tpu)
        returns(plain, v1.train.Optimizer, "make_optimizer", "an optimizer from v1.train")
        one_copy = "With use_tpu false there is one copy of the model and nothing to sum: return Adam itself."
        expect(not isinstance(plain, v1.tpu.CrossShardOptimizer), one_copy)
        yield "With use_tpu false the optimizer", _kind(plain)
        yield 'With params["use_tpu"] the optimizer', _kind(cross_shard)
        variable = v1.get_variable("variable", initializer=2.0)
        step = plain.minimize(3.0 * variable)
        session.run(v1.global_variables_initializer())
        session.run(step)
        change = 2.0 - session.run(variable)
        on_a_cpu = _update(session.graph)
    for given, loss in _LOSSES.items():
        _expect_share(_contribution(make_optimizer, on_tpu | dict(given)), loss)
    yield 'A first step of Adam moves a variable by params["learning_rate"]', change, 1e-3
    # What CrossShardOptimizer wraps, read from the update that it makes; no CPU could run that.
    with tf.Graph().as_default() as graph, replicas(8):
        variable = v1.get_variable("variable", initializer=2.0)
        make_optimizer(on_tpu).apply_gradients([(tf.constant(3.0), variable)])
    update = _update(graph)
    yield 'With params["use_tpu"] the update op of the wrapped optimizer', update.type
    yield (
        'With params["use_tpu"] the learning rate is params["learning_rate"] unchanged',
        _rate(update),
    )
    for use_tpu, each in ((False, on_a_cpu), (True, update)):
        decays = [tf.get_static_value(tensor) for tensor in each.inputs[6:8]]
        label = f"With use_tpu {str(use_tpu).lower()} beta1 and beta2 are Adam's defaults"
        yield label, [None if decay is None else float(decay) for decay in decays], 1e-4
    return "A CPU gets Adam, and a TPU gets Adam with summed gradients, which are those of the whole batch."


_NO_LOSS = (
    'params need not hold "loss", which is a mean then; params["loss"] raises an error there.'
)
_LOSSES = {  # what params hold of the loss, and in words
    (): 'a mean, since params hold no "loss"',
    (("loss", "mean"),): "a mean",
    (("loss", "sum"),): "a sum",
}


def _expect_share(share: float, loss: str) -> None:
    """Raises `Wrong` unless one of eight cores, whose gradient is 3, contributes what the whole batch needs."""
    right = 3.0 if loss == "a sum" else 3.0 / 8
    where = (
        f"Where the loss is {loss}, one of eight cores contributes {share:.3g} of its gradient of 3"
    )
    if loss == "a sum":
        reason = (
            "The sum over the whole batch is the sum of the cores' sums: nothing has to be divided."
        )
    elif share > right:
        reason = (
            "Adam then gets the sum of eight means, eight times the gradient of the mean over the whole batch: the "
            "wrapper has to divide by the number of cores."
        )
    else:
        reason = "It is divided by the number of cores more than once. Wrap the optimizer once."
    expect(abs(share - right) < 1e-4, f"{where}. {reason}")


def _contribution(make_optimizer: Callable, params: Mapping[str, Any]) -> float:
    """What one of eight cores adds to the sum over the cores, if the gradient of its own loss is 3."""
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("variable", initializer=2.0)
        with replicas(8):
            pairs = make_optimizer(dict(params)).compute_gradients(3.0 * variable, [variable])
        session.run(v1.global_variables_initializer())
        return float(session.run(pairs[0][0]))


def _update(graph: tf.Graph) -> tf.Operation:
    """The op that changes a variable."""
    return next(op for op in graph.get_operations() if "Apply" in op.type)


def _rate(update: tf.Operation) -> float:
    """The learning rate of an update by Adam; 0.5, as it should be, where it is computed."""
    rate = tf.get_static_value(update.inputs[5])
    return 0.5 if rate is None else float(rate)


def _kind(optimizer: v1.train.Optimizer) -> str:
    """The name of its class; that of the class asked for where it is a subclass."""
    kinds = (v1.tpu.CrossShardOptimizer, v1.train.AdamOptimizer)
    return next((kind for kind in kinds if isinstance(optimizer, kind)), type(optimizer)).__name__


@todo(
    "2b",
    hints=(
        "eval_metrics is a pair: a function that you write, and a list of its arguments.",
        "`loss` is one number on each core, without a batch axis. Which op gives a loss for each example?",
        "How many numbers for each example do the logits have, and how many does the accuracy need?",
        "A def inside the branch may be called metric_fn; it uses nothing but its own parameters.",
    ),
    why="Tensors for the host have the batch as their first axis, and the host computes metrics only from "
    "these tensors. The core itself picks the most likely class, so it sends one number instead of ten.",
)
def eval_spec(model_fn: Callable) -> Cases:
    """A function and its tensors, which the host can join and run."""
    call = "The first part of eval_metrics should be the function itself, not its result: the host calls it."
    pair = (
        "TPUEstimatorSpec expects eval_metrics, a pair: the function, not called, and the list of its tensors. "
        "It has no eval_metric_ops, and no dict of metrics."
    )
    params = {"learning_rate": 0.1, "use_tpu": False, "batch_size": 16}
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
    _expect_few(tensors)
    batches = [
        {images: np.eye(64)[rows].reshape([16, 8, 8]), labels: np.arange(16) % 10}
        for rows in (np.arange(16) % 10, np.arange(16) % 3)
    ]
    with v1.Session(graph=graph) as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        runs = [session.run([spec.loss, tensors], batch) for batch in batches]
    order = "metric_fn gets the tensors in the order of the list, or by the keys of the dict: do its parameters fit?"
    losses = (
        "metric_fn runs in a graph of its own, which holds no loss of the model: send the loss of each example, and "
        "take the mean there."
    )
    with (
        as_wrong("keyword argument|positional|[Ss]hape|[Rr]ank|DataType", order),
        as_wrong("at least one Tensor|No losses|non-empty", losses),
    ):
        metrics = values_of_metrics(function, [arrays for _, arrays in runs], ("accuracy", "nats"))
    yield "The loss of a batch, the mean cross-entropy", runs[1][0], 1e-3
    for name in ("accuracy", "nats"):
        yield f"The metric {name!r} of two batches (one without a mistake)", metrics[name], 1e-3
    return "eval_metrics holds a function and its tensors, and the host can run the function."


_MOST_NUMBERS = 3  # of an example, to the host


def _expect_few(tensors: Any) -> None:
    """Raises `Wrong` where metric_fn gets more numbers of an example than the link to the host should carry."""
    sizes = [tensor.shape[1:].num_elements() or 0 for tensor in tf.nest.flatten(tensors)]
    total = sum(sizes)
    message = (
        f"You send {total} numbers for each example, {max(sizes)} of them in one tensor, and at most {_MOST_NUMBERS} may "
        "go to the host. What do the metrics need of that tensor, and can a core compute it?"
    )
    expect(total <= _MOST_NUMBERS, message)


def _logits(images: tf.Tensor) -> tf.Tensor:
    """In the place of inference: the first ten pixels of an image as logits."""
    return 8.0 * tf.reshape(images, [-1, 64])[:, :10]


_ADDRESS = "grpc://10.0.0.2:8470"  # which a resolver takes as it is, without asking the cloud
_WANTED = (
    {
        "cores": 8,
        "examples_per_core": 128,
        "held_out": 360,
        "most_per_core": 12,
        "loop": 100,
        "may_lose": 45_050,
        "learning_rate": 0.003,
    },
    {
        "cores": 16,
        "examples_per_core": 24,
        "held_out": 720,
        "most_per_core": 12,
        "loop": 70,
        "may_lose": 1000,
        "learning_rate": 0.5,
    },
)


class _Called(Exception):
    """Raised by the model_fn that stands in for the learner's."""


def _model(features: Any, labels: Any, mode: str, params: Any) -> None:
    raise _Called


@todo(
    "2c",
    hints=(
        "Build it from the inside out: which object takes the length of the loop, which object contains that "
        "one, and to which constructor do you pass the result?",
        "Are the sizes in `settings` those of one core or of all cores? Which of the two does the constructor "
        "expect?",
        "Write down the global batches that eight cores can share evenly, with at most 12 examples for each "
        "core. Which of these batch sizes divide 360?",
        "How many whole loops fit into `may_lose` steps?",
    ),
    why="The resolver and the loop belong to the RunConfig, and the batch sizes belong to the Estimator. The "
    "batch of an evaluation is a multiple of the number of cores, and divides the number of examples. A "
    "checkpoint waits for the end of the loop in which it is due, so its interval is a multiple of the "
    "loop's length.",
)
def port_of_a_model(make_port: Callable) -> str:
    """Each argument of what it makes, for two settings, with and without a TPU."""
    folders = []
    for wanted in _WANTED:
        for use_tpu in (True, False):
            with _explained():
                port = make_port(_model, dict(wanted), use_tpu, _ADDRESS)
            _expect_port(port, wanted, use_tpu)
            folders.append(port.model_dir)
    with _explained():
        default = make_port(_model, dict(_WANTED[0]))
    local = "Without its last two arguments, make_port should make a port with use_tpu=False."
    expect(not settings_of(default).use_tpu, local)
    folder = (
        "Two calls share a model_dir: the second one would go on from the checkpoints of the first."
    )
    expect(len(set(folders)) == len(folders), folder)
    return "Each argument fits the settings, with a TPU and without."


# What exceptions of the constructors mean here.
_MEANINGS = (
    (
        "`config` must be provided",
        "The config is one of tf.estimator, which has no TPUConfig: make a tpu.RunConfig, also with use_tpu=False.",
    ),
    (
        "are reserved keys",
        "TPUEstimator adds batch_size and use_tpu to params itself: hand over the learning rate only.",
    ),
    (
        "train_batch_size` cannot be",
        "train_batch_size is missing: TPUEstimator divides it among the cores.",
    ),
    (
        "Both master and cluster|Cannot set both",
        "Two arguments say the same thing: a cluster replaces a master, and steps replace seconds.",
    ),
)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Context manager: exceptions of the constructors of a port say what is wrong; no TPU is contacted."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise Wrong(
            "make_port contacts the TPU. A resolver is enough: the Estimator connects when it trains."
        )

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    with contextlib.ExitStack() as stack:
        for part, message in _MEANINGS:
            stack.enter_context(as_wrong(part, message))
        for owner, name in (
            (resolver, "connect"),
            (tf.config, "experimental_connect_to_cluster"),
            (tf.tpu.experimental, "initialize_tpu_system"),
        ):
            stack.enter_context(mock.patch.object(owner, name, refuse))
        yield


def _expect_port(port: Any, wanted: Mapping[str, Any], use_tpu: bool) -> None:
    """Raises `Wrong` for the first argument of a port that is not what the settings want."""
    kind = isinstance(port, v1.estimator.Estimator) and not isinstance(port, tpu.TPUEstimator)
    expect(not kind, "This is an Estimator for CPUs and GPUs: make a tpu.TPUEstimator.")
    returns(port, tpu.TPUEstimator, "make_port", "a tpu.TPUEstimator")
    made = settings_of(port)
    message = f"With use_tpu={use_tpu}, TPUEstimator gets use_tpu={made.use_tpu}."
    expect(bool(made.use_tpu) == use_tpu, message)
    _expect_place(made.config, use_tpu)
    _expect_loop(made.config, wanted)
    _expect_sizes(made, wanted)
    rate = (made.params or {}).get("learning_rate")
    message = 'model_fn reads params["learning_rate"], but params do not hold it.'
    expect(rate is not None, message)
    message = (
        f"params hold the learning rate {show(rate)}; settings want {wanted['learning_rate']}."
    )
    expect(rate == wanted["learning_rate"], message)
    try:
        made.model_fn(None, None, "train", dict(made.params))
    except _Called:
        return
    except Exception:
        pass
    raise Wrong("The Estimator does not call `model`, the model_fn that make_port was given.")


def _expect_place(config: Any, use_tpu: bool) -> None:
    """Raises `Wrong` unless a resolver finds the TPU, where there is one to find."""
    if not use_tpu:
        message = "With use_tpu=False there is no TPU to find, and a resolver fails where there is none: cluster=None."
        expect(config.cluster is None and not config.master, message)
        return
    message = "master= expects an address, and `name` is a name: hand a TPUClusterResolver over as cluster=."
    expect(config.cluster is not None or not config.master, message)
    message = (
        "With use_tpu=True the RunConfig has no cluster: how would the program find the TPU? "
        "TPUClusterResolver(name) does."
    )
    expect(config.cluster is not None, message)
    message = "The resolver looks for another TPU than `name`."
    expect(config.master == _ADDRESS, message)


def _expect_loop(config: Any, wanted: Mapping[str, Any]) -> None:
    """Raises `Wrong` unless loop and checkpoints are those wanted."""
    loop, made = wanted["loop"], config.tpu_config.iterations_per_loop
    default = (
        " That is TPUConfig's default: hand a TPUConfig over to RunConfig." if made == 2 else ""
    )
    expect(made == loop, f"The loop has {show(made)} steps; settings want {loop}.{default}")
    shards, cores = config.tpu_config.num_shards, wanted["cores"]
    message = f"num_shards is {shards}, and there are {cores} cores: omit it, since TPUEstimator asks the TPU."
    expect(shards in (None, cores), message)
    save, most = config.save_checkpoints_steps, wanted["may_lose"]
    message = (
        f"A checkpoint is due every {config.save_checkpoints_secs} seconds: say it in steps, "
        "save_checkpoints_steps of RunConfig."
    )
    expect(bool(save), message)
    written = -(-save // loop) * loop
    message = (
        f"save_checkpoints_steps is {save:,}, and a loop has {loop} steps: the checkpoint is written at step "
        f"{written:,}, the end of the loop in which it is due. Make it a multiple of the loop."
    )
    expect(save % loop == 0, message)
    message = f"With a checkpoint every {save:,} steps, a crash may cost more than {most:,}."
    expect(save <= most, message)
    message = (
        f"A checkpoint every {save:,} steps is more often than a loss of {most:,} steps asks for."
    )
    expect(save + loop > most, message)


def _expect_sizes(made: Any, wanted: Mapping[str, Any]) -> None:
    """Raises `Wrong` unless the batch sizes are the global ones."""
    cores = wanted["cores"]
    whole, largest = cores * wanted["examples_per_core"], _largest(wanted)
    for mode, right in (("train", whole), ("eval", largest), ("predict", largest)):
        size, name = made.batch_size(mode), f"{mode}_batch_size"
        message = (
            f"{name} is missing: a TPU's program is compiled for one batch size, in each mode."
        )
        expect(size is not None, message)
        if mode != "train":
            _expect_whole_batches(name, size, wanted)
        what = "the share of one core" if size * cores == right else "not what settings want"
        message = (
            f"{name} is {show(size)}, {what}. The constructor expects the global batch, of all {cores} cores: "
            "it divides it itself."
        )
        expect(size == right, message)


def _largest(wanted: Mapping[str, Any]) -> int:
    """The largest batch that the cores share evenly, and that the held-out examples fill without a rest."""
    shares = range(1, wanted["most_per_core"] + 1)
    sizes = [share * wanted["cores"] for share in shares]
    return max(size for size in sizes if wanted["held_out"] % size == 0)


def _expect_whole_batches(name: str, size: int, wanted: Mapping[str, Any]) -> None:
    """Raises `Wrong` unless full batches of this size hold every held-out example, on all cores."""
    cores, held_out, most = (wanted[key] for key in ("cores", "held_out", "most_per_core"))
    where = f"{name} is {show(size)}, for {held_out} examples on {cores} cores"
    message = f"{where}: the cores cannot share a batch evenly, since {size} is not a multiple of {cores}."
    expect(size % cores == 0, message)
    each = size // cores
    message = f"{where}: {each} on each, but settings allow {most} at most."
    expect(each <= most, message)
    message = f"{where}: full batches hold {held_out - held_out % size} of the examples, and the others are dropped."
    expect(held_out % size == 0, message)
    largest = _largest(wanted)
    message = f"{where}: each example is evaluated once, but a larger batch does that, too."
    expect(size == largest, message)


_OUTCOMES = {  # the letter of each wrong port, and what is asked of another letter
    "never wrapped": ("C", "With one copy the sum is the gradient. Which examples does each of eight copies use?"),
    "always wrapped": ("E", "The wrapper needs an op that sums over cores. Which machine has it?"),
    "plain spec": ("B", "TPUEstimator accepts an EstimatorSpec on a CPU. How would eight cores send metrics?"),
    "fixed rows": ("E", "How many rows does model_fn get here, and how many on each of eight cores?"),
    "five cores": ("B", "Which batch sizes does make_port work out for five cores? Which of them can eight cores share?"),
    "plain RunConfig": ("A", "Its constructor looks for a TPUConfig. Does a RunConfig of lab 01 have one?"),
    "loop of 2": ("D", "The steps stay the same. How often does the TPU return to the host?"),
}  # fmt: skip


@todo(
    "2d",
    hints=(
        "For each port: does the mistake change what one copy of the model computes? Does it change what "
        "eight copies compute together?",
        "One port fails anywhere, two fail only on a TPU, and two fail only here. One is wrong without an "
        "error, and one is slow.",
        "For the batches: work out the sizes that a port asks for, then divide each by eight. A CPU counts as one core.",
    ),
    why="TPUEstimator checks the class of the config on any machine. A mistake that concerns several copies "
    "shows only on several cores, and what only a TPU can do fails only on a CPU.",
)
def outcomes_of_wrong_ports(outcomes: Mapping) -> str:
    """A letter for each port."""
    expect_decisions(outcomes, _OUTCOMES, "ABCDE")
    return "A CPU stops three of seven: one that fails anywhere, and two that would run on a TPU."


enter_program(
    "2e",
    "curves",
    hints=(
        "Follow the gradients from the loss to the variables: which object computes them, which one applies them?",
        "CrossShardOptimizer does half of its work in compute_gradients, and the other half in apply_gradients.",
    ),
    why="The wrapper all-reduces in its apply_gradients, which the program never called.",
)


@todo(
    "2f",
    hints=(
        "Begin with a plain Estimator that trains and evaluates on this CPU. Then make the four changes, one by one.",
        "Where does the program first know whether it is meant for a TPU? Which three places need to know it?",
        "Which number of steps, times eval_batch_size, gives the number of your held-out examples?",
    ),
    why="The flag goes to the Estimator, which passes it on to model_fn in params. The resolver is made only "
    "if the flag is set.",
    names=("port.py",),
)
def port_from_nothing(program: Any) -> str:
    """A program that trains and evaluates here, and is ready for a TPU."""
    return check_port(read_program(program, "port.py"))
