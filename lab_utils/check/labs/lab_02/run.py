"""What drives it: TODO 2e, the RunConfig, and 2f, the TPUEstimator."""

import contextlib
from collections.abc import Callable
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, translated
from lab_utils.dry_run.inspect import settings
from lab_utils.estimator import tf, tpu

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
    "2e",
    hints=(
        "tpu.RunConfig takes cluster, model_dir, save_checkpoints_steps and tpu_config, by "
        "name.",
        "A resolver without a TPU raises an exception: make it only where settings ask for one."
        " What is cluster otherwise?",
    ),
    why="All but the cluster is the same on a CPU and on a TPU, so the CPU run tries what the TPU "
    "run will use.",
)
def config(make_config: Callable) -> str:
    """A RunConfig with TPUConfig, and a resolver on a TPU alone."""
    try:
        without = make_config(dict(SETTINGS))
    except (TypeError, ValueError) as error:
        if "Both master and cluster" in str(error) or "multiple values" in str(error):
            raise Wrong(f"Pass RunConfig's arguments by name. TensorFlow says: {error}") from None
        unknown = "tpu_config" in str(error) or "cluster" in str(error)
        if isinstance(error, ValueError) or not unknown:
            raise
        raise Wrong("tf.estimator.RunConfig takes no arguments for a TPU: use tpu.RunConfig.") from None
    _compare(without)
    expect(without.cluster is None, "Where use_tpu is false, cluster should be None.")
    with (
        translated(
            "has no attribute 'master'",
            'cluster should be a resolver of settings["tpu"], a TPUClusterResolver; a name alone cannot find a '
            "TPU.",
            (AttributeError,),
        ),
        translated("provide a TPU Name", 'The resolver should look for settings["tpu"]: pass it.'),
    ):
        with_tpu = make_config(SETTINGS | {"use_tpu": True, "iterations_per_loop": 40})
    _compare(with_tpu, 40)
    resolver = with_tpu.cluster
    expect(
        isinstance(resolver, tf.distribute.cluster_resolver.TPUClusterResolver),
        f"Where use_tpu is true, cluster should be a resolver; yours is "
        f"{'None' if resolver is None else a(resolver)}.",
    )
    expect(
        resolver.master() == SETTINGS["tpu"],
        f'The resolver should look for settings["tpu"]; yours looks for {resolver.master()}.',
    )
    return "The TPU's name, its loop and the checkpoints are in their places."


def _compare(made: Any, loop: int = 30) -> None:
    """What a RunConfig holds, with a TPU or without one."""
    expect(
        isinstance(made, tpu.RunConfig),
        f"make_config should return a tpu.RunConfig; yours returns {a(made)}.",
    )
    expect(
        made.model_dir == SETTINGS["model_dir"],
        f'model_dir should be settings["model_dir"]; yours is {made.model_dir}.',
    )
    expect(
        isinstance(made.tpu_config, tpu.TPUConfig),
        f"tpu_config should be a tpu.TPUConfig(...); yours is {a(made.tpu_config)}.",
    )
    found = made.tpu_config.iterations_per_loop
    expect(
        found == loop,
        f"With iterations_per_loop of {loop} in settings, TPUConfig's is {found}, with a TPU or without.",
    )
    shards = made.tpu_config.num_shards
    expect(
        shards in (None, 8),
        f"num_shards={shards} stops the job on a TPU with eight cores. Leave it out: TPUEstimator asks the TPU.",
    )
    saved = made.save_checkpoints_steps
    expect(
        saved == 10 * loop,
        f"With iterations_per_loop of {loop} a checkpoint is due every {10 * loop} steps; yours is every "
        f"{saved}.",
    )


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
