"""What drives it: TODO 2d, full batches, 2e, the RunConfig, and 2f, the TPUEstimator."""

import contextlib
from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import (
    a,
    expect,
    expect_dataset,
    other_names,
    returns,
    translated,
)
from lab_utils.dry_run.inspect import settings
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
                label = (
                    f"Images in batch {count} of {run} are scaled, float32, with their own labels"
                )
                yield label, bool(scaled and paired)
    return "Every batch has the shape that the program is compiled for."


def _batches(input_fn: Callable, run: str) -> tuple[int, list[tuple[np.ndarray, np.ndarray]]]:
    """How many batches of 24 an input_fn gives, below 0 where that is unknown, and the first two."""
    params = "input_fn should take params: TPUEstimator passes the batch size there."
    inside = (
        "Make the whole dataset inside input_fn, which the Estimator calls in a graph of its own."
    )
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
    no_master = 'cluster should be a resolver of settings["tpu"], a TPUClusterResolver; a name alone cannot find a TPU.'
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
        where = f"Where use_tpu is {use_tpu} and iterations_per_loop {loop}".lower().replace(
            "w", "W", 1
        )
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
